//! The pace of a destination, and its circuit breaker.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::pace::{CircuitSettings, PerSecond, PaceSettings};

use super::super::document::Section;
use super::super::queues::at_least_one;

#[derive(Clone, Copy, Debug)]
pub(super) struct PaceConfig {
    pub(super) settings: PaceSettings,
    pub(super) max_parallel: Option<NonZeroU32>,
    pub(super) interval: Duration,
}

pub(super) fn read(section: &Section<'_>) -> PaceConfig {
    let rate_max = section.get("rate_max").map(PerSecond::clamped);
    let rate_floor = PerSecond::clamped(section.get_or_default("rate_floor"));
    if rate_max.is_some_and(|max| max < rate_floor) {
        section.report("rate_max", "is below rate_floor; raise rate_max, or lower rate_floor");
    }
    let circuit = section.section("circuit").map_or(CircuitSettings::DEFAULT, |inside| circuit(&inside));
    let settings = PaceSettings {
        rate_max,
        rate_floor,
        pause_max: section.get_or_default("pause_max"),
        circuit,
        ..PaceSettings::DEFAULT
    };
    PaceConfig {
        settings,
        max_parallel: section.get("max_parallel").and_then(NonZeroU32::new),
        interval: section.get_or_default("interval"),
    }
}

fn circuit(section: &Section<'_>) -> CircuitSettings {
    let circuit = CircuitSettings {
        failures: at_least_one(section.get_or_default("failures")),
        rest: section.get_or_default("rest"),
        rest_max: section.get_or_default("rest_max"),
        probes: at_least_one(section.get_or_default("probes")),
    };
    if circuit.rest_max < circuit.rest {
        section.report("rest_max", "is shorter than rest; raise rest_max, or lower rest");
    }
    circuit
}
