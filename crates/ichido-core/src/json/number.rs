//! Numbers: their grammar, their exact decimal form and their form as doubles.
//!
//! Guarantee: the exact form depends only on the decimal value, and no exponent makes it longer than
//! [`MAX_NUMBER_DIGITS`] digits: the length is known before the first digit is written.

use super::decimal::{DOUBLE_DIGITS, Decimal};
use super::{JsonError, JsonErrorKind, MAX_NUMBER_DIGITS};

/// Checks the number at `start` and returns its end and whether its spelling is already the exact form.
pub(super) fn scan(text: &[u8], start: usize) -> Result<(usize, bool), JsonError> {
    let negative = text.get(start) == Some(&b'-');
    let whole_start = start + usize::from(negative);
    let whole_end = digits_end(text, whole_start);
    let mut end = whole_end;
    let mut normal = match &text[whole_start..whole_end] {
        [] if is_not_finite(&text[whole_start..]) => return JsonErrorKind::NotFinite.at(start),
        [] => return missing_digit(text, whole_start),
        [b'0'] => !negative || text.get(end) == Some(&b'.'),
        [b'0', ..] => return JsonErrorKind::LeadingZero.at(whole_start),
        [..] => true,
    };
    if text.get(end) == Some(&b'.') {
        let fraction_start = end + 1;
        end = digits_end(text, fraction_start);
        match &text[fraction_start..end] {
            [] => return missing_digit(text, fraction_start),
            [.., last] => normal = *last != b'0',
        }
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let signed = matches!(text.get(end + 1), Some(b'+' | b'-'));
        let exponent_start = end + 1 + usize::from(signed);
        end = digits_end(text, exponent_start);
        if end == exponent_start {
            return missing_digit(text, end);
        }
        normal = false;
    }
    // A spelling within the limit cannot have more digits than the limit; a longer one is counted later.
    Ok((end, normal && end - start <= MAX_NUMBER_DIGITS))
}

/// Returns whether `text` begins with a word that other languages read as a number.
pub(super) fn is_not_finite(text: &[u8]) -> bool {
    text.starts_with(b"NaN") || text.starts_with(b"Infinity")
}

/// Writes the exact form of the number `text` at `position`.
pub(super) fn write_exact(text: &str, position: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let decimal = Decimal::read(text);
    if MAX_NUMBER_DIGITS < decimal.plain_digits() {
        return JsonErrorKind::NumberTooLong.at(position);
    }
    decimal.write(out);
    Ok(())
}

/// Refuses the number `text` at `position` if it has an exponent.
pub(super) fn refuse_exponent(text: &str, position: usize) -> Result<(), JsonError> {
    match text.find(['e', 'E']) {
        Some(offset) => JsonErrorKind::Exponent.at(position + offset),
        None => Ok(()),
    }
}

/// Returns whether a number in normal form is an integer that every form writes the same way.
pub(super) fn is_short_integer(text: &str) -> bool {
    text.len() <= DOUBLE_DIGITS && !text.contains('.')
}

/// Writes the double nearest to the number `text` at `position`, as in ECMAScript.
pub(super) fn write_double(text: &str, position: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let decimal = Decimal::read(text);
    if decimal.is_its_own_double() {
        decimal.write(out);
        return Ok(());
    }
    match text.parse::<f64>() {
        Ok(double) if double.is_finite() => {
            out.extend_from_slice(ryu_js::Buffer::new().format_finite(double).as_bytes());
            Ok(())
        }
        // The grammar of JSON is part of the grammar of `f64`, so only the range can be wrong.
        Ok(_) | Err(_) => JsonErrorKind::NumberTooLarge.at(position),
    }
}

fn digits_end(text: &[u8], start: usize) -> usize {
    text[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(text.len(), |offset| start + offset)
}

fn missing_digit<T>(text: &[u8], position: usize) -> Result<T, JsonError> {
    if position < text.len() {
        JsonErrorKind::ExpectedDigit.at(position)
    } else {
        JsonErrorKind::UnexpectedEnd.at(position)
    }
}
