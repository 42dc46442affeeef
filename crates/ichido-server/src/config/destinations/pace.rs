//! How fast a destination may be called, and when it counts as down.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido::worker::limits::PARALLELISM_MAX;
use ichido_core::pace::{CircuitSettings, PerSecond, Settings};
use ichido_core::retry::WAIT_MAX;
use ichido_core::settings::Faults;
use ichido_core::settings::duration;

use super::super::document::Section;

/// The most failures or probes that may be asked for.
const COUNT_MAX: u32 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    pub(super) settings: Settings,
    pub(super) max_parallel: Option<NonZeroU32>,
    pub(super) interval: Duration,
}

pub(super) fn read(section: &mut Section<'_>, faults: &mut Faults) -> Paced {
    let max_parallel = section.count("max_parallel", 1..=PARALLELISM_MAX, faults).and_then(NonZeroU32::new);
    let interval = bounded(section, "interval", faults).unwrap_or_default();
    let standard = Settings::DEFAULT;
    let rate_max = rate(section, "rate_max", faults);
    let rate_floor = rate(section, "rate_floor", faults).unwrap_or(standard.rate_floor);
    if rate_max.is_some_and(|most| most < rate_floor) {
        faults.add(section.place("rate_max"), "is below rate_floor; lower rate_floor, or raise rate_max");
    }
    let pause_max = bounded(section, "pause_max", faults).unwrap_or(standard.pause_max);
    let circuit = circuit(section, faults);
    section.holds_time("interval", interval);
    section.holds("rate_floor", format_args!("{:?}", rate_floor.get()));
    section.holds_time("pause_max", pause_max);
    let settings = Settings { rate_max, rate_floor, pause_max, circuit, ..standard };
    Paced { settings, max_parallel, interval }
}

fn circuit(section: &mut Section<'_>, faults: &mut Faults) -> CircuitSettings {
    let standard = CircuitSettings::DEFAULT;
    let Some(mut inside) = section.section("circuit", faults) else {
        let CircuitSettings { failures, rest, rest_max, probes } = standard;
        let [rest, rest_max] = [rest, rest_max].map(duration::shown);
        section.holds(
            "circuit",
            format_args!(
                "{{ failures = {failures}, rest = {rest:?}, rest_max = {rest_max:?}, probes = {probes} }}"
            ),
        );
        return standard;
    };
    let failures = inside.count("failures", 1..=COUNT_MAX, faults).and_then(NonZeroU32::new);
    let rest = bounded(&mut inside, "rest", faults).unwrap_or(standard.rest);
    let rest_max = bounded(&mut inside, "rest_max", faults).unwrap_or(standard.rest_max.max(rest));
    let probes = inside.count("probes", 1..=COUNT_MAX, faults).and_then(NonZeroU32::new);
    if rest_max < rest {
        faults.add(inside.place("rest_max"), "is shorter than rest; lengthen it, or shorten rest");
    }
    inside.holds("failures", standard.failures);
    inside.holds_time("rest", rest);
    inside.holds_time("rest_max", rest_max);
    inside.holds("probes", standard.probes);
    inside.finish(faults);
    let (failures, probes) = (failures.unwrap_or(standard.failures), probes.unwrap_or(standard.probes));
    CircuitSettings { failures, rest, rest_max, probes }
}

fn rate(section: &mut Section<'_>, name: &'static str, faults: &mut Faults) -> Option<PerSecond> {
    let number = section.number(name, faults)?;
    let (least, most) = (PerSecond::MIN.get(), PerSecond::MAX.get());
    if !(least..=most).contains(&number) {
        faults.add(
            section.place(name),
            format!("{number} calls a second cannot be kept; write a number from {least} to {most}"),
        );
        return None;
    }
    Some(PerSecond::clamped(number))
}

fn bounded(section: &mut Section<'_>, name: &'static str, faults: &mut Faults) -> Option<Duration> {
    let time = section.time(name, faults)?;
    if WAIT_MAX < time {
        faults.add(section.place(name), "is longer than 30 days; shorten it");
        return None;
    }
    Some(time)
}
