//! A rate, as a value.
//!
//! Guarantee: a [`PerSecond`] is a finite number from [`PerSecond::MIN`] to [`PerSecond::MAX`], so that
//! arithmetic on rates neither divides by zero nor yields what is not a number.

use std::time::Duration;

use super::settings::Settings;

/// Sends per second.
// Invariant: finite, `MIN..=MAX`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PerSecond(f64);

impl PerSecond {
    /// Once a day; slower than that is a schedule, not a pace.
    pub const MIN: Self = Self(1.0 / 86_400.0);
    /// Ten microseconds apart. Slots are whole microseconds, so a rate just below this one is kept a tenth too
    /// slow; above it, more would be lost.
    pub const MAX: Self = Self(100_000.0);

    /// The nearest rate that can be kept. What is not a number is the slowest, as the side that harms nobody.
    pub const fn clamped(per_second: f64) -> Self {
        if per_second.is_nan() {
            return Self::MIN;
        }
        Self(per_second.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// The rate as a number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The time between two sends, in whole microseconds and rounded up: were it rounded down, slots taken one
    /// by one would be faster than the rate.
    pub fn spacing(self) -> Duration {
        const MICROS_PER_SECOND: f64 = 1e6;
        let micros = (MICROS_PER_SECOND / self.0).ceil();
        Duration::from_secs_f64(micros / MICROS_PER_SECOND)
    }

    pub(super) fn times(self, share: f64) -> Self {
        Self::clamped(self.0 * share)
    }

    /// The faster of two.
    pub(super) fn faster(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The slower of two.
    pub(super) fn slower(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The nearest rate between the floor and the cap.
    pub(super) fn within(self, settings: &Settings) -> Self {
        let cap = settings.rate_max.unwrap_or(Self::MAX).0;
        // The cap wins over a floor above it: it is what the destination's owner allowed.
        Self(self.0.max(settings.rate_floor.0).min(cap))
    }
}
