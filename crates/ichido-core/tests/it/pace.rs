//! The pace against destinations that refuse: a discrete-event simulation, seeded and without a clock.

mod destination;
mod world;

use destination::Model;
use world::{Counts, World};

/// Rate limiters as they are met in the wild, each allowing ten a second.
const MODELS: [Model; 4] =
    [Model::Bucket { burst: 1.0 }, Model::Bucket { burst: 10.0 }, Model::FixedWindow, Model::SlidingWindow];
const SEEDS: u64 = 20;

/// Over the seeds: the least accepted a second, the greatest share refused, and all that was sent.
#[derive(Clone, Copy, Debug)]
struct Worst {
    accepted_per_second: f64,
    refused_share: f64,
    sent: u32,
}

fn worst(run: impl Fn(u64) -> Counts) -> Worst {
    let start = Worst { accepted_per_second: f64::MAX, refused_share: 0.0, sent: 0 };
    (0..SEEDS).map(run).fold(start, |worst, counts| Worst {
        accepted_per_second: worst.accepted_per_second.min(counts.accepted_per_second()),
        refused_share: worst.refused_share.max(counts.refused_share()),
        sent: worst.sent + counts.sent,
    })
}

/// Prints what was measured, for whoever runs with `--nocapture`, and holds it to the bounds.
fn check(what: &str, worst: Worst, accepted_min: f64) {
    println!("{what}: {:.2}/s, {:.2} %", worst.accepted_per_second, worst.refused_share * 100.0);
    assert!(accepted_min <= worst.accepted_per_second, "{what}: {worst:?}");
    assert!(worst.refused_share < 0.05, "{what}: {worst:?}");
}

#[test]
fn a_destination_that_allows_ten_a_second_gets_nine_and_refuses_few() {
    for model in MODELS {
        let worst = worst(|seed| World::new(model, 10, 1, seed).watch(60, 300));
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn so_it_does_when_it_says_how_long_to_wait() {
    for model in MODELS {
        let worst = worst(|seed| World::new(model, 10, 1, seed).with_retry_after().watch(60, 300));
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn so_it_does_when_answers_take_up_to_five_seconds() {
    for model in MODELS {
        let worst = worst(|seed| World::new(model, 10, 1, seed).with_latency(5).watch(60, 300));
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn two_nodes_sharing_a_pace_do_not_double_it() {
    for model in MODELS {
        let alone = worst(|seed| World::new(model, 10, 1, seed).watch(60, 300));
        for nodes in [2, 5] {
            let shared = worst(|seed| World::new(model, 10, nodes, seed).watch(60, 300));
            check(&format!("{nodes} nodes, {model:?}"), shared, 9.0);
            let ratio = f64::from(shared.sent) / f64::from(alone.sent);
            assert!((0.95..=1.05).contains(&ratio), "{nodes} nodes, {model:?}: sent {ratio} times as much");
        }
    }
}

#[test]
fn a_limit_that_was_raised_is_found_again_within_three_minutes() {
    for model in MODELS {
        let worst = worst(|seed| World::new(model, 10, 1, seed).with_limit_from(180, 20).watch(360, 480));
        check(&format!("{model:?}"), worst, 18.0);
    }
}

#[test]
fn a_limit_that_was_lowered_is_kept_again_within_a_minute() {
    for model in MODELS {
        let worst = worst(|seed| World::new(model, 10, 1, seed).with_limit_from(180, 3).watch(240, 420));
        check(&format!("{model:?}"), worst, 2.7);
    }
}

#[test]
fn a_destination_that_refused_everything_for_a_while_is_back_to_its_rate_in_two_minutes() {
    for model in MODELS {
        let worst = worst(|seed| {
            World::new(model, 10, 1, seed).with_limit_from(120, 0).with_limit_from(150, 10).watch(270, 390)
        });
        check(&format!("{model:?}"), worst, 9.0);
    }
}

#[test]
fn what_holds_for_ten_a_second_holds_for_one_and_for_a_hundred() {
    for (limit, seconds) in [(1, 1_200), (100, 120)] {
        for model in MODELS {
            let worst = worst(|seed| World::new(model, limit, 1, seed).watch(60, seconds));
            check(&format!("{limit}/s, {model:?}"), worst, f64::from(limit) * 0.9);
        }
    }
}
