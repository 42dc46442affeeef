//! A rate as a value.
//!
//! Guarantee: a [`PerSecond`] is a finite number from [`PerSecond::MIN`] to [`PerSecond::MAX`], so arithmetic on rates
//! never divides by zero or yields NaN.

use std::time::Duration;

use super::settings::PaceSettings;

/// Calls per second.
// Invariant: finite, `MIN..=MAX`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PerSecond(f64);

impl PerSecond {
    /// Once a day; anything slower is a schedule, not a pace.
    pub const MIN: Self = Self(1.0 / 86_400.0);
    /// Ten microseconds apart.
    ///
    /// Slots are whole microseconds, so a rate just below this one is a tenth too slow; above it, more would be lost.
    pub const MAX: Self = Self(100_000.0);

    /// Returns the nearest valid rate. NaN gives the slowest, which harms nobody.
    pub const fn clamped(per_second: f64) -> Self {
        if per_second.is_nan() {
            return Self::MIN;
        }
        Self(per_second.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Returns the rate as a number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Returns the time between two calls, in whole microseconds rounded up.
    ///
    /// Rounded down, slots taken one by one would exceed the rate.
    pub fn spacing(self) -> Duration {
        const MICROS_PER_SECOND: f64 = 1e6;
        let micros = (MICROS_PER_SECOND / self.0).ceil();
        Duration::from_secs_f64(micros / MICROS_PER_SECOND)
    }

    pub(super) fn times(self, share: f64) -> Self {
        Self::clamped(self.0 * share)
    }

    /// Returns the faster of two.
    pub(super) fn faster(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Returns the slower of two.
    pub(super) fn slower(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Returns the nearest rate between the floor and the cap.
    pub(super) fn within(self, settings: &PaceSettings) -> Self {
        let cap = settings.max_rate.unwrap_or(Self::MAX).0;
        // The cap wins over a floor above it: it is what the destination's owner allowed.
        Self(self.0.max(settings.min_rate.0).min(cap))
    }
}
