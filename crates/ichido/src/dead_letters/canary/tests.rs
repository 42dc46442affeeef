use super::*;

fn watched(waiting: u64, well: u64, ill: u64) -> CanaryCounts {
    CanaryCounts { pending: waiting, succeeded: well, failed: ill }
}

#[test]
fn one_in_a_hundred_goes_first_and_at_least_one() {
    assert_eq!(Canary::steps(10_000, false), [100, 500, 2_500]);
    assert_eq!(Canary::steps(150, false), [2, 8, 38]);
    assert_eq!(Canary::steps(3, false), [1, 2]);
    assert_eq!(Canary::steps(2, false), [1]);
    assert_eq!(Canary::steps(1, false), Vec::<u64>::new(), "one alone is all of them");
    assert_eq!(Canary::steps(0, false), Vec::<u64>::new());
    assert_eq!(Canary::steps(u64::MAX, false).len(), 3, "no number is too large");
}

#[test]
fn each_step_is_larger_than_the_one_before() {
    for total in 0..5_000 {
        let goals = Canary::steps(total, false);
        assert!(goals.windows(2).all(|pair| pair[0] < pair[1]), "{total}: {goals:?}");
        assert!(goals.iter().all(|goal| (1..total).contains(goal)), "{total}: {goals:?}");
    }
}

/// The share of a number that is not known cannot be too large.
#[test]
fn steps_of_more_than_were_counted_are_all_watched() {
    assert_eq!(Canary::steps(30_000, true), [300, 1_500, 7_500]);
    for total in 0..3 {
        assert_eq!(Canary::steps(total, true), [1, 2, 3], "{total}");
    }
}

#[test]
fn failure_counts_even_if_message_is_retried() {
    for (stage, attempts, expected) in [
        (StateName::Queued, 0, Observation::Pending),
        (StateName::Sending, 1, Observation::Pending),
        (StateName::Sent, 1, Observation::Succeeded),
        (StateName::Failed, 1, Observation::Failed),
        (StateName::Queued, 1, Observation::Failed),
        (StateName::Sending, 2, Observation::Failed),
        (StateName::Dead, 1, Observation::Failed),
        (StateName::Parked, 1, Observation::Failed),
        (StateName::Sent, 2, Observation::Failed),
        (StateName::Cancelled, 0, Observation::Cancelled),
        (StateName::Cancelled, 1, Observation::Failed),
    ] {
        assert_eq!(observe(stage, attempts), expected, "{stage:?} after {attempts}");
    }
}

#[test]
fn canary_widens_on_success_and_halts_on_failures() {
    let canary = Canary::DEFAULT;
    assert_eq!(judge(watched(0, 10, 0), canary, false), CanaryDecision::Widen);
    assert_eq!(judge(watched(0, 9, 1), canary, false), CanaryDecision::Widen, "one in ten is tolerated");
    assert_eq!(judge(watched(0, 8, 2), canary, false), CanaryDecision::Halt);
    assert_eq!(judge(watched(0, 0, 1), canary, false), CanaryDecision::Halt, "the only one failed");
    assert_eq!(judge(watched(5, 5, 0), canary, false), CanaryDecision::Wait);
    assert_eq!(
        judge(watched(8, 0, 2), canary, false),
        CanaryDecision::Halt,
        "the others cannot make up for it"
    );
    assert_eq!(judge(watched(1, 9, 0), canary, true), CanaryDecision::Halt, "it does not end");
    assert_eq!(judge(watched(0, 10, 0), canary, true), CanaryDecision::Widen);
    assert_eq!(
        judge(watched(0, 0, 0), canary, false),
        CanaryDecision::Halt,
        "all were cancelled and show nothing"
    );
}
