//! Times, durations and numbers for people.

use std::time::Duration;

use ichido_core::time::Timestamp;

use super::texts::{Texts, fill};

/// A time on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShownTime {
    /// For programs (RFC 3339).
    pub(super) iso: String,
    /// To the second, in UTC.
    pub(super) full: String,
    /// Relative to now.
    pub(super) short: String,
}

impl ShownTime {
    /// Returns a stored time; a text that is not a time is shown as it is.
    pub(super) fn new(t: &Texts, text: &str, now: Timestamp) -> Self {
        let short = Timestamp::parse(text).map_or_else(|| text.to_owned(), |at| relative(t, at, now));
        Self { iso: text.to_owned(), full: full(text), short }
    }
}

/// Returns a time to the second: `2026-11-18 03:12:05 UTC`.
pub(super) fn full(text: &str) -> String {
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(time)) if Timestamp::parse(text).is_some() => format!("{day} {time} UTC"),
        _ => text.to_owned(),
    }
}

/// Returns how far away a time is.
pub(super) fn relative(t: &Texts, at: Timestamp, now: Timestamp) -> String {
    let (distance, texts) = if now < at {
        (at.since(now), [t.in_seconds, t.in_minutes, t.in_hours, t.in_days])
    } else {
        (now.since(at), [t.ago_seconds, t.ago_minutes, t.ago_hours, t.ago_days])
    };
    let seconds = distance.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, 0),
        120..7_200 => (seconds / 60, 1),
        7_200..172_800 => (seconds / 3_600, 2),
        _ => (seconds / 86_400, 3),
    };
    fill(texts.get(unit).copied().unwrap_or_default(), &[("n", &count.to_string())])
}

/// Returns a duration with two or three digits: `340 ms`, `2.1 s`, `4 min`.
pub(super) fn duration(taken: Duration) -> String {
    let (millis, seconds) = (taken.as_millis(), taken.as_secs());
    match seconds {
        0 => format!("{millis} ms"),
        1..10 => format!("{}.{} s", seconds, taken.subsec_millis() / 100),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns a number with its thousands separated: `1,204`.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::dashboard::language::Language;

    #[test]
    fn times_are_relative_and_exact() {
        let t = Texts::of(Language::English);
        let now = Timestamp::from_secs(1_000_000);
        for (seconds, expected) in [
            (1_000_000, "0 s ago"),
            (999_881, "119 s ago"),
            (999_880, "2 min ago"),
            (992_800, "2 h ago"),
            (827_200, "2 d ago"),
            (1_000_030, "in 30 s"),
            (1_007_200, "in 2 h"),
        ] {
            assert_eq!(relative(t, Timestamp::from_secs(seconds), now), expected);
        }
        let shown = ShownTime::new(t, &now.to_string(), now);
        assert_eq!((shown.full.as_str(), shown.short.as_str()), ("1970-01-12 13:46:40 UTC", "0 s ago"));
        assert_eq!(full("soon"), "soon");
    }

    #[test]
    fn durations_and_numbers_are_short() {
        for (millis, expected) in [
            (0, "0 ms"),
            (340, "340 ms"),
            (2_140, "2.1 s"),
            (59_000, "59 s"),
            (240_000, "4 min"),
            (9_000_000, "2 h"),
            (200_000_000, "2 d"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), expected);
        }
        for (number, expected) in [(0, "0"), (999, "999"), (1_204, "1,204"), (-1_234_567, "-1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
    }
}
