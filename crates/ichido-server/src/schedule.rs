//! `priority`, `delay` and `run_at`: the same in a request, in a line of a batch and on the command line.
//!
//! Guarantee: a schedule has at most one of `delay` and `run_at`, and neither is further ahead than `MAX_DELAY`. It is not part
//! of what makes two requests the same: under one key the first schedule applies.

// Spec: H5.

use std::time::Duration;

use ichido_core::json::JsonValue;
use ichido_core::settings::duration;
use ichido_core::time::Timestamp;
use ichido_store::message::{NewMessage, PRIORITY_DEFAULT};

use crate::limits::MAX_DELAY;

/// The members of a line that form its schedule.
pub const MEMBERS: [&str; 3] = ["priority", "delay", "run_at"];

/// When a message is first sent, and before which others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    priority: Option<u8>,
    start: Option<Start>,
}

/// The earliest time of the first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    After(Duration),
    At(Timestamp),
}

/// Why a schedule is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A value is not valid.
    #[error("{name} {what}")]
    Invalid {
        /// Its name.
        name: &'static str,
        /// What it should be.
        what: String,
    },
    /// Two start times were given.
    #[error("delay and run_at are both given; send one of them")]
    TwoStarts,
    /// The time is too far ahead.
    #[error("run_at is more than {} ahead; choose an earlier time", duration::format(MAX_DELAY))]
    TooFar,
}

impl Schedule {
    /// Combines the parts of a schedule.
    ///
    /// The store's clock decides when `run_at` is reached; `now` only limits it.
    pub fn new(
        priority: Option<u8>,
        delay: Option<Duration>,
        run_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, ScheduleError> {
        let start = match (delay, run_at) {
            (None, None) => None,
            (Some(delay), None) => Some(Start::After(delay)),
            (None, Some(run_at)) if MAX_DELAY < run_at.since(now) => return Err(ScheduleError::TooFar),
            (None, Some(run_at)) => Some(Start::At(run_at)),
            (Some(_), Some(_)) => return Err(ScheduleError::TwoStarts),
        };
        Ok(Self { priority, start })
    }

    /// Reads the members of a line: a number and two strings.
    pub fn from_line(line: JsonValue<'_, '_>, now: Timestamp) -> Result<Self, ScheduleError> {
        fn read<T>(
            name: &'static str,
            text: Option<&str>,
            parse: fn(&str) -> Result<T, String>,
        ) -> Result<T, ScheduleError> {
            let read = text.map_or_else(|| Err("is not a string".to_owned()), parse);
            read.map_err(|what| ScheduleError::Invalid { name, what })
        }
        let priority = line.get("priority").map(|value| {
            // Any value that is not a number gets the error of an empty text.
            read("priority", Some(value.as_number_text().unwrap_or_default()), parse_priority)
        });
        let delay = line.get("delay").map(|value| read("delay", value.as_str().as_deref(), parse_delay));
        let run_at = line.get("run_at").map(|value| read("run_at", value.as_str().as_deref(), parse_run_at));
        Self::new(priority.transpose()?, delay.transpose()?, run_at.transpose()?, now)
    }

    /// Returns it with the parts of another one where it has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { priority: self.priority.or(other.priority), start: self.start.or(other.start) }
    }

    /// Returns whether nothing was given.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns the query of a request with this schedule: `?priority=1&delay=30s`, or nothing.
    pub fn to_query(self) -> String {
        let priority = self.priority.map(|priority| format!("priority={priority}"));
        let start = self.start.map(|start| match start {
            Start::After(delay) => format!("delay={}", duration::format(delay)),
            Start::At(run_at) => format!("run_at={run_at}"),
        });
        let parts: Vec<String> = priority.into_iter().chain(start).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    /// Gives a message this schedule.
    pub(crate) fn apply(self, message: NewMessage) -> NewMessage {
        let (delay, run_at) = match self.start {
            None => (Duration::ZERO, None),
            Some(Start::After(delay)) => (delay, None),
            Some(Start::At(run_at)) => (Duration::ZERO, Some(run_at)),
        };
        NewMessage { priority: self.priority.unwrap_or(PRIORITY_DEFAULT), delay, run_at, ..message }
    }
}

/// Parses a priority, or returns what it should be.
pub fn parse_priority(text: &str) -> Result<u8, String> {
    let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.ok_or_else(|| {
        format!(
            "must be a whole number from 0, which is sent first, to 255; leave it out for {PRIORITY_DEFAULT}"
        )
    })
}

/// Parses a delay, or returns what it should be.
pub fn parse_delay(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(delay) if delay <= MAX_DELAY => Ok(delay),
        Err(duration::DurationError::Malformed(_)) => {
            Err("is not a duration; write a whole number and a unit: 250ms, 30s, 5m, 2h or 3d".to_owned())
        }
        Ok(_) | Err(duration::DurationError::TooLong(_)) => {
            Err(format!("is longer than {}; shorten it", duration::format(MAX_DELAY)))
        }
    }
}

/// Parses a time, or returns what it should be.
pub fn parse_run_at(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| {
        "is not a time in UTC; write it with a Z at its end, such as 2026-11-15T03:00:00Z, with at most 6 fractional digits"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use ichido_core::json::Document;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn line(text: &str) -> Result<Schedule, String> {
        let document = Document::parse(text.as_bytes(), 1_000).expect("JSON");
        Schedule::from_line(document.root(), NOW).map_err(|error| error.to_string())
    }

    #[test]
    fn a_schedule_survives_its_query() {
        for (given, query) in [
            ("{}", ""),
            (r#"{"priority":0}"#, "?priority=0"),
            (r#"{"priority":255,"delay":"90s"}"#, "?priority=255&delay=90s"),
            (r#"{"delay":"366d"}"#, "?delay=366d"),
            (r#"{"run_at":"2027-01-15T08:00:00.5Z"}"#, "?run_at=2027-01-15T08:00:00.5Z"),
            (r#"{"run_at":"0001-01-01T00:00:00Z"}"#, "?run_at=0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(line(given).map(Schedule::to_query).as_deref(), Ok(query), "{given}");
        }
    }

    #[test]
    fn bad_values_are_refused_with_their_name() {
        for (given, part) in [
            (r#"{"priority":256}"#, "priority must be a whole number from 0"),
            (r#"{"priority":-1}"#, "priority must be"),
            (r#"{"priority":1.5}"#, "priority must be"),
            (r#"{"priority":"1"}"#, "priority must be"),
            (r#"{"priority":null}"#, "priority must be"),
            (r#"{"delay":30}"#, "delay is not a string"),
            (r#"{"delay":"soon"}"#, "delay is not a duration"),
            (r#"{"delay":"367d"}"#, "delay is longer than 366d"),
            (r#"{"delay":"99999d"}"#, "delay is longer than 366d"),
            (r#"{"run_at":1}"#, "run_at is not a string"),
            (r#"{"run_at":"2027-01-15T08:00:00+01:00"}"#, "run_at is not a time in UTC"),
            (r#"{"run_at":"2029-01-15T08:00:00Z"}"#, "run_at is more than 366d ahead"),
            (r#"{"delay":"1s","run_at":"2027-01-15T08:00:00Z"}"#, "both given"),
        ] {
            let refused = line(given).expect_err(given);
            assert!(refused.contains(part), "{given}: {refused}");
        }
    }

    #[test]
    fn a_lines_own_start_replaces_the_default_one() {
        let flags = line(r#"{"priority":1,"delay":"30s"}"#).unwrap();
        let own = line(r#"{"run_at":"2027-01-15T08:00:00Z"}"#).unwrap();
        assert_eq!(own.or(flags).to_query(), "?priority=1&run_at=2027-01-15T08:00:00Z");
        assert_eq!(Schedule::default().or(flags), flags);
        assert!(Schedule::default().is_empty() && !flags.is_empty());
    }
}
