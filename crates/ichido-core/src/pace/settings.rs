//! What a destination's owner configures about its pace, and the defaults.
//!
//! Guarantee: every value of these types is valid; none makes an operation panic or a queue stall.

use std::time::Duration;

use super::circuit::CircuitSettings;
use super::per_second::PerSecond;

/// What a destination's owner configures about its pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceSettings {
    /// The maximum rate; `None` is unlimited until the destination refuses.
    pub max_rate: Option<PerSecond>,
    /// The starting rate of an unknown destination; `None` is unlimited.
    ///
    /// Until it refuses, it is called at most [`LEAP`](super::rate::LEAP) times as fast as it accepted within a second.
    /// With many parallel calls, a flood would otherwise be all that is known about it when it refuses.
    pub rate_start: Option<PerSecond>,
    /// The minimum rate, however often it refuses.
    ///
    /// Only a pause or an open circuit stops it completely.
    pub min_rate: PerSecond,
    /// How far ahead slots are handed out.
    ///
    /// Slots keep their times when the rate falls, so this is also how long a fall takes to have effect.
    pub horizon: Duration,
    /// The longest pause after a `Retry-After`.
    ///
    /// A wrong one must not stop a queue for days. Then one call probes again.
    pub max_pause: Duration,
    /// A requested pause of this length or more applies to all calls, however seldom the destination refuses.
    ///
    /// It is not a refusal of the kind that comes at any rate: the destination says that it will accept nothing for a
    /// while. A shorter one may concern the refused message alone.
    pub long_pause: Duration,
    /// When the destination counts as down.
    pub circuit: CircuitSettings,
    /// Whether an operator stopped all calls.
    pub is_paused: bool,
}

impl PaceSettings {
    /// No limit until refused; then no slower than one call in ten seconds.
    pub const DEFAULT: Self = Self {
        max_rate: None,
        rate_start: None,
        min_rate: PerSecond::clamped(0.1),
        horizon: Duration::from_millis(500),
        max_pause: Duration::from_hours(1),
        long_pause: Duration::from_hours(1),
        circuit: CircuitSettings::DEFAULT,
        is_paused: false,
    };
}
