use proptest::prelude::*;

use super::*;

const BAD_DAY: Assumption = Assumption::BAD_DAY;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn parallel(parallel: u32) -> NonZeroU32 {
    NonZeroU32::new(parallel).unwrap()
}

/// Base 2 s, cap 20 s, four retries.
const WAITS: [Duration; 4] =
    [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8), Duration::from_secs(16)];

/// 120 articles, 2 in parallel, 2.5 s apart, 5 s each.
fn articles() -> BatchPlan<'static> {
    BatchPlan {
        items: 120,
        parallel: parallel(2),
        interval: Duration::from_millis(2_500),
        latency: secs(5),
        waits: &WAITS,
        pace: None,
    }
}

#[test]
fn the_four_figures_of_the_specification() {
    let two = estimate(&articles(), &Assumptions::DEFAULT);
    assert_eq!(two, Estimate { best: secs(450), likely: secs(590), bad_day: secs(1_050) });
    let three = estimate(&BatchPlan { parallel: parallel(3), ..articles() }, &Assumptions::DEFAULT);
    assert_eq!(three.best, secs(300));
}

#[test]
fn shares_are_scaled_to_the_items_and_rounded_up() {
    for (items, likely, bad) in [(0, 0, 0), (1, 1, 1), (12, 1, 2), (13, 2, 3), (120, 10, 20), (240, 20, 40)] {
        assert_eq!(Assumption::LIKELY.retried(items), likely, "{items} items, likely");
        assert_eq!(Assumption::BAD_DAY.retried(items), bad, "{items} items, on a bad day");
    }
    let all_and_more = Assumption { of: 500, ..Assumption::BAD_DAY };
    assert_eq!(all_and_more.retried(120), 120);
}

#[test]
fn likely_does_not_retry_more_often_than_is_allowed() {
    let once = BatchPlan { waits: &WAITS[..1], ..articles() };
    let estimate = estimate(&once, &Assumptions::DEFAULT);
    assert_eq!((estimate.likely, estimate.bad_day), (secs(450 + 10 * 2), secs(450 + 20 * 2)));
}

#[test]
fn empty_batch_plans_zero_and_overflow_saturates() {
    let none = BatchPlan { items: 0, ..articles() };
    assert_eq!(estimate_with(&none, &BAD_DAY), Duration::ZERO);
    let instant = BatchPlan { interval: Duration::ZERO, latency: Duration::ZERO, waits: &[], ..articles() };
    assert_eq!(estimate_with(&instant, &BAD_DAY), Duration::ZERO);
    let waits = [Duration::MAX, Duration::MAX];
    let endless = BatchPlan {
        items: u64::MAX,
        interval: Duration::MAX,
        latency: Duration::MAX,
        waits: &waits,
        ..articles()
    };
    assert_eq!(estimate_with(&endless, &BAD_DAY), Duration::MAX);
}

/// A run cannot be faster than its pace, however many are in parallel.
#[test]
fn batch_takes_no_less_than_its_pace_needs() {
    let pace = |spacing, is_rising| {
        let pace = Some(PlannedPace { spacing: Duration::from_millis(spacing), is_rising });
        let batch = BatchPlan { items: 1_000, parallel: parallel(1_000), pace, ..articles() };
        estimate_with(&batch, &Assumption::BEST)
    };
    assert_eq!(pace(1, false), Duration::from_millis(7_500), "the pace is not what delays it");
    assert_eq!(pace(500, false), secs(500));
    // 20, 40, 80, 160 and 320 in five seconds, and 380 of 640 in the sixth.
    assert_eq!(pace(50, true), Duration::from_millis(7_500));
    // 1, 2, 4 … 256 in nine seconds, and 489 of 512 in the tenth.
    assert_eq!(pace(1_000, true).as_secs(), 9);
    let slow = BatchPlan { pace: Some(PlannedPace { spacing: secs(10), is_rising: false }), ..articles() };
    let tuned = propose(&slow, &BAD_DAY, &TuningLimits::DEFAULT, secs(600));
    assert!(matches!(tuned, Proposal::FewerItems { items: 60, .. }), "{tuned:?}");
}

/// With many in parallel the waits overlap, so adding them up would be absurd.
#[test]
fn no_estimate_exceeds_the_time_in_which_all_could_be_retried() {
    let many = |items, at_a_time| BatchPlan { items, parallel: parallel(at_a_time), ..articles() };
    // 119 others with 27.5 s of calls, over 200 slots; then 27.5 s of calls and 30 s of waits.
    let all_at_once = Duration::from_micros(73_862_500);
    assert_eq!(estimate_with(&many(120, 200), &BAD_DAY), all_at_once);
    assert_eq!(estimate_with(&many(1, 200), &BAD_DAY), Duration::from_millis(37_500), "the formula is less");
    for at_a_time in 1..=4 {
        let rounds = 120_u32.div_ceil(at_a_time);
        let formula = Duration::from_millis(7_500) * rounds + secs(600);
        assert_eq!(estimate_with(&many(120, at_a_time), &BAD_DAY), formula, "{at_a_time} at a time");
    }
}

/// A Lambda function has a quarter of an hour.
#[test]
fn bad_day_beyond_deadline_gets_the_smallest_fitting_change() {
    let tuning = |at_a_time, interval_ms, retries| Tuning {
        parallel: parallel(at_a_time),
        interval: Duration::from_millis(interval_ms),
        retries,
    };
    for (within, expected) in [
        (1_050, Proposal::AsItIs),
        // More in parallel: 40 rounds of 7.5 s and 600 s of waits.
        (900, Proposal::Change(tuning(3, 2_500, 4))),
        // From here on the time in which all could be retried is less than the sum of the waits.
        (713, Proposal::Change(tuning(5, 2_500, 4))),
        (600, Proposal::Change(tuning(7, 2_500, 4))),
        // Fewer retries as well.
        (380, Proposal::Change(tuning(8, 2_500, 3))),
        (200, Proposal::Change(tuning(6, 2_500, 1))),
        // A shorter interval as well: 15 rounds of 7.333 s, and 40 s of waits.
        (150, Proposal::Change(tuning(8, 2_333, 1))),
        // Fewer items: 8 in parallel, 5.5 s a round, a sixth of them waits 2 s.
        (60, Proposal::FewerItems { tuning: tuning(8, 500, 1), items: 56 }),
        (0, Proposal::FewerItems { tuning: tuning(8, 500, 1), items: 0 }),
    ] {
        let proposed = propose(&articles(), &BAD_DAY, &TuningLimits::DEFAULT, secs(within));
        assert_eq!(proposed, expected, "within {within} s");
    }
}

#[test]
fn proposal_keeps_a_tuning_beyond_its_bounds() {
    let bold = BatchPlan { parallel: parallel(20), interval: Duration::ZERO, waits: &[], ..articles() };
    let proposed = propose(&bold, &BAD_DAY, &TuningLimits::DEFAULT, secs(10));
    let tuning = Tuning { parallel: parallel(20), interval: Duration::ZERO, retries: 0 };
    assert_eq!(proposed, Proposal::FewerItems { tuning, items: 40 });
}

#[test]
fn call_that_cannot_end_in_time_does_not_start() {
    let deadline = Timestamp::from_secs(900);
    let needs = Duration::from_millis(7_500);
    for (now_ms, needs, expected) in [
        (0, needs, true),
        (892_500, needs, true),
        (892_501, needs, false),
        (900_000, Duration::ZERO, true),
        (900_001, Duration::ZERO, false),
        (0, Duration::MAX, false),
    ] {
        let now = Timestamp::from_micros(now_ms * 1_000);
        assert_eq!(may_start(now, deadline, needs), expected, "at {now_ms} ms, needing {needs:?}");
    }
}

fn any_millis(most: u64) -> impl Strategy<Value = Duration> {
    (0..=most).prop_map(Duration::from_millis)
}

proptest! {
    #[test]
    fn as_many_items_fit_as_there_is_time_for(
        items in any::<u64>(),
        at_a_time in 1..=u32::MAX,
        interval in any_millis(u64::MAX),
        latency in any_millis(10_000),
        left in any_millis(u64::MAX),
    ) {
        let batch = BatchPlan { items, parallel: parallel(at_a_time), interval, latency, waits: &WAITS, pace: None };
        let fit = items_that_fit(&batch, &BAD_DAY, left);
        assert!(fit <= items);
        assert!(estimate_with(&BatchPlan { items: fit, ..batch }, &BAD_DAY) <= left);
        if fit < items {
            assert!(left < estimate_with(&BatchPlan { items: fit + 1, ..batch }, &BAD_DAY));
        }
    }

    /// The proposal fits, and one step back towards the original settings does not.
    #[test]
    fn proposal_is_the_smallest_change_that_fits(
        items in 0..2_000_u64,
        at_a_time in 1..12_u32,
        interval in any_millis(5_000),
        latency in any_millis(8_000),
        retries in 0..=4_usize,
        within in any_millis(1_200_000),
    ) {
        let (parallel_items, waits) = (parallel(at_a_time), &WAITS[..retries]);
        let batch = BatchPlan { items, parallel: parallel_items, interval, latency, waits, pace: None };
        let with = |tuning: Tuning| estimate_with(
            &BatchPlan {
                parallel: tuning.parallel,
                interval: tuning.interval,
                waits: &WAITS[..tuning.retries],
                ..batch
            },
            &BAD_DAY,
        );
        let fastest = Tuning {
            parallel: TuningLimits::DEFAULT.max_parallel.max(batch.parallel),
            interval: TuningLimits::DEFAULT.min_interval.min(interval),
            retries: TuningLimits::DEFAULT.min_retries.min(retries),
        };
        match propose(&batch, &BAD_DAY, &TuningLimits::DEFAULT, within) {
            Proposal::AsItIs => assert!(estimate_with(&batch, &BAD_DAY) <= within),
            Proposal::Change(tuning) => {
                assert!(with(tuning) <= within);
                if batch.parallel < tuning.parallel {
                    let fewer = parallel(tuning.parallel.get() - 1);
                    assert!(within < with(Tuning { parallel: fewer, ..tuning }));
                }
                if tuning.interval < interval {
                    let longer = tuning.interval + Duration::from_millis(1);
                    assert!(within < with(Tuning { interval: longer, parallel: fastest.parallel, ..tuning }));
                }
                if tuning.retries < retries {
                    assert!(within < with(Tuning { retries: tuning.retries + 1, ..fastest }));
                }
            }
            Proposal::FewerItems { tuning, items: fit } => {
                assert_eq!(tuning, fastest);
                assert!(within < with(tuning));
                assert!(fit < items);
            }
        }
    }
}
