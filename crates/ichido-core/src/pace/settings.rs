//! What a destination's owner decides about its pace, and what holds when nothing is decided.
//!
//! Guarantee: every value of these types can be kept; none makes an operation panic or a queue stand still.

use std::time::Duration;

use super::circuit::CircuitSettings;
use super::per_second::PerSecond;

/// What a destination's owner decides about its pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Never faster than this; `None` is without limit until the destination refuses.
    pub rate_max: Option<PerSecond>,
    /// How fast a destination is called of which nothing is known. Until it refuses it is then called at most [`LEAP`](super::rate::LEAP)
    /// times as fast as it bore within a second; `None` is without limit. With many calls at once a flood would be all that it is
    /// known by when it refuses.
    pub rate_start: Option<PerSecond>,
    /// Never slower than this, however often it refuses. Only a pause or an open circuit stops it altogether.
    pub rate_floor: PerSecond,
    /// How far ahead slots are handed out. What is handed out keeps its moments when the rate falls, so this
    /// is also how long a fall takes to be felt.
    pub horizon: Duration,
    /// The longest pause after a `Retry-After`: a mistaken one must not stop a queue for days. Then one call asks again.
    pub pause_max: Duration,
    /// When the destination counts as down.
    pub circuit: CircuitSettings,
}

impl Settings {
    /// No limit until refused; then no slower than one call in ten seconds.
    pub const DEFAULT: Self = Self {
        rate_max: None,
        rate_start: None,
        rate_floor: PerSecond::clamped(0.1),
        horizon: Duration::from_millis(500),
        pause_max: Duration::from_hours(1),
        circuit: CircuitSettings::DEFAULT,
    };
}
