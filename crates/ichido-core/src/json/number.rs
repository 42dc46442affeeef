//! Numbers: their grammar, their exact decimal form, and their form as doubles.
//!
//! Guarantee: the exact form depends on the decimal value alone, and no exponent makes it longer than
//! [`NUMBER_DIGITS_MAX`] digits: the length is known before the first digit is written.

use super::{Fault, JsonError, NUMBER_DIGITS_MAX};

/// Exponents are cut off here: far beyond what any bound on digits lets through, and far from the ends of
/// `i64`, so that adding the length of a text cannot overflow.
const EXPONENT_MAX: i64 = i64::MAX / 4;

/// Every decimal of so many significant digits has a double of its own, so a double read from one is
/// spelled with the same digits again.
const DOUBLE_DIGITS: usize = 15;

/// Checks the number that begins at `start`, and says where it ends and whether its spelling is already
/// that of the exact form.
pub(super) fn scan(text: &[u8], start: usize) -> Result<(usize, bool), JsonError> {
    let negative = text.get(start) == Some(&b'-');
    let whole_start = start + usize::from(negative);
    let whole_end = digits_end(text, whole_start);
    let mut end = whole_end;
    let mut normal = match &text[whole_start..whole_end] {
        [] if is_not_finite(&text[whole_start..]) => return Fault::NotFinite.at(start),
        [] => return missing_digit(text, whole_start),
        [b'0'] => !negative || text.get(end) == Some(&b'.'),
        [b'0', ..] => return Fault::LeadingZero.at(whole_start),
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
    // A spelling as short as the bound cannot have more digits than it; a longer one is counted later.
    Ok((end, normal && end - start <= NUMBER_DIGITS_MAX))
}

/// Whether `text` begins with a word that other languages read as a number.
pub(super) fn is_not_finite(text: &[u8]) -> bool {
    text.starts_with(b"NaN") || text.starts_with(b"Infinity")
}

/// Writes the exact form of the number `text`, which stands at `position`.
pub(super) fn write_exact(text: &str, position: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let decimal = Decimal::read(text);
    if NUMBER_DIGITS_MAX < decimal.plain_digits() {
        return Fault::NumberTooLong.at(position);
    }
    decimal.write(out);
    Ok(())
}

/// Refuses the number `text`, which stands at `position`, if it has an exponent.
pub(super) fn refuse_exponent(text: &str, position: usize) -> Result<(), JsonError> {
    match text.find(['e', 'E']) {
        Some(offset) => Fault::Exponent.at(position + offset),
        None => Ok(()),
    }
}

/// Whether a number in its normal form is an integer that every form spells in the same way.
pub(super) fn is_short_integer(text: &str) -> bool {
    text.len() <= DOUBLE_DIGITS && !text.contains('.')
}

/// Writes the double nearest to the number `text`, which stands at `position`, as ECMAScript spells it.
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
        // The grammar of JSON is part of the grammar of `f64`, so only the range can be at fault.
        Ok(_) | Err(_) => Fault::NumberTooLarge.at(position),
    }
}

/// A number as its significant digits and the place of the point.
struct Decimal<'a> {
    negative: bool,
    /// The significant digits, without zeros at either end, in two parts as the point divided them.
    digits: [&'a [u8]; 2],
    /// How many digits stand before the point: negative for 0.001, beyond the digits for 1000.
    point: i64,
}

impl<'a> Decimal<'a> {
    /// Takes apart a number that [`scan`] has passed.
    fn read(text: &'a str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits_before_point = length(whole.as_bytes());
        let mut leading_zeros = 0;
        let mut digits = [whole.as_bytes(), fraction.as_bytes()];
        for index in [0, 1] {
            let trimmed = trim_start_zeros(digits[index]);
            leading_zeros += length(digits[index]) - length(trimmed);
            digits[index] = trimmed;
            if !trimmed.is_empty() {
                break;
            }
        }
        for index in [1, 0] {
            digits[index] = trim_end_zeros(digits[index]);
            if !digits[index].is_empty() {
                break;
            }
        }
        if digits == [b"", b""] {
            return Self {
                negative: false,
                digits,
                point: 1,
            };
        }
        Self {
            negative,
            digits,
            point: digits_before_point - leading_zeros + exponent,
        }
    }

    /// How many digits are significant; none for zero.
    fn significant(&self) -> usize {
        self.digits[0].len() + self.digits[1].len()
    }

    /// How many digits the plain form has, the zero before a point included.
    fn plain_digits(&self) -> usize {
        let significant = self.significant();
        let point = usize::try_from(self.point.unsigned_abs()).unwrap_or(usize::MAX);
        if self.point <= 0 {
            point.saturating_add(significant).saturating_add(1)
        } else {
            point.max(significant)
        }
    }

    /// Whether the shortest spelling of the nearest double is the plain form of this decimal: few enough
    /// digits, in the range that ECMAScript spells without an exponent.
    fn is_its_own_double(&self) -> bool {
        self.significant() <= DOUBLE_DIGITS && -6 < self.point && self.point <= 21
    }

    /// Writes the plain form. The caller has bounded its length.
    fn write(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let point = usize::try_from(self.point.unsigned_abs()).unwrap_or(usize::MAX);
        if self.point <= 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', point));
            self.digits
                .iter()
                .for_each(|digits| out.extend_from_slice(digits));
            return;
        }
        let start = out.len();
        self.digits
            .iter()
            .for_each(|digits| out.extend_from_slice(digits));
        let significant = self.significant();
        if point < significant {
            out.insert(start + point, b'.');
        } else {
            out.extend(std::iter::repeat_n(b'0', point - significant));
        }
    }
}

/// The value of an exponent, cut off at [`EXPONENT_MAX`].
fn read_exponent(text: &str) -> i64 {
    let digits = text.trim_start_matches(['+', '-']);
    let mut size: i64 = 0;
    for digit in digits.bytes() {
        size = size
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
            .min(EXPONENT_MAX);
    }
    if text.starts_with('-') { -size } else { size }
}

fn digits_end(text: &[u8], start: usize) -> usize {
    text[start..]
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .map_or(text.len(), |offset| start + offset)
}

fn missing_digit<T>(text: &[u8], position: usize) -> Result<T, JsonError> {
    if position < text.len() {
        Fault::ExpectedDigit.at(position)
    } else {
        Fault::UnexpectedEnd.at(position)
    }
}

fn trim_start_zeros(digits: &[u8]) -> &[u8] {
    let start = digits
        .iter()
        .position(|&digit| digit != b'0')
        .unwrap_or(digits.len());
    &digits[start..]
}

fn trim_end_zeros(digits: &[u8]) -> &[u8] {
    let end = digits
        .iter()
        .rposition(|&digit| digit != b'0')
        .map_or(0, |last| last + 1);
    &digits[..end]
}

/// A text has at most `u32::MAX` bytes, so its parts are counted in `i64` without loss.
fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(EXPONENT_MAX)
}
