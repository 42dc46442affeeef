//! The wall clock, for headers with a date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time of this machine.
#[expect(clippy::disallowed_methods, reason = "the server is the outermost shell and sends a date")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Formats a time as RFC 3339, in UTC and whole seconds, rounded up: a client that comes then is not too early.
pub(crate) fn rfc_3339(moment: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = since.as_secs() + u64::from(0 < since.subsec_nanos());
    let (year, month, day) = date(seconds / DAY);
    let second = seconds % DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the year, month and day that is this many days after 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while 365 + u64::from(is_leap(year)) <= days {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_rfc_3339_and_rounded_up() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_798_761_599_001, "2027-01-01T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc_3339(UNIX_EPOCH + Duration::from_millis(ms)), expected);
        }
    }
}
