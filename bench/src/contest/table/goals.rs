//! What Ichido should reach, beside what it reached in this run.

use super::super::contestant::{CONTESTANTS, Contestant, Program};
use super::super::endpoint::{LATENCY_RATE, replays_of};
use super::super::growth::ON_POSTGRES;
use super::super::sample::Sample;
use super::{Measurement, Part, RATES, Results, Table, grouped, whole_float};

const OURS: &str = "Ichido";
const FLOOR: &str = "least SQL";
const BARE: &str = "bare transaction";
const TRANSACTIONAL: &str = "Ichido, transactional";
const KEYED: &str = "Ichido, keyed";
/// The payload for which the size of the log is limited.
const SMALL_PAYLOAD: usize = 100;

/// Returns a latency of a sample.
type Share = fn(&Sample) -> Option<f64>;

/// A number that should not be below, or not above, another one.
struct Goal {
    what: String,
    measured: Option<f64>,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Bound {
    Min(f64),
    Max(f64),
}

impl Bound {
    fn is_met(self, measured: f64) -> bool {
        match self {
            Self::Min(bound) => bound <= measured,
            Self::Max(bound) => measured <= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Min(bound) => format!("≥ {}", short(bound)),
            Self::Max(bound) => format!("≤ {}", short(bound)),
        }
    }
}

pub(super) fn table(results: &Results) -> String {
    let mut table = Table::new(&["what", "measured", "goal", "verdict"]);
    for goal in goals(results) {
        let Some(measured) = goal.measured else { continue };
        let verdict = if goal.bound.is_met(measured) { "met" } else { "**missed**" };
        table.row(&[goal.what, short(measured), goal.bound.text(), verdict.to_owned()]);
    }
    format!(
        "## Goals\n\nRatios of medians within this run. [NOTES.md](NOTES.md) says what limits those that are missed.\n\n{}",
        table.text
    )
}

fn goals(results: &Results) -> Vec<Goal> {
    let rate = |name: &str, part| {
        results.find(name, part, 0.0).and_then(Measurement::rates).map(|spread| spread.median)
    };
    let rates = |one: &str, other: &str, part| ratio(rate(one, part), rate(other, part));
    let goal = |what: &str, measured, bound| Goal { what: what.to_owned(), measured, bound };
    let peers = CONTESTANTS.iter().filter(|it| it.is_peer());
    let fastest = peers.filter_map(|it| rate(it.name, Part::Drain)).max_by(f64::total_cmp);
    let drained = results.find(OURS, Part::Drain, 0.0);
    let memory = drained.and_then(|it| it.spread(|sample| Some(whole_float(sample.peak_kib) / 1_024.0)));
    let mut goals = vec![
        goal("drain, to the fastest peer", ratio(rate(OURS, Part::Drain), fastest), Bound::Min(2.0)),
        goal("drain, to the least SQL", rates(OURS, FLOOR, Part::Drain), Bound::Min(0.6)),
        goal(
            "enqueue 1,000 a call, to the least SQL",
            rates(OURS, FLOOR, Part::EnqueueBulk),
            Bound::Min(0.85),
        ),
        goal(
            "enqueue by one caller, to the least SQL",
            rates(OURS, FLOOR, Part::EnqueueOne),
            Bound::Min(0.6),
        ),
        goal(
            "WAL bytes of a message of 100 B, enqueued and drained",
            log_bytes(results),
            Bound::Max(1_229.0),
        ),
        goal("peak memory of the drain, MB", memory.map(|spread| spread.median), Bound::Max(60.0)),
        goal("transactional endpoint, to bare", rates(TRANSACTIONAL, BARE, Part::Serve), Bound::Min(0.65)),
        goal("keyed endpoint, to bare", rates(KEYED, BARE, Part::Serve), Bound::Min(0.8)),
        goal(
            "replays, to first requests (transactional)",
            rates(&replays_of(TRANSACTIONAL), TRANSACTIONAL, Part::Serve),
            Bound::Min(3.0),
        ),
        goal("p99 of the keyed endpoint, to bare", keyed_tail(results), Bound::Max(3.0)),
    ];
    for rate in RATES {
        for (name, share) in [("p50", p50 as Share), ("p99", p99 as Share)] {
            let what = format!("pickup at {}/s, {name}, to the best peer", grouped(rate));
            goals.push(Goal { what, measured: pickup(results, rate, share), bound: Bound::Max(1.0) });
        }
    }
    goals
}

fn p50(sample: &Sample) -> Option<f64> {
    sample.p50_us
}

fn p99(sample: &Sample) -> Option<f64> {
    sample.p99_us
}

fn ratio(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? / other?)
}

/// Our latency, to the shortest of a peer.
fn pickup(results: &Results, rate: f64, share: Share) -> Option<f64> {
    let latency = |it: &Contestant| {
        let spread = results.find(it.name, Part::Pickup, rate)?.spread(share)?;
        Some(spread.median)
    };
    let ours = CONTESTANTS.iter().find(|it| it.program == Program::Ours).and_then(latency);
    let peers = CONTESTANTS.iter().filter(|it| it.is_peer());
    ratio(ours, peers.filter_map(latency).min_by(f64::total_cmp))
}

fn keyed_tail(results: &Results) -> Option<f64> {
    let tail = |name| {
        let spread = results.find(name, Part::Serve, LATENCY_RATE)?.spread(p99)?;
        Some(spread.median)
    };
    ratio(tail(KEYED), tail(BARE))
}

/// The log of one small message in both parts.
fn log_bytes(results: &Results) -> Option<f64> {
    let small = results.measurements.iter();
    let small = small.filter(|it| it.contestant == ON_POSTGRES && it.bytes == SMALL_PAYLOAD);
    let bytes: Option<Vec<f64>> =
        small.map(|it| it.per_message(|sample| sample.wal_bytes.map(whole_float))).collect();
    bytes.filter(|bytes| bytes.len() == 2).map(|bytes| bytes.iter().sum())
}

/// Returns `0.62` or `1,229`.
fn short(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { grouped(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_met_at_its_value() {
        assert!(Bound::Min(2.0).is_met(2.0) && !Bound::Min(2.0).is_met(1.99));
        assert!(Bound::Max(1.0).is_met(1.0) && !Bound::Max(1.0).is_met(1.01));
        assert_eq!(
            (Bound::Min(0.65).text(), Bound::Max(1_229.0).text()),
            ("≥ 0.65".into(), "≤ 1,229".into())
        );
    }
}
