//! Moments, as values.
//!
//! Guarantee: a [`Timestamp`] is a whole number of microseconds since the Unix epoch, so it goes through
//! PostgreSQL's `timestamptz` and SQLite's integer unchanged, and arithmetic on it saturates instead of
//! wrapping. Nothing here reads a clock; the outermost shell does, once, and passes the moment in.

use std::time::Duration;

/// A moment by the store's clock, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// The last moment that can be written down.
    pub const MAX: Self = Self(i64::MAX);

    /// The moment `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The moment `secs` seconds after the epoch, or the nearest that can be written down.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since the epoch, rounded down.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// The moment `wait` later, or [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, wait: Duration) -> Self {
        let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long after `earlier` this is; zero when it is not after it, since clocks of two machines differ.
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0).max(0);
        Duration::from_micros(micros.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_secs(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::from_secs(5)), Duration::ZERO);
        assert_eq!(Timestamp::from_secs(7).since(Timestamp::from_secs(5)), Duration::from_secs(2));
    }

    #[test]
    fn millis_round_down_before_the_epoch_too() {
        assert_eq!(Timestamp::from_micros(1_999).as_millis(), 1);
        assert_eq!(Timestamp::from_micros(-1).as_millis(), -1);
    }
}
