//! Durations in the form of model settings.
//!
//! Guarantee: an accepted text means one duration of at most a day.
//!
//! `2.5` and `2.5s` are seconds; `250ms` and `14m` have units.

use std::time::Duration;

use ichido_core::settings::duration;

/// The maximum: a delay of more than a day is a typing error.
const LONGEST: Duration = Duration::from_hours(24);

/// Parses a duration, or returns what is wrong with it.
pub fn parse(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let read = if is_number {
        number.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    } else {
        duration::parse(text).ok()
    };
    match read {
        Some(duration) if duration <= LONGEST => Ok(duration),
        Some(_) => Err("it is longer than a day".to_owned()),
        None => Err("it is not a duration; write seconds such as 2.5, or 250ms, 3s, 14m".to_owned()),
    }
}

/// Formats a duration such as `7m 30s` or `2.5s`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) if duration.subsec_millis() == 0 => format!("{rest}s"),
        (0, 0) => format!("{}s", (duration.as_secs_f64() * 10.0).round() / 10.0),
        (0, _) => format!("{minutes}m {rest:02}s"),
        (_, _) => format!("{hours}h {minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_with_fraction_or_explicit_unit() {
        for (text, millis) in
            [("2.5", 2_500), ("0", 0), ("20", 20_000), ("2.5s", 2_500), ("250ms", 250), ("14m", 840_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1", "1e3", "two", "1.2.3", "2 s", "2d", "NaN"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for (millis, text) in [
            (450_000, "7m 30s"),
            (5_000, "5s"),
            (2_500, "2.5s"),
            (7_260_000, "2h 01m"),
            (1_050_000, "17m 30s"),
        ] {
            assert_eq!(format_duration(Duration::from_millis(millis)), text);
        }
    }
}
