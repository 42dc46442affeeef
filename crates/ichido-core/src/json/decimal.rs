//! A decimal number: its significant digits and the position of the point.
//!
//! Guarantee: it borrows the digits, so it needs no memory whatever the exponent, and the length of the plain form is
//! known before a digit of it is written.

/// The value to which exponents are clamped.
///
/// It is far beyond any limit on digits, and far from the ends of `i64`, so adding the length of a text cannot
/// overflow.
const MAX_EXPONENT: i64 = i64::MAX / 4;

/// The number of significant digits that a double always preserves.
///
/// Every decimal with this many digits has its own double, so a double parsed from one is written with the same digits.
pub(super) const DOUBLE_DIGITS: usize = 15;

/// A number as its significant digits and the position of the point.
pub(super) struct Decimal<'a> {
    negative: bool,
    /// The significant digits without zeros at either end, in two parts as the point divided them.
    digits: [&'a [u8]; 2],
    /// How many digits precede the point: negative for 0.001, more than the digits for 1000.
    point: i64,
}

impl<'a> Decimal<'a> {
    /// Splits a number whose grammar has been checked.
    pub(super) fn read(text: &'a str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // Zeros count only between other digits.
        let whole = trim_start_zeros(whole.as_bytes());
        let fraction = trim_end_zeros(fraction.as_bytes());
        let (digits, point) = match (whole, fraction) {
            ([], []) => {
                return Self { negative: false, digits: [&[], &[]], point: 1 };
            }
            (whole, []) => ([trim_end_zeros(whole), &[]], length(whole)),
            ([], fraction) => {
                let significant = trim_start_zeros(fraction);
                ([&[], significant], length(significant) - length(fraction))
            }
            (whole, fraction) => ([whole, fraction], length(whole)),
        };
        Self { negative, digits, point: point + exponent }
    }

    /// Returns how many digits are significant; none for zero.
    fn significant(&self) -> usize {
        self.digits[0].len() + self.digits[1].len()
    }

    /// Returns how many digits the plain form has, including the zero before a point.
    pub(super) fn plain_digits(&self) -> usize {
        let significant = self.significant();
        let point = usize::try_from(self.point.unsigned_abs()).unwrap_or(usize::MAX);
        if self.point <= 0 {
            point.saturating_add(significant).saturating_add(1)
        } else {
            point.max(significant)
        }
    }

    /// Returns whether the shortest spelling of the nearest double is this decimal's plain form.
    ///
    /// It is if it has few enough digits and is in the range that ECMAScript writes without an exponent.
    pub(super) fn is_its_own_double(&self) -> bool {
        self.significant() <= DOUBLE_DIGITS && -6 < self.point && self.point <= 21
    }

    /// Writes the plain form. The caller has checked its length.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let point = usize::try_from(self.point.unsigned_abs()).unwrap_or(usize::MAX);
        if self.point <= 0 {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', point));
            self.write_digits(out);
            return;
        }
        let start = out.len();
        self.write_digits(out);
        let significant = self.significant();
        if point < significant {
            out.insert(start + point, b'.');
        } else {
            out.extend(std::iter::repeat_n(b'0', point - significant));
        }
    }

    fn write_digits(&self, out: &mut Vec<u8>) {
        let [first, second] = self.digits;
        out.extend_from_slice(first);
        out.extend_from_slice(second);
    }
}

/// Returns the value of an exponent, clamped to [`MAX_EXPONENT`].
fn read_exponent(text: &str) -> i64 {
    let digits = text.trim_start_matches(['+', '-']);
    let mut size: i64 = 0;
    for digit in digits.bytes() {
        size = size.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(MAX_EXPONENT);
    }
    if text.starts_with('-') { -size } else { size }
}

fn trim_start_zeros(digits: &[u8]) -> &[u8] {
    let start = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    &digits[start..]
}

fn trim_end_zeros(digits: &[u8]) -> &[u8] {
    let end = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    &digits[..end]
}

/// Converts a length.
///
/// A text has at most `u32::MAX` bytes, so `i64` holds it without loss.
fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(MAX_EXPONENT)
}
