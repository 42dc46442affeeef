use proptest::prelude::*;

use super::rate::BACKOFF;
use super::*;

const SETTINGS: PaceSettings = PaceSettings::DEFAULT;
const NOW: Timestamp = Timestamp::from_secs(1_000);

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn after(millis: u64) -> Timestamp {
    NOW.plus(Duration::from_millis(millis))
}

/// A fully used pace at this rate.
fn paced(per_second: f64) -> Pace {
    let rate = PerSecond::clamped(per_second);
    let rate = Rate::Paced(Paced {
        rate,
        ceiling: Some(rate),
        usual: ResponseCounts::NONE,
        phase: PacePhase::Climbing(Evidence::NONE),
        episode_until: Timestamp::EPOCH,
        grown_until: Timestamp::EPOCH,
    });
    Pace { rate, ..Pace::NEW }
}

/// Refuses this many calls in a row, all sent at this time.
fn refused(pace: Pace, times: u32, at: Timestamp, retry_after: Option<Duration>) -> Pace {
    (0..times).fold(pace, |pace, _| pace.on_throttled(&SETTINGS, at, at, retry_after))
}

/// At ten a second, this many refusals in a row exceed chance.
const TOO_MANY: u32 = 4;

fn per_second(pace: &Pace) -> f64 {
    pace.rate.limit(&SETTINGS).unwrap().get()
}

fn close_to(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

fn slots(grant: Grant) -> Slots {
    match grant {
        Grant::Slots(slots) => slots,
        Grant::Wait { until, why } => panic!("no slots until {until:?}: {why:?}"),
    }
}

#[test]
fn destination_without_refusals_is_not_paced() {
    let (pace, grant) = Pace::NEW.reserve(&SETTINGS, NOW, count(1_000));
    let moments: Vec<_> = slots(grant).moments().collect();
    assert_eq!(moments, vec![NOW; 1_000]);
    assert_eq!(slots(pace.reserve(&SETTINGS, NOW, count(1)).1).first(), NOW);
}

#[test]
fn a_maximum_rate_is_kept_and_reached() {
    let settings = PaceSettings { max_rate: Some(PerSecond::clamped(10.0)), ..SETTINGS };
    let (pace, grant) = Pace::NEW.reserve(&settings, NOW, count(100));
    let moments: Vec<_> = slots(grant).moments().collect();
    assert_eq!(moments, [0, 100, 200, 300, 400, 500].map(after), "a slot each 100 ms, to the horizon");
    let (_, grant) = pace.reserve(&settings, NOW, count(1));
    assert_eq!(grant, Grant::Wait { until: after(600), why: PauseReason::Rate });
}

#[test]
fn slow_start_doubles_the_rate_until_refused() {
    let settings = PaceSettings { rate_start: Some(PerSecond::clamped(10.0)), ..SETTINGS };
    let limit = |pace: &Pace| pace.rate.limit(&settings).map(PerSecond::get);
    let (pace, grant) = Pace::NEW.reserve(&settings, NOW, count(100));
    assert_eq!(slots(grant).count(), 6, "a slot each 100 ms, to the horizon");
    let pace = pace.on_success(&settings, after(500), count(5));
    assert_eq!(limit(&pace), Some(10.0), "twice five is what it is begun with");
    let pace = pace.on_success(&settings, after(900), count(7));
    assert_eq!(limit(&pace), Some(24.0));
    let pace = pace.on_success(&settings, after(1_600), count(3));
    assert_eq!(limit(&pace), Some(24.0), "a second that has only begun says nothing against the one before");
    let capped = PaceSettings { max_rate: Some(PerSecond::clamped(15.0)), ..settings };
    assert_eq!(pace.rate.limit(&capped).map(PerSecond::get), Some(15.0));
    let pace = (0..6).fold(pace, |pace, _| pace.on_throttled(&settings, after(1_700), after(1_650), None));
    assert_eq!(limit(&pace), Some(12.0), "what it accepted, not what it was sent");
}

#[test]
fn slots_taken_one_by_one_are_never_faster_than_the_rate() {
    for per_second in [3, 30_000, 66_700, 91_000, 100_000] {
        let settings = PaceSettings { max_rate: Some(PerSecond::clamped(f64::from(per_second))), ..SETTINGS };
        let (mut pace, mut now, mut taken) = (Pace::NEW, NOW, 0);
        while now < after(1_000) {
            let (next, grant) = pace.reserve(&settings, now, count(1));
            pace = next;
            match grant {
                Grant::Slots(slots) => taken += u32::from(slots.first() < after(1_000)),
                Grant::Wait { until, .. } => now = until,
            }
        }
        assert!(taken <= per_second, "{taken} in a second, at {per_second}/s");
        assert!(per_second - taken <= per_second / 10, "{taken} in a second, at {per_second}/s");
    }
}

#[test]
fn two_nodes_never_get_the_same_slot() {
    let (pace, first) = paced(10.0).reserve(&SETTINGS, NOW, count(2));
    let (pace, second) = pace.reserve(&SETTINGS, NOW, count(2));
    let (_, third) = pace.reserve(&SETTINGS, after(350), count(2));
    let moments: Vec<_> =
        [first, second, third].into_iter().flat_map(|grant| slots(grant).moments()).collect();
    assert_eq!(moments, [0, 100, 200, 300, 400, 500].map(after));
}

#[test]
fn unused_slots_do_not_allow_a_burst() {
    let (pace, _) = paced(10.0).reserve(&SETTINGS, NOW, count(1));
    let (_, grant) = pace.reserve(&SETTINGS, after(60_000), count(3));
    let moments: Vec<_> = slots(grant).moments().collect();
    assert_eq!(moments, [60_000, 60_100, 60_200].map(after));
}

#[test]
fn too_many_refusals_turn_no_limit_into_the_accepted_rate() {
    let mut pace = Pace::NEW;
    for millis in [0, 100, 200, 1_100] {
        pace = pace.on_success(&SETTINGS, after(millis), count(10));
    }
    let few = refused(pace, TOO_MANY, after(1_200), None);
    assert_eq!(few.rate.limit(&SETTINGS), None, "{few:?}");
    let many = refused(few, 1, after(1_200), None);
    assert!(close_to(per_second(&many), 30.0 * BACKOFF), "{many:?}");
}

#[test]
fn a_destination_that_refuses_at_once_is_paced_at_once() {
    let pace = refused(Pace::NEW, 1, NOW, Some(Duration::from_secs(30)));
    assert!(close_to(per_second(&pace), BACKOFF), "nothing was accepted yet: {pace:?}");
    assert_eq!(pace.paused_until, after(30_000));
}

#[test]
fn one_refusal_after_the_first_call_was_accepted_does_not_pace_it() {
    let start_mark = Pace::NEW.on_success(&SETTINGS, NOW, count(1));
    assert_eq!(refused(start_mark, 1, after(1), None).rate.limit(&SETTINGS), None);
    assert!(refused(start_mark, 2, after(1), None).rate.limit(&SETTINGS).is_some());
}

#[test]
fn a_refusal_now_and_then_neither_slows_nor_pauses_a_destination() {
    let (mut free, mut paced) = (Pace::NEW, paced(10.0));
    for second in 1..1_000 {
        let now = after(second * 1_000);
        for pace in [&mut free, &mut paced] {
            // One in fifty.
            *pace = pace.on_success(&SETTINGS, now, count(49));
            *pace = refused(*pace, 1, now, Some(Duration::from_secs(1)));
            assert_eq!(pace.stopped(&SETTINGS, now), None, "{pace:?}");
        }
    }
    assert_eq!(free.rate.limit(&SETTINGS), None, "{free:?}");
    assert!(close_to(per_second(&paced), 10.0), "{paced:?}");
}

/// One call in eight is refused at ten a second and at seven. Refusals at any rate say nothing about a limit.
#[test]
fn a_share_that_does_not_fall_with_the_rate_becomes_the_usual_one() {
    let (mut pace, mut lowest) = (paced(10.0), f64::MAX);
    for millis in (100..60_000).step_by(100) {
        let now = after(millis);
        pace = if millis % 800 == 0 {
            refused(pace, 1, now, None)
        } else {
            pace.on_success(&SETTINGS, now, count(1))
        };
        lowest = lowest.min(per_second(&pace));
    }
    assert!(close_to(lowest, 7.0), "it fell once, to see: {lowest}");
    let Rate::Paced(Paced { rate, usual, .. }) = pace.rate else { panic!("{pace:?}") };
    assert!(10.0 <= rate.get() && (0.1..0.15).contains(&usual.share()), "{pace:?}");
}

#[test]
fn a_share_that_falls_with_the_rate_is_a_limit() {
    let pace = refused(paced(10.0), TOO_MANY, NOW, None);
    let listening =
        (1..=30).fold(pace, |pace, number| pace.on_success(&SETTINGS, after(1_000 + number * 143), count(1)));
    let Rate::Paced(Paced { rate, ceiling, usual, phase, .. }) = listening.rate else {
        panic!("{listening:?}")
    };
    assert!(close_to(rate.get(), 7.0) && ceiling.is_some_and(|ceiling| close_to(ceiling.get(), 10.0)));
    assert_eq!((usual.refused, phase), (0.0, PacePhase::Climbing(Evidence::NONE)));
}

#[test]
fn one_episode_of_refusals_lowers_the_pace_once() {
    // Ten calls are in flight or hold their slots when the refusals come back.
    let (mut pace, _) = paced(10.0).reserve(&SETTINGS, NOW, count(5));
    for sent in [0, 0, 100, 100, 200, 200, 300, 300, 400, 400] {
        pace = pace.on_throttled(&SETTINGS, after(sent + 250), after(sent), None);
    }
    assert!(close_to(per_second(&pace), 7.0), "{pace:?}");
    // Calls sent later were paced by the lower rate; when nothing is accepted, a second refusal is a new episode.
    let pace = refused(pace, 1, after(3_000), None);
    assert!(close_to(per_second(&pace), 7.0), "{pace:?}");
    let pace = refused(pace, 1, after(3_100), None);
    assert!(close_to(per_second(&pace), 3.5), "{pace:?}");
}

#[test]
fn an_episode_lasts_until_the_last_slot_handed_out_before_it() {
    let settings = PaceSettings { horizon: Duration::from_secs(3), ..SETTINGS };
    // Thirty slots, the last at 2.9 s, are held when the first refusal comes back.
    let (pace, grant) = paced(10.0).reserve(&settings, NOW, count(30));
    assert_eq!(slots(grant).last(), after(2_900));
    let pace = (0..TOO_MANY).fold(pace, |pace, _| pace.on_throttled(&settings, after(250), NOW, None));
    let pace = (0..9).fold(pace, |pace, _| pace.on_throttled(&settings, after(3_000), after(2_900), None));
    assert!(close_to(per_second(&pace), 7.0), "{pace:?}");
}

#[test]
fn a_retry_after_pauses_every_node() {
    let pace = refused(paced(10.0), TOO_MANY, NOW, Some(Duration::from_secs(30)));
    for moment in [0, 10_000, 29_999].map(after) {
        let (_, grant) = pace.reserve(&SETTINGS, moment, count(1));
        assert_eq!(grant, Grant::Wait { until: after(30_000), why: PauseReason::Paused });
        let stopped = Some((after(30_000), PauseReason::Paused));
        assert_eq!(pace.stopped(&SETTINGS, moment), stopped, "slots held from before are void");
    }
    // A shorter wait requested later does not shorten it.
    let pace = pace.on_throttled(&SETTINGS, after(100), NOW, Some(Duration::from_secs(1)));
    assert_eq!(pace.paused_until, after(30_000));
}

/// Nothing is accepted for two hours, so asking for other messages meanwhile only annoys.
#[test]
fn a_long_retry_after_pauses_every_node_at_the_first_refusal() {
    let busy = paced(10.0).on_success(&SETTINGS, NOW, count(1_000));
    for long_pause in [SETTINGS.long_pause, Duration::from_secs(30)] {
        let settings = PaceSettings { long_pause, ..SETTINGS };
        let pause = |wait| {
            busy.on_throttled(&settings, after(100), after(100), Some(wait)).stopped(&settings, after(100))
        };
        assert_eq!(pause(long_pause), Some((after(100).plus(long_pause), PauseReason::Paused)));
        let shorter = long_pause.saturating_sub(Duration::from_millis(1));
        assert_eq!(pause(shorter), None, "it may come at any rate");
    }
    let pause = |wait| refused(busy, 1, after(100), Some(wait)).stopped(&SETTINGS, after(100));
    let hour = SETTINGS.max_pause;
    assert_eq!(pause(2 * hour), Some((after(100).plus(hour), PauseReason::Paused)));
    let pace = refused(busy, 1, after(100), Some(2 * hour));
    assert!(close_to(per_second(&pace), per_second(&busy)), "the pace itself was not too fast: {pace:?}");
    // Afterwards one call asks.
    let (_, grant) = pace.reserve(&SETTINGS, after(100).plus(hour), count(9));
    assert_eq!(slots(grant).count(), 1);
}

#[test]
fn an_operator_can_end_a_pause_with_all_that_was_learned() {
    let pace = refused(paced(10.0), TOO_MANY, NOW, Some(Duration::from_secs(30))).forgotten();
    assert_eq!((pace.stopped(&SETTINGS, NOW), pace.rate.limit(&SETTINGS)), (None, None));
    let (_, grant) = pace.reserve(&SETTINGS, NOW, count(9));
    assert_eq!(slots(grant).count(), 1, "one call asks first");
}

#[test]
fn after_a_pause_the_nodes_come_back_one_by_one() {
    let pace = refused(paced(10.0), TOO_MANY, NOW, Some(Duration::from_secs(30)));
    let (pace, first) = pace.reserve(&SETTINGS, after(30_000), count(9));
    assert_eq!((slots(first).first(), slots(first).count()), (after(30_000), 1), "one call asks");
    let (pace, second) = pace.reserve(&SETTINGS, after(30_200), count(9));
    assert_eq!(
        second,
        Grant::Wait { until: after(31_000), why: PauseReason::Rate },
        "while it is not answered"
    );
    let (_, third) = pace.reserve(&SETTINGS, after(31_000), count(9));
    assert_eq!((slots(third).first(), slots(third).count()), (after(31_000), 1), "and the next one asks");
    let pace = pace.on_success(&SETTINGS, after(30_300), count(1));
    let (_, others) = pace.reserve(&SETTINGS, after(30_300), count(2));
    let moments: Vec<_> = slots(others).moments().map(Timestamp::as_millis).collect();
    assert_eq!(moments, [30_300, 30_442].map(|millis| after(millis).as_millis()), "at the lowered pace");
}

#[test]
fn a_pause_can_be_lifted() {
    let pace = refused(paced(10.0), TOO_MANY, NOW, Some(Duration::from_secs(30))).resumed();
    assert_eq!(pace.stopped(&SETTINGS, NOW), None);
    let (_, grant) = pace.reserve(&SETTINGS, NOW, count(9));
    assert_eq!(slots(grant).count(), 1, "one call asks first");
}

#[test]
fn absurdly_long_pause_is_capped() {
    let pace = refused(paced(10.0), TOO_MANY, NOW, Some(Duration::MAX));
    assert_eq!(pace.paused_until, NOW.plus(SETTINGS.max_pause));
}

#[test]
fn pace_recovers_automatically_only_in_full_use() {
    let fallen = refused(paced(10.0), TOO_MANY, NOW, None);
    let (mut used, mut idle) = (fallen, fallen);
    for second in 2..20 {
        let moment = after(second * 1_000);
        used = used.reserve(&SETTINGS, moment, count(7)).0.on_success(&SETTINGS, moment, count(7));
        idle = idle.reserve(&SETTINGS, moment, count(1)).0.on_success(&SETTINGS, moment, count(7));
    }
    assert!(9.0 < per_second(&used) && per_second(&used) < 10.0, "{used:?}");
    assert!(close_to(per_second(&idle), 7.0), "{idle:?}");
}

#[test]
fn many_successes_at_once_raise_the_pace_no_faster_than_time_passes() {
    // A node waits for a slot all the time.
    let steady = Pace { wanted_until: after(60_000), ..paced(10.0) };
    let full_use = steady.on_success(&SETTINGS, after(2_000), count(10));
    assert!(10.0 < per_second(&full_use), "{full_use:?}");
    let flooded = steady.on_success(&SETTINGS, after(2_000), count(7_000));
    assert_eq!(flooded, full_use, "a second of full use is all there was");
    let again = flooded.on_success(&SETTINGS, after(2_000), count(7_000));
    assert_eq!(again, flooded, "no time has passed since");
}

#[test]
fn down_destination_rests_then_is_probed() {
    let mut pace = Pace::NEW;
    for _ in 0..SETTINGS.circuit.failures.get() {
        pace = pace.on_failure(&SETTINGS, NOW, NOW);
    }
    let (pace, grant) = pace.reserve(&SETTINGS, after(4_999), count(9));
    assert_eq!(grant, Grant::Wait { until: after(5_000), why: PauseReason::Circuit });
    let (pace, grant) = pace.reserve(&SETTINGS, after(5_000), count(9));
    assert_eq!(slots(grant).count(), 1);
    assert_eq!(pace.stopped(&SETTINGS, after(5_000)), None);
    let (pace, grant) = pace.reserve(&SETTINGS, after(5_100), count(9));
    assert_eq!(grant, Grant::Wait { until: after(10_000), why: PauseReason::Circuit });
    let (_, grant) =
        pace.on_success(&SETTINGS, after(5_200), count(1)).reserve(&SETTINGS, after(5_200), count(9));
    assert_eq!(slots(grant).count(), 9);
}

/// Forty calls went out at second 0 to a destination that hangs, and time out one each second from 30 on.
#[test]
fn late_failures_of_calls_before_the_opening_are_not_failed_probes() {
    let (mut pace, mut probes) = (Pace::NEW, Vec::new());
    let at = Timestamp::from_secs;
    for second in 30..70 {
        pace = pace.on_failure(&SETTINGS, at(second), at(0));
        let (next, grant) = pace.reserve(&SETTINGS, at(second), count(1));
        pace = next;
        if let (Grant::Slots(slots), Circuit::HalfOpen { .. }) = (grant, pace.circuit) {
            probes.push(slots.first());
        }
    }
    assert_eq!(
        probes,
        [44, 49, 54, 59, 64, 69].map(at),
        "a probe after each rest of 5 s, for none was answered"
    );
    // The first of them times out after others have replaced it: now the rest doubles.
    let pace = pace.on_failure(&SETTINGS, at(74), probes[0]);
    let stopped = pace.stopped(&SETTINGS, at(74));
    assert_eq!(stopped, Some((at(84), PauseReason::Circuit)));
}

#[test]
fn an_endpoint_that_throttles_is_rested() {
    let free = paced(10.0);
    let paused = refused(free, TOO_MANY, NOW, Some(Duration::from_secs(30)));
    assert_eq!(free.opening(&SETTINGS, NOW), Opening::At(NOW));
    assert_eq!(paused.opening(&SETTINGS, NOW), Opening::Resting { until: after(30_000) });
    let openings = [paused, free].map(|pace| pace.opening(&SETTINGS, NOW));
    assert_eq!(choose(&openings, 0.0), Choice::Endpoint(1));
}

#[test]
fn endpoints_share_load_by_capacity() {
    let mut endpoints = [paced(10.0), paced(5.0)];
    let mut calls = [0_u32; 2];
    let mut now = NOW;
    while now < after(60_000) {
        let openings = endpoints.map(|pace| pace.opening(&SETTINGS, now));
        let Choice::Endpoint(index) = choose(&openings, 0.5) else {
            panic!("none of them rests");
        };
        let (pace, grant) = endpoints[index].reserve(&SETTINGS, openings[index].moment(), count(1));
        now = slots(grant).first();
        endpoints[index] = pace;
        calls[index] += 1;
    }
    assert!(calls[0].abs_diff(600) <= 2 && calls[1].abs_diff(300) <= 2, "{calls:?}");
}

#[test]
fn a_queue_drains_at_the_present_rate() {
    for (pace, waiting, drained_at) in [
        (Pace::NEW, 1_000_000_u32, NOW),
        (paced(10.0), 0, NOW),
        (paced(10.0), 1, NOW),
        (paced(10.0), 601, after(60_000)),
        (Pace { paused_until: after(5_000), ..paced(10.0) }, 601, after(65_000)),
    ] {
        let first = pace.opening(&SETTINGS, NOW).moment();
        let last = first.plus(pace.spacing(&SETTINGS).saturating_mul(waiting.saturating_sub(1)));
        assert_eq!(last, drained_at, "{waiting} waiting for {pace:?}");
    }
}

#[test]
fn slots_beyond_the_horizon_claim_nothing() {
    let slow = |pace: Pace| Pace { last_slot: NOW, ..pace };
    let rests = (0..10).fold(Pace::NEW, |pace, _| pace.on_failure(&SETTINGS, NOW, NOW));
    for (pace, closed_until) in [
        (Pace::NEW, None),
        (paced(10.0), None),
        (slow(paced(2.0)), None),
        (slow(paced(1.0)), Some(after(500))),
        (slow(paced(0.1)), Some(after(9_500))),
        (Pace { paused_until: after(5_000), ..paced(10.0) }, Some(after(5_000))),
        (rests, Some(after(5_000))),
    ] {
        assert_eq!(pace.closed_until(&SETTINGS, NOW), closed_until, "{pace:?}");
        if let Some(open) = closed_until {
            assert_eq!(pace.closed_until(&SETTINGS, open), None, "{pace:?}");
        }
    }
}

#[test]
fn clock_set_back_does_not_stop_pacing() {
    let (pace, _) = paced(10.0).reserve(&SETTINGS, after(3_600_000), count(3));
    let pace = refused(pace, TOO_MANY, after(3_600_300), None);
    let (pace, grant) = pace.reserve(&SETTINGS, NOW, count(1));
    assert_eq!(slots(grant).first().as_millis(), after(142).as_millis(), "spaced from now");
    let pace = refused(pace, 2, after(300), None);
    assert!(close_to(per_second(&pace), 3.5), "and it listens again: {pace:?}");
}

#[test]
fn nan_is_the_slowest_rate() {
    assert_eq!(PerSecond::clamped(f64::NAN), PerSecond::MIN);
    assert_eq!(PerSecond::clamped(-1.0), PerSecond::MIN);
    assert_eq!(PerSecond::clamped(f64::INFINITY), PerSecond::MAX);
}

/// A random step of a pace, with any times and numbers.
#[derive(Clone, Copy, Debug)]
enum PaceStep {
    Reserve(u32),
    Success(u32),
    Throttled { sent: i64, retry_after: Option<Duration> },
    Failure { sent: i64 },
}

fn any_step() -> impl Strategy<Value = (i64, PaceStep)> {
    let duration = prop::option::of(any::<u64>().prop_map(Duration::from_micros));
    let step = prop_oneof![
        (1..=u32::MAX).prop_map(PaceStep::Reserve),
        (1..=u32::MAX).prop_map(PaceStep::Success),
        (any::<i64>(), duration).prop_map(|(sent, retry_after)| PaceStep::Throttled { sent, retry_after }),
        any::<i64>().prop_map(|sent| PaceStep::Failure { sent }),
    ];
    // Times close together, where things meet, and from anywhere, where things overflow.
    (prop_oneof![4 => 0..10_000_000_i64, 1 => any::<i64>()], step)
}

proptest! {
    #[test]
    fn spacing_is_whole_microseconds_and_never_faster_than_the_rate(exponent in -5.0..5.0_f64) {
        let rate = PerSecond::clamped(10_f64.powf(exponent));
        let spacing = rate.spacing();
        prop_assert_eq!(spacing.subsec_nanos() % 1_000, 0);
        let exact = rate.get().recip();
        prop_assert!(exact * (1.0 - 1e-15) <= spacing.as_secs_f64(), "{:?} for {:?}", spacing, rate);
        prop_assert!(spacing.as_secs_f64() < exact + 1.001e-6, "{:?} for {:?}", spacing, rate);
    }

    #[test]
    fn nothing_panics_and_the_rate_stays_within_its_bounds(
        steps in prop::collection::vec(any_step(), 0..60),
        floor in any::<f64>(),
        max in prop::option::of(any::<f64>()),
        horizon in any::<u64>(),
    ) {
        let settings = PaceSettings {
            min_rate: PerSecond::clamped(floor),
            max_rate: max.map(PerSecond::clamped),
            horizon: Duration::from_micros(horizon),
            ..SETTINGS
        };
        let mut pace = Pace::NEW;
        for (moment, step) in steps {
            let now = Timestamp::from_micros(moment);
            pace = match step {
                PaceStep::Reserve(wanted) => {
                    let (pace, grant) = pace.reserve(&settings, now, count(wanted));
                    match grant {
                        Grant::Slots(slots) => {
                            prop_assert!(0 < slots.count() && slots.count() <= wanted);
                            prop_assert!(now <= slots.first() && slots.first() <= slots.last());
                            prop_assert!(slots.last() <= now.plus(settings.horizon));
                        }
                        Grant::Wait { until, .. } => prop_assert!(now < until),
                    }
                    pace
                }
                PaceStep::Success(accepted) => pace.on_success(&settings, now, count(accepted)),
                PaceStep::Throttled { sent, retry_after } => {
                    pace.on_throttled(&settings, now, Timestamp::from_micros(sent), retry_after)
                }
                PaceStep::Failure { sent } => pace.on_failure(&settings, now, Timestamp::from_micros(sent)),
            };
            if let Some(rate) = pace.rate.limit(&settings) {
                let max = settings.max_rate.unwrap_or(PerSecond::MAX);
                prop_assert!(rate <= max && (settings.min_rate <= rate || rate == max));
            }
        }
    }

    /// However nodes ask, and whatever the rate does in between: slots keep the spacing.
    #[test]
    fn slots_are_never_closer_than_the_rate_allows(
        asks in prop::collection::vec((0..400_u64, 1..9_u32, any::<bool>()), 1..60),
        per_second in 1.0..50.0_f64,
    ) {
        let (mut pace, mut now, mut last) = (paced(per_second), NOW, None::<Timestamp>);
        for (millis, wanted, refused) in asks {
            now = now.plus(Duration::from_millis(millis));
            let spacing = pace.spacing(&SETTINGS);
            let (next, grant) = pace.reserve(&SETTINGS, now, count(wanted));
            pace = next;
            if let Grant::Slots(slots) = grant {
                for slot in slots.moments() {
                    let apart = last.map_or(Duration::MAX, |last| slot.since(last));
                    prop_assert!(spacing <= apart, "{spacing:?} but {apart:?}");
                    last = Some(slot);
                }
            }
            if refused {
                pace = pace.on_throttled(&SETTINGS, now, now, None);
            }
        }
    }
}

#[test]
fn an_operator_stops_all_calls_and_nothing_is_learned_from_it() {
    let paused = PaceSettings { is_paused: true, ..SETTINGS };
    let now = after(0);
    let fresh = Pace::NEW;
    let failed = (0..10).fold(fresh, |pace, _| pace.on_failure(&SETTINGS, now, now));
    for pace in [fresh, failed] {
        for asked in
            [pace.reserve(&paused, now, NonZeroU32::MIN), pace.reserve_again(&paused, now, NonZeroU32::MIN)]
        {
            assert!(
                matches!(asked, (unchanged, Grant::Wait { why: PauseReason::Operator, .. }) if unchanged == pace)
            );
        }
        assert!(matches!(pace.stopped(&paused, now), Some((until, PauseReason::Operator)) if now < until));
        assert!(pace.closed_until(&paused, now).is_some());
        assert!(matches!(pace.opening(&paused, now), Opening::Resting { .. }));
    }
    assert!(
        matches!(fresh.reserve(&SETTINGS, now, NonZeroU32::MIN).1, Grant::Slots(_)),
        "it goes on at once"
    );
}
