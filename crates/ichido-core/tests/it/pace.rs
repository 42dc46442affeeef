//! The pace against destinations that refuse: a discrete-event simulation, seeded and without a clock.

mod destination;
mod simulation;

use destination::LimitModel;
use simulation::{CallCounts, Simulation};

/// Common rate limiters, each allowing ten a second.
const MODELS: [LimitModel; 4] = [
    LimitModel::Bucket { burst: 1.0 },
    LimitModel::Bucket { burst: 10.0 },
    LimitModel::FixedWindow,
    LimitModel::SlidingWindow,
];
const SEEDS: u64 = 20;
/// At a limit, a few calls must be refused before it is known.
const MAX_REFUSED: f64 = 0.08;

/// Over the seeds: the minimum accepted per second, the maximum share refused, and all that was sent.
#[derive(Clone, Copy, Debug)]
struct Worst {
    accepted_per_second: f64,
    refused_share: f64,
    sent: u32,
}

fn worst(run: impl Fn(u64) -> CallCounts) -> Worst {
    let start = Worst { accepted_per_second: f64::MAX, refused_share: 0.0, sent: 0 };
    (0..SEEDS).map(run).fold(start, |worst, counts| Worst {
        accepted_per_second: worst.accepted_per_second.min(counts.accepted_per_second()),
        refused_share: worst.refused_share.max(counts.refused_share()),
        sent: worst.sent + counts.sent,
    })
}

/// Prints the measurements, for runs with `--nocapture`, and checks them against the limits.
fn check(what: &str, worst: Worst, min_accepted: f64) {
    println!("{what}: {:.2}/s, {:.2} %", worst.accepted_per_second, worst.refused_share * 100.0);
    assert!(min_accepted <= worst.accepted_per_second, "{what}: {worst:?}");
    assert!(worst.refused_share < MAX_REFUSED, "{what}: {worst:?}");
}

#[test]
fn a_destination_that_allows_ten_a_second_gets_nine_and_refuses_few() {
    for model in MODELS {
        let worst = worst(|seed| Simulation::new(model, 10, 1, seed).watch(60, 300));
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn limit_is_found_with_retry_after_hints() {
    for model in MODELS {
        let worst = worst(|seed| Simulation::new(model, 10, 1, seed).with_retry_after().watch(60, 300));
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn limit_is_found_with_five_second_responses() {
    for model in MODELS {
        let worst = worst(|seed| Simulation::new(model, 10, 1, seed).with_latency(5).watch(60, 300));
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn two_nodes_sharing_a_pace_do_not_double_it() {
    for model in MODELS {
        let alone = worst(|seed| Simulation::new(model, 10, 1, seed).watch(60, 300));
        for nodes in [2, 5] {
            let shared = worst(|seed| Simulation::new(model, 10, nodes, seed).watch(60, 300));
            check(&format!("{nodes} nodes, {model:?}"), shared, 9.0);
            let ratio = f64::from(shared.sent) / f64::from(alone.sent);
            assert!((0.95..=1.05).contains(&ratio), "{nodes} nodes, {model:?}: sent {ratio} times as much");
        }
    }
}

#[test]
fn a_limit_that_was_raised_is_found_again_within_three_minutes() {
    for model in MODELS {
        let worst =
            worst(|seed| Simulation::new(model, 10, 1, seed).with_limit_from(180, 20).watch(360, 480));
        check(&format!("{model:?}"), worst, 18.0);
    }
}

#[test]
fn lowered_limit_is_respected_within_a_minute() {
    for model in MODELS {
        let worst = worst(|seed| Simulation::new(model, 10, 1, seed).with_limit_from(180, 3).watch(240, 420));
        check(&format!("{model:?}"), worst, 2.65);
    }
}

#[test]
fn a_destination_that_refused_everything_for_a_while_is_back_to_its_rate_in_two_minutes() {
    for model in MODELS {
        let worst = worst(|seed| {
            Simulation::new(model, 10, 1, seed)
                .with_limit_from(120, 0)
                .with_limit_from(150, 10)
                .watch(270, 390)
        });
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn limit_is_found_for_one_and_a_hundred_per_second() {
    for (limit, seconds) in [(1, 1_200), (100, 120)] {
        for model in MODELS {
            let worst = worst(|seed| Simulation::new(model, limit, 1, seed).watch(60, seconds));
            check(&format!("{limit}/s, {model:?}"), worst, f64::from(limit) * 0.9);
        }
    }
}

/// What is accepted despite random refusals, as a share of the maximum of any constant rate: the mean over the seeds
/// and the minimum.
#[derive(Clone, Copy, Debug)]
struct Shares {
    mean: f64,
    least: f64,
}

fn shares(best: f64, seeds: u64, run: impl Fn(u64) -> CallCounts) -> Shares {
    let shares: Vec<f64> = (0..seeds).map(|seed| run(seed).accepted_per_second() / best).collect();
    let count = f64::from(u32::try_from(shares.len()).unwrap());
    Shares { mean: shares.iter().sum::<f64>() / count, least: shares.into_iter().fold(f64::MAX, f64::min) }
}

/// The maximum that a constant rate gets accepted. A bucket of one token accepts nothing in place of a call that was
/// refused at random.
fn most(model: LimitModel, limit: u32, per_thousand: u32) -> f64 {
    let spare = match model {
        LimitModel::Bucket { burst: 1.0 } => f64::from(per_thousand) / 1_000.0,
        _ => 0.0,
    };
    f64::from(limit) * (1.0 - spare)
}

/// In addition to each limiter, a share of the calls is refused whatever the rate. The limits are a little below the
/// measurements.
#[test]
fn refusals_at_any_rate_do_not_bring_the_pace_down() {
    for (per_thousand, min_mean, min_samples_min) in [(20, 0.87, 0.7), (100, 0.7, 0.25)] {
        for (limit, seconds, seeds) in [(1, 1_200, SEEDS), (10, 300, SEEDS), (100, 180, SEEDS / 4)] {
            for (model, says_when) in MODELS.into_iter().flat_map(|model| [(model, false), (model, true)]) {
                let found = shares(most(model, limit, per_thousand), seeds, |seed| {
                    let simulation =
                        Simulation::new(model, limit, 1, seed).with_random_refusals(i64::from(per_thousand));
                    if says_when { simulation.with_retry_after() } else { simulation }.watch(60, seconds)
                });
                let what =
                    format!("{per_thousand} ‰ refused, {limit}/s, {model:?}, Retry-After: {says_when}");
                println!("{what}: {:.2} ({:.2})", found.mean, found.least);
                assert!(min_mean <= found.mean && min_samples_min <= found.least, "{what}: {found:?}");
            }
        }
    }
}

#[test]
fn a_destination_without_a_limit_that_refuses_some_calls_is_called_as_fast_as_before() {
    for (per_thousand, min_mean) in [(20, 0.98), (100, 0.9)] {
        for says_when in [false, true] {
            let simulation = |seed| Simulation::new(LimitModel::Unlimited, 0, 1, seed);
            let free = shares(1.0, SEEDS / 4, |seed| simulation(seed).watch(60, 120)).mean;
            let best = free * (1.0 - f64::from(per_thousand) / 1_000.0);
            let found = shares(best, SEEDS, |seed| {
                let simulation = simulation(seed).with_random_refusals(i64::from(per_thousand));
                if says_when { simulation.with_retry_after() } else { simulation }.watch(60, 120)
            });
            let what = format!("{per_thousand} ‰ refused, no limit, Retry-After: {says_when}");
            println!("{what}: {:.2} ({:.2})", found.mean, found.least);
            assert!(min_mean <= found.mean, "{what}: {found:?}");
        }
    }
}
