//! The key as a header field: which lines count, and how a line's value is read.

use super::{IdempotencyKey, KeyError};

/// The two names of the one header, as we spell them; requests may use any case.
pub const NAMES: [&str; 2] = ["Idempotency-Key", "X-Idempotency-Key"];

/// The longest field line that is looked at: 255 escaped characters, quotes, and room for parameters.
pub const FIELD_BYTES_MAX: usize = 4096;

/// Finds the key among a request's header fields, given as (name, value) in any order.
///
/// `Ok(None)` means that no line was there; whether that is allowed is the operation's business.
/// Lines are counted before they are read: `"foo` and `bar"` in two lines would join into one valid string.
pub fn read<'a>(
    fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Option<IdempotencyKey>, KeyError> {
    let mut lines: [(usize, &[u8]); NAMES.len()] = [(0, &[]); NAMES.len()];
    for (name, value) in fields {
        for (known, (count, first)) in NAMES.iter().zip(&mut lines) {
            if name.eq_ignore_ascii_case(known) {
                if *count == 0 {
                    *first = value;
                }
                *count += 1;
            }
        }
    }
    let mut found = None;
    for (name, (count, value)) in NAMES.into_iter().zip(lines) {
        let key = match count {
            0 => continue,
            1 => parse_value(value)?,
            count => return Err(KeyError::ManyLines { name, count }),
        };
        match &found {
            Some(other) if *other != key => return Err(KeyError::HeadersDisagree),
            _ => found = Some(key),
        }
    }
    Ok(found)
}

/// One field value: a structured-field string, whose parameters are ignored, or the bare key.
///
/// What begins with a quote is read as quoted only, so that a broken quoted string is never taken for a bare
/// key that happens to contain a quote.
fn parse_value(value: &[u8]) -> Result<IdempotencyKey, KeyError> {
    if FIELD_BYTES_MAX < value.len() {
        return Err(KeyError::FieldTooLong { len: value.len() });
    }
    let value = trim_blanks(value);
    if value.first() == Some(&b'"') {
        let item = sfv::Parser::new(value).parse_item::<sfv::Item>();
        return match item.as_ref().map(|item| &item.bare_item) {
            Ok(sfv::BareItem::String(text)) => IdempotencyKey::parse(text.as_str()),
            _ => Err(KeyError::BadQuoting),
        };
    }
    match std::str::from_utf8(value) {
        Ok(text) => IdempotencyKey::parse(text),
        Err(fault) => Err(KeyError::NotVisible { index: fault.valid_up_to() }),
    }
}

/// HTTP's optional white space around a field value: spaces and tabs.
fn trim_blanks(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !is_blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}
