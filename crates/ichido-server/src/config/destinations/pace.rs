//! The pace of a destination, and its circuit breaker.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::pace::{CircuitSettings, PaceSettings, PerSecond};

use super::super::document::Section;
use super::super::queues::at_least_one;

#[derive(Clone, Copy, Debug)]
pub(super) struct PaceConfig {
    pub(super) settings: PaceSettings,
    pub(super) max_parallel: Option<NonZeroU32>,
    pub(super) interval: Duration,
}

pub(super) fn read(section: &Section<'_>) -> PaceConfig {
    let max_rate = section.get("max_rate").map(PerSecond::clamped);
    let min_rate = PerSecond::clamped(section.get_or_default("min_rate"));
    if max_rate.is_some_and(|max| max < min_rate) {
        section.report("max_rate", "is below min_rate; raise max_rate, or lower min_rate");
    }
    let circuit = section.section("circuit").map_or(CircuitSettings::DEFAULT, |inside| circuit(&inside));
    let settings = PaceSettings {
        max_rate,
        min_rate,
        max_pause: section.get_or_default("max_pause"),
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
        max_rest: section.get_or_default("max_rest"),
        probes: at_least_one(section.get_or_default("probes")),
    };
    if circuit.max_rest < circuit.rest {
        section.report("max_rest", "is shorter than rest; raise max_rest, or lower rest");
    }
    circuit
}
