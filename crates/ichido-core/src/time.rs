//! Timestamps as values.
//!
//! Guarantee: a [`Timestamp`] is a whole number of microseconds since the Unix epoch, so it is stored unchanged in
//! PostgreSQL's `timestamptz` and SQLite's integer, and arithmetic on it saturates instead of wrapping. Nothing here
//! reads a clock; the outermost shell does, once, and passes the time in.
//!
//! ```
//! use ichido_core::time::Timestamp;
//!
//! let now = Timestamp::from_millis(1_800_000_000_500);
//! assert_eq!(now.to_string(), "2027-01-15T08:00:00.5Z");
//! ```

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time by the store's clock, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// The last representable time.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates the time `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Creates the time `secs` seconds after the epoch, or the nearest representable one.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Creates the time `millis` milliseconds after the epoch, or the nearest representable one.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Returns microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns whole milliseconds since the epoch, rounded down.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Returns the time `wait` later, or [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, wait: Duration) -> Self {
        let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// Parses what [`fmt::Display`] writes for the years 0 to 9999.
    ///
    /// Returns `None` for other text or an invalid date.
    ///
    /// ```
    /// use ichido_core::time::Timestamp;
    ///
    /// let moment = Timestamp::parse("2027-01-15T08:00:00.5Z");
    /// assert_eq!(moment, Some(Timestamp::from_micros(1_800_000_000_500_000)));
    /// assert_eq!(Timestamp::parse("2027-02-29T00:00:00Z"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (moment, fraction) = match text.strip_suffix('Z')?.split_once('.') {
            Some((moment, fraction)) if (1..=6).contains(&fraction.len()) => (moment, fraction),
            Some(_) => return None,
            None => (text.strip_suffix('Z')?, "0"),
        };
        let number = |from: usize, to: usize| {
            let digits =
                moment.get(from..to).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            digits?.parse::<i64>().ok()
        };
        let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let secs = days * 86_400 + number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let micros = format!("{fraction:0<6}").parse::<i64>().ok()?;
        let read = Self(secs * 1_000_000 + micros);
        // Formatting it again must give the same text except trailing zeros; then every part was in range.
        (read.to_string().get(..19)? == moment).then_some(read)
    }

    /// Returns how long after `earlier` this is.
    ///
    /// Returns zero if it is not later, because clocks of two machines differ.
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0).max(0);
        Duration::from_micros(micros.unsigned_abs())
    }
}

/// Converts a clock reading, rounded down to the microsecond, or to the nearest representable time.
impl From<SystemTime> for Timestamp {
    fn from(read: SystemTime) -> Self {
        match read.duration_since(UNIX_EPOCH) {
            Ok(after) => Self::EPOCH.plus(after),
            Err(before) => {
                let micros = before.duration().as_nanos().div_ceil(1_000);
                Self(i64::try_from(micros).map_or(i64::MIN, |micros| -micros))
            }
        }
    }
}

/// Formats RFC 3339 in UTC without trailing zeros in the fraction: `2027-01-15T08:00:00.5Z`.
///
/// RFC 3339 ends with the year 9999. Years after it, and before the year 0, are written with a sign.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECS_PER_DAY: i64 = 86_400;
        let (secs, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        let (days, second) = (secs.div_euclid(SECS_PER_DAY), secs.rem_euclid(SECS_PER_DAY));
        let (year, month, day) = date(days);
        match year {
            0..=9_999 => write!(f, "{year:04}")?,
            _ => write!(f, "{year:+05}")?,
        }
        write!(f, "-{month:02}-{day:02}T")?;
        write!(f, "{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)?;
        if micros != 0 {
            write!(f, ".{}", format!("{micros:06}").trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Returns the year, month and day of the day `days` after 1970-01-01, in the Gregorian calendar.
///
/// The year begins in March, so the leap day is its last day; 400 years are one era of fixed length. (Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.)
const fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    const DAYS_FROM_MARCH_OF_YEAR_0: i64 = 719_468;
    let days = days + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// The inverse of [`date`] for valid dates (`days_from_civil`).
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_parse_back_and_nothing_else_parses() {
        for micros in (0..253_402_300_799_000_000_i64).step_by(777_777_777_777_777) {
            let moment = Timestamp::from_micros(micros);
            assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment));
        }
        assert_eq!(
            Timestamp::parse("2000-02-29T23:59:59.10Z"),
            Some(Timestamp::from_micros(951_868_799_100_000))
        );
        for text in [
            "",
            "Z",
            "2027-01-15",
            "2027-01-15T08:00:00",
            "2027-01-15 08:00:00Z",
            "2027-13-15T08:00:00Z",
            "2027-01-32T08:00:00Z",
            "2027-02-29T08:00:00Z",
            "2027-01-15T24:00:00Z",
            "2027-01-15T08:60:00Z",
            "2027-01-15T08:00:00.Z",
            "2027-01-15T08:00:00.1234567Z",
            "2027-01-15T08:00:00.1+Z",
            "+027-01-15T08:00:00Z",
            "2027-01-15T08:00:00ZZ",
            "2027-01-15T08:00:00é",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_secs(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::from_secs(5)), Duration::ZERO);
        assert_eq!(Timestamp::from_secs(7).since(Timestamp::from_secs(5)), Duration::from_secs(2));
    }

    #[test]
    fn a_moment_reads_as_rfc_3339() {
        const SECOND: i64 = 1_000_000;
        for (micros, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1, "1970-01-01T00:00:00.000001Z"),
            (1_800_000_000 * SECOND + 500_000, "2027-01-15T08:00:00.5Z"),
            (951_782_400 * SECOND, "2000-02-29T00:00:00Z"),
            (951_868_799 * SECOND + 999_999, "2000-02-29T23:59:59.999999Z"),
            (4_107_542_400 * SECOND, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (-86_400 * SECOND, "1969-12-31T00:00:00Z"),
            (-2_203_891_200 * SECOND, "1900-03-01T00:00:00Z"),
            (-62_167_219_200 * SECOND, "0000-01-01T00:00:00Z"),
            (-62_167_219_201 * SECOND, "-0001-12-31T23:59:59Z"),
            (253_402_300_799 * SECOND, "9999-12-31T23:59:59Z"),
            (253_402_300_800 * SECOND, "+10000-01-01T00:00:00Z"),
            (i64::MAX, "+294247-01-10T04:00:54.775807Z"),
            (i64::MIN, "-290308-12-21T19:59:05.224192Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).to_string(), text, "{micros}");
        }
    }

    #[test]
    fn dates_agree_with_httpdate() {
        // Every 9 days and some seconds from 1970 to 9999.
        for secs in (0..253_402_300_799_u64).step_by(9 * 86_400 + 12_347) {
            let moment = UNIX_EPOCH + Duration::from_secs(secs);
            let header = httpdate::fmt_http_date(moment);
            let ours = Timestamp::from(moment).to_string();
            assert_eq!(
                (&ours[..4], &ours[8..10], &ours[11..19]),
                (&header[12..16], &header[5..7], &header[17..25])
            );
        }
    }

    #[test]
    fn a_clocks_reading_is_taken_to_the_microsecond_before_it() {
        let nanos = Duration::from_nanos(1_500);
        assert_eq!(Timestamp::from(UNIX_EPOCH), Timestamp::EPOCH);
        assert_eq!(Timestamp::from(UNIX_EPOCH + nanos), Timestamp::from_micros(1));
        assert_eq!(Timestamp::from(UNIX_EPOCH - nanos), Timestamp::from_micros(-2));
        assert_eq!(Timestamp::from_millis(7), Timestamp::from_micros(7_000));
        assert_eq!(Timestamp::from_millis(i64::MAX), Timestamp::MAX);
    }

    #[test]
    fn millis_round_down_before_the_epoch_too() {
        assert_eq!(Timestamp::from_micros(1_999).as_millis(), 1);
        assert_eq!(Timestamp::from_micros(-1).as_millis(), -1);
    }
}
