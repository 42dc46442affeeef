//! The status of a destination for operators: gauges, and one log line per change.
//!
//! Anything that slows or stops calls is a warning, and so is the end of an outage. Expected consequences, the end of a
//! pause and a probe, are logged at the info level.

use std::sync::Mutex;

use ichido_core::pace::{Circuit, PaceSettings, PerSecond, Rate};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;

use super::row::Row;
use crate::worker::metrics::{CircuitState, DestinationGauges};

#[derive(Clone, Copy, Debug, PartialEq)]
struct PaceStatus {
    paused_until: Option<Timestamp>,
    circuit: CircuitState,
    /// It throttled calls, and all workers follow its limit.
    is_slowed: bool,
    /// The rate that an operator set instead of the configured one.
    set: Option<PerSecond>,
    /// An operator stopped all calls.
    is_paused: bool,
}

impl PaceStatus {
    /// No restriction, as far as is known.
    const UNRESTRICTED: Self = Self {
        paused_until: None,
        circuit: CircuitState::Closed,
        is_slowed: false,
        set: None,
        is_paused: false,
    };

    fn new(row: &Row, settings: &PaceSettings, now: Timestamp) -> Self {
        let pace = &row.pace;
        let paused_until = pace.paused_until.min(now.plus(settings.max_pause));
        Self {
            paused_until: Some(paused_until).filter(|until| now < *until),
            circuit: match pace.circuit {
                Circuit::Closed { .. } => CircuitState::Closed,
                Circuit::Open { until, .. } if now < until => CircuitState::Open,
                // The next call is a probe, whichever node makes it.
                Circuit::Open { .. } | Circuit::HalfOpen { .. } => CircuitState::HalfOpen,
            },
            is_slowed: matches!(pace.rate, Rate::Paced(_)),
            set: row.max_rate,
            is_paused: row.is_paused,
        }
    }
}

/// Reports a destination's status.
pub(super) struct StatusReporter {
    last: Mutex<PaceStatus>,
    gauges: DestinationGauges,
}

impl StatusReporter {
    pub(super) fn new(destination: &str) -> Self {
        Self { last: Mutex::new(PaceStatus::UNRESTRICTED), gauges: DestinationGauges::new(destination) }
    }

    /// Updates the gauges and logs what changed since the last report.
    ///
    /// Reads the status under the lock, so nothing older is reported after it.
    pub(super) fn report(
        &self,
        destination: &str,
        settings: &PaceSettings,
        known: impl FnOnce() -> (Row, Timestamp),
    ) {
        let mut last = lock(&self.last);
        let (row, now) = known();
        let settings = row.settings(settings);
        let is = PaceStatus::new(&row, &settings, now);
        let limit = row.pace.limit(&settings).map(PerSecond::get);
        self.gauges.set(is.is_paused || is.paused_until.is_some(), is.circuit, limit);
        log(destination, std::mem::replace(&mut *last, is), is, limit, now);
    }
}

fn log(destination: &str, was: PaceStatus, is: PaceStatus, per_second: Option<f64>, now: Timestamp) {
    match (was.paused_until, is.paused_until) {
        (None, Some(until)) => {
            let pause = until.since(now);
            tracing::warn!(destination, ?pause, "destination asked for a pause; calls stopped");
        }
        (Some(_), None) => tracing::info!(destination, "pause that a destination asked for ended"),
        _ => (),
    }
    match (was.is_paused, is.is_paused) {
        (false, true) => tracing::warn!(destination, "operator paused a destination; calls stopped"),
        (true, false) => tracing::warn!(destination, "operator resumed a destination"),
        _ => (),
    }
    match is.circuit {
        circuit if circuit == was.circuit => (),
        CircuitState::Open => {
            tracing::warn!(destination, "circuit breaker opened; calls stop until a probe");
        }
        CircuitState::HalfOpen => {
            tracing::info!(destination, "circuit breaker half-opened; probing the destination");
        }
        CircuitState::Closed => {
            tracing::warn!(destination, "circuit breaker closed; the destination is up again");
        }
    }
    if is.is_slowed && !was.is_slowed {
        let per_second = per_second.map(|rate| (rate * 100.0).round() / 100.0);
        tracing::warn!(destination, per_second, "destination throttled calls; all workers slowed down");
    }
    if is.set != was.set {
        let set = is.set.map(PerSecond::get);
        tracing::warn!(
            destination,
            per_second = set,
            "operator set a destination's pace; without per_second as configured"
        );
    }
}
