//! The key as a header field: which lines count, and how a value is read.
//!
//! A value that begins with a quote is read only as a structured-field string. Any other value is the bare key,
//! including commas and semicolons, because the specification allows every visible ASCII character. Two lines that a
//! proxy joined with a comma and a space are refused because of the space, which only a quoted key may have.

use super::{IdempotencyKey, KeyError, KeySyntax, first_not_in};

/// The two names of the header in our spelling; requests may use any case.
pub const NAMES: [&str; 2] = ["Idempotency-Key", "X-Idempotency-Key"];

/// The longest field line that is read: 255 escaped characters, quotes and space for parameters.
pub const MAX_FIELD_BYTES: usize = 4096;

/// Finds the key in a request's header fields, given as (name, value) in any order.
///
/// `Ok(None)` means that there is no such line; the operation decides whether that is allowed
/// ([`Policy::require`](crate::ledger::Policy::require)). Lines are counted before they are read: `"foo` and `bar"` in
/// two lines would join into one valid string.
///
/// ```
/// use ichido_core::key::{KeyError, read};
///
/// let bare = read([("idempotency-key", "order-4711")])?;
/// let quoted = read([("Idempotency-Key", "\"order-4711\""), ("Accept", "*/*")])?;
/// assert_eq!(bare, quoted, "two spellings of one key");
///
/// let spaced = read([("Idempotency-Key", "order 4711")]);
/// assert_eq!(spaced, Err(KeyError::NotVisible { index: 5 }));
/// # Ok::<(), KeyError>(())
/// ```
pub fn read<N, V>(fields: impl IntoIterator<Item = (N, V)>) -> Result<Option<IdempotencyKey>, KeyError>
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    read_as(fields, KeySyntax::Visible)
}

/// Finds the key as [`read`] does; a quoted key may have these characters.
pub fn read_as<N, V>(
    fields: impl IntoIterator<Item = (N, V)>,
    syntax: KeySyntax,
) -> Result<Option<IdempotencyKey>, KeyError>
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    let mut lines: [(usize, Option<V>); NAMES.len()] = [(0, None), (0, None)];
    for (name, value) in fields {
        let Some(known) = NAMES.iter().position(|known| name.as_ref().eq_ignore_ascii_case(known)) else {
            continue;
        };
        let (count, last) = &mut lines[known];
        *count += 1;
        *last = Some(value);
    }
    let mut found = None;
    for (name, line) in NAMES.into_iter().zip(lines) {
        let key = match line {
            (_, None) => continue,
            (1, Some(value)) => parse_value(value.as_ref(), syntax)?,
            (count, Some(_)) => return Err(KeyError::ManyLines { name, count }),
        };
        match &found {
            Some(other) if *other != key => return Err(KeyError::HeadersDisagree),
            _ => found = Some(key),
        }
    }
    Ok(found)
}

/// Reads one field value: a structured-field string, whose parameters are ignored, or the bare key.
///
/// A value that begins with a quote is read only as quoted, so a broken quoted string is never taken for a bare key
/// that contains a quote.
fn parse_value(value: &[u8], syntax: KeySyntax) -> Result<IdempotencyKey, KeyError> {
    if MAX_FIELD_BYTES < value.len() {
        return Err(KeyError::FieldTooLong { len: value.len() });
    }
    let value = trim_blanks(value);
    if value.first() == Some(&b'"') {
        let item = sfv::Parser::new(value).parse_item::<sfv::Item>();
        return match item.as_ref().map(|item| &item.bare_item) {
            Ok(sfv::BareItem::String(text)) => IdempotencyKey::parse_as(text.as_str(), syntax),
            _ => Err(fault_of_quoted(value, syntax)),
        };
    }
    match std::str::from_utf8(value) {
        Ok(text) => IdempotencyKey::parse(text),
        Err(fault) => {
            let index = first_not_in(KeySyntax::Visible, value).unwrap_or(fault.valid_up_to());
            Err(KeyError::NotVisible { index })
        }
    }
}

/// Returns what is wrong with a value that begins with a quote.
///
/// That is an invalid character before the closing quote, else the quoting.
fn fault_of_quoted(value: &[u8], syntax: KeySyntax) -> KeyError {
    let mut bytes = value.iter().skip(1);
    let mut index = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            // An escape stands for one character, whichever it is.
            b'\\' => _ = bytes.next(),
            byte if !syntax.allows(*byte) => return KeyError::NotVisible { index },
            _ => (),
        }
        index += 1;
    }
    KeyError::BadQuoting
}

/// Trims HTTP's optional white space around a field value: spaces and tabs.
fn trim_blanks(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !is_blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}
