//! Durations as people write them: `250ms`, `3s`, `5m`, `72h`, `3d`.
//!
//! Guarantee: [`parse`] reads what [`format()`] writes as the same duration.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a whole number and a unit.
    #[error("\"{0}\" is not a duration; write a whole number and a unit: 250ms, 3s, 5m, 72h or 3d")]
    Malformed(String),
    /// Longer than any setting needs.
    #[error("\"{0}\" is longer than ten years")]
    TooLong(String),
}

/// The maximum: anything longer is a typing error.
const LONGEST: Duration = Duration::from_hours(10 * 366 * 24);

/// Parses a duration. Zero is valid.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed(text.to_owned());
    let unit_at = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(malformed)?;
    let (number, unit) = text.split_at(unit_at);
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(malformed()),
    };
    if number.is_empty() {
        return Err(malformed());
    }
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis_per_unit));
    match millis.map(Duration::from_millis) {
        Some(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(DurationError::TooLong(text.to_owned())),
    }
}

/// Formats a duration as it would be given, in the largest exact unit: `10m`.
pub fn format(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let fitting = units.iter().find(|(_, size)| 0 < millis && millis.is_multiple_of(*size));
    fitting.map_or_else(|| format!("{millis}ms"), |(unit, size)| format!("{}{unit}", millis / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_everything_else_is_refused() {
        for (text, millis) in [("0ms", 0), ("250ms", 250), ("3s", 3_000), ("5m", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["0ms", "250ms", "90s", "10m", "36h", "3d"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(parse("3d"), Ok(Duration::from_hours(72)));
        for text in ["", "3", "s", "3 s", "1.5s", "-1s", "3sec", "3S", "½s"] {
            assert_eq!(parse(text), Err(DurationError::Malformed(text.to_owned())), "{text}");
        }
        for text in ["4000d", "99999999999999999999s"] {
            assert_eq!(parse(text), Err(DurationError::TooLong(text.to_owned())), "{text}");
        }
    }
}
