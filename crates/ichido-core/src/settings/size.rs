//! Sizes as people write them: `2 MiB`, `512 KiB`, `1000`.
//!
//! Guarantee: [`parse`] reads what [`format()`] writes as the same number of bytes.
//!
//! The units are binary. `KB` and `K` are 1000 bytes to some and 1024 to others, so they are refused with both numbers.

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not a whole number, with a binary unit or none.
    #[error(
        "\"{0}\" is not a size; write a whole number of bytes, or one with KiB, MiB or GiB, such as \"2 MiB\""
    )]
    Malformed(String),
    /// A unit that is decimal to some and binary to others.
    #[error("\"{text}\" is ambiguous: {decimal} or {binary} bytes; write \"{meant}\", or a number of bytes")]
    Ambiguous {
        /// What was written.
        text: String,
        /// Its bytes with the decimal unit.
        decimal: u64,
        /// Its bytes with the binary unit.
        binary: u64,
        /// How to write the binary one.
        meant: String,
    },
    /// More than a `u64` holds.
    #[error("\"{0}\" is too large")]
    TooLarge(String),
}

/// A unit with the letter that could also mean its decimal variant, and the bytes of that variant.
struct SizeUnit {
    name: &'static str,
    bytes: u64,
    letter: &'static str,
    decimal: u64,
}

/// Largest first.
const UNITS: [SizeUnit; 3] = [
    SizeUnit { name: "GiB", bytes: 1 << 30, letter: "g", decimal: 1_000_000_000 },
    SizeUnit { name: "MiB", bytes: 1 << 20, letter: "m", decimal: 1_000_000 },
    SizeUnit { name: "KiB", bytes: 1 << 10, letter: "k", decimal: 1_000 },
];

/// Parses a size in bytes. Zero is valid.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let malformed = || SizeError::Malformed(text.to_owned());
    let unit_at = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty() {
        return Err(malformed());
    }
    let times = |bytes: u64| {
        let product = number.parse::<u64>().ok().and_then(|number| number.checked_mul(bytes));
        product.ok_or_else(|| SizeError::TooLarge(text.to_owned()))
    };
    if unit.is_empty() {
        return times(1);
    }
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    if let Some(known) = UNITS.iter().find(|known| known.name == unit) {
        return times(known.bytes);
    }
    let letter = unit.to_ascii_lowercase();
    let letter = letter.strip_suffix('b').unwrap_or(&letter);
    let meant = UNITS.iter().find(|known| known.letter == letter).ok_or_else(malformed)?;
    Err(SizeError::Ambiguous {
        text: text.to_owned(),
        decimal: times(meant.decimal)?,
        binary: times(meant.bytes)?,
        meant: format!("{number} {}", meant.name),
    })
}

/// Formats a size as it would be given, in the largest exact unit.
///
/// Examples are `64 KiB`, or `1000` if no unit is exact.
pub fn format(bytes: u64) -> String {
    let fitting = UNITS.iter().find(|unit| 0 < bytes && bytes.is_multiple_of(unit.bytes));
    fitting.map_or_else(|| bytes.to_string(), |unit| format!("{} {}", bytes / unit.bytes, unit.name))
}

/// Formats a size for a sentence: `64 KiB`, `1000 bytes`.
pub fn format_in_text(bytes: usize) -> String {
    let text = format(bytes as u64);
    match bytes {
        1 => "1 byte".to_owned(),
        _ if text.ends_with('B') => text,
        _ => format!("{text} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_units_and_plain_bytes_are_read_and_written_back_the_same() {
        for (text, bytes) in
            [("0", 0), ("1000", 1_000), ("512 KiB", 512 << 10), ("2 MiB", 2 << 20), ("3 GiB", 3 << 30)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
            assert_eq!(format(bytes), text);
        }
        assert_eq!(parse("2MiB"), parse("2 MiB"));
        assert_eq!([1024, 1025, 1536 << 10].map(format), ["1 KiB", "1025", "1536 KiB"]);
        assert_eq!([1, 1025, 2048].map(format_in_text), ["1 byte", "1025 bytes", "2 KiB"]);
    }

    #[test]
    fn ambiguous_size_is_refused_with_both_values() {
        let error = parse("64 KB").unwrap_err().to_string();
        assert_eq!(
            error,
            "\"64 KB\" is ambiguous: 64000 or 65536 bytes; write \"64 KiB\", or a number of bytes"
        );
        for text in ["64kb", "64K", "2 mb", "2M", "1g", "1 GB"] {
            assert!(matches!(parse(text), Err(SizeError::Ambiguous { .. })), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_sizes() {
        for text in ["", "KiB", "2  MiB", "2 ", "-1", "1.5 MiB", "2 mib", "2 bytes", "2 B", "½ KiB", "2 TiB"]
        {
            assert_eq!(parse(text), Err(SizeError::Malformed(text.to_owned())), "{text:?}");
        }
        for text in ["99999999999999999999", "18014398509481984 KiB"] {
            assert_eq!(parse(text), Err(SizeError::TooLarge(text.to_owned())), "{text}");
        }
    }
}
