use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::retry::Guarantee;
use crate::verdict::NextStep;

const NOW: Timestamp = Timestamp::from_secs(1_000);
const SOON: Timestamp = Timestamp::from_secs(1_060);
const LATER: Timestamp = Timestamp::from_secs(1_090);
/// When `after` and `refusal` take their steps: by then everything is due and nothing is in transit.
const THEN: Timestamp = Timestamp::from_secs(1_100);

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn allowed(attempts: u32) -> NonZeroU32 {
    NonZeroU32::new(attempts).unwrap()
}

fn claimed(number: u64) -> Event {
    Event::Claimed { fence: fence(number), start_mark: StartMark::NotTracked }
}

fn marked(number: u64) -> Event {
    Event::Claimed { fence: fence(number), start_mark: StartMark::NotYet }
}

fn began(number: u64) -> Event {
    Event::Started { fence: fence(number) }
}

/// Two workers in a row die while they call with this message alone.
fn killed_twice(safety: Safety) -> [Event; 6] {
    [marked(1), began(1), died(1, true, safety), marked(2), began(2), died(2, true, safety)]
}

/// A failed call to a receiver that honours keys; it may be in transit until `SOON`.
fn failed(number: u64, failure: Failure, effect: Effect) -> Event {
    Event::Failed { fence: fence(number), failure, effect, safety: Safety::Keyed, in_flight_until: SOON }
}

fn again(number: u64, effect: Effect) -> Event {
    failed(number, Failure::Retry { due: SOON }, effect)
}

fn for_good(number: u64, effect: Effect) -> Event {
    failed(number, Failure::Permanent, effect)
}

fn in_doubt(number: u64) -> Event {
    failed(number, Failure::InDoubt, Effect::Unknown)
}

fn died(number: u64, alone: bool, safety: Safety) -> Event {
    Event::WorkerDied { fence: fence(number), alone, safety, due: LATER, in_flight_until: SOON }
}

fn stopped(number: u64) -> Event {
    Event::Stopped { fence: fence(number) }
}

fn not_done() -> Event {
    Event::Reconciled(Reconciled::NotDone { due: LATER })
}

fn requeued(safety: Safety) -> Event {
    Event::Requeued { allowed: true, safety }
}

/// A message with three attempts, after these events, each legal.
fn after(events: &[Event]) -> State {
    let mut state = State::queued(NOW, allowed(3));
    for event in events {
        state = state.step(*event, THEN).unwrap_or_else(|illegal| panic!("{event:?}: {illegal}"));
    }
    state
}

fn history(state: State) -> History {
    match state {
        State::Queued { history, .. }
        | State::Sending { history, .. }
        | State::Failed { history, .. }
        | State::Parked { history }
        | State::Dead { history, .. }
        | State::Cancelled { history, .. } => history,
        State::Sent => panic!("{state:?} has no history"),
    }
}

fn refusal(state: State, event: Event) -> StepRefusal {
    state.step(event, THEN).unwrap_err().why
}

#[test]
fn the_arrows_of_the_specification() {
    use Effect::NotDone;
    let parked = [claimed(1), in_doubt(1)];
    let arrows: &[(&str, &[Event], &str)] = &[
        ("queued → sending", &[claimed(1)], "sending"),
        ("sending → sent", &[claimed(1), Event::Succeeded { fence: fence(1) }], "sent"),
        ("sending → failed", &[claimed(1), again(1, NotDone)], "failed"),
        ("failed → queued", &[claimed(1), again(1, NotDone), Event::CameDue], "queued"),
        ("a due failed one is claimed as if queued", &[claimed(1), again(1, NotDone), claimed(2)], "sending"),
        ("sending → dead", &[claimed(1), for_good(1, NotDone)], "dead"),
        ("sending → parked", &parked, "parked"),
        ("queued → cancelled", &[Event::Cancelled], "cancelled"),
        ("failed → cancelled", &[claimed(1), again(1, NotDone), Event::Cancelled], "cancelled"),
        ("sending → cancelled", &[claimed(1), stopped(1)], "cancelled"),
        ("parked → queued", &[claimed(1), in_doubt(1), Event::Decided(Decision::NotDone)], "queued"),
        ("parked → sent", &[claimed(1), in_doubt(1), Event::Decided(Decision::Done)], "sent"),
        ("parked → dead", &[claimed(1), in_doubt(1), Event::Decided(Decision::GiveUp)], "dead"),
        ("dead → queued", &[claimed(1), for_good(1, NotDone), requeued(Safety::None)], "queued"),
    ];
    for (arrow, events, name) in arrows {
        assert_eq!(after(events).name(), *name, "{arrow}");
    }
}

#[test]
fn exhausted_attempts_lead_from_failed_to_dead() {
    let last_try =
        after(&[claimed(1), again(1, Effect::NotDone), claimed(2), again(2, Effect::NotDone), claimed(3)]);
    let (failed, dead) = last_try.advance(again(3, Effect::NotDone), SOON).unwrap();
    assert_eq!(failed.name(), "failed");
    assert_eq!(refusal(failed, claimed(4)), StepRefusal::NoAttemptLeft);
    assert!(matches!(dead, Some(State::Dead { effect: Effect::NotDone, history }) if history.attempts == 3));
    let (failed, more) = after(&[claimed(1)]).advance(again(1, Effect::NotDone), SOON).unwrap();
    assert_eq!((failed.name(), more), ("failed", None));
    assert_eq!(refusal(failed, Event::Spent), StepRefusal::AttemptLeft);
}

#[test]
fn a_message_is_not_claimed_before_it_is_due() {
    let queued = State::queued(SOON, allowed(1));
    assert_eq!(queued.step(claimed(1), NOW).unwrap_err().why, StepRefusal::NotDue);
    assert_eq!(queued.step(claimed(1), SOON).unwrap().name(), "sending");
}

#[test]
fn a_zombie_settles_nothing() {
    let zombie = [
        Event::Started { fence: fence(1) },
        Event::Succeeded { fence: fence(1) },
        again(1, Effect::NotDone),
        for_good(1, Effect::NotDone),
        in_doubt(1),
        Event::GivenBack { fence: fence(1), due: SOON },
        stopped(1),
        died(1, true, Safety::Keyed),
    ];
    let rescued = [claimed(1), died(1, false, Safety::Keyed)];
    let resent = [claimed(1), died(1, false, Safety::Keyed), claimed(2)];
    let reborn = [claimed(1), for_good(1, Effect::NotDone), requeued(Safety::Keyed)];
    for state in [after(&rescued), after(&resent), after(&reborn)] {
        for event in zombie {
            assert_eq!(refusal(state, event), StepRefusal::StaleFence, "{state:?}, {event:?}");
        }
        assert_eq!(refusal(state, claimed(1)), StepRefusal::StaleFence, "an old claim is not a new claim");
    }
}

#[test]
fn graceful_stop_returns_the_attempt() {
    let back = after(&[claimed(1), Event::GivenBack { fence: fence(1), due: NOW }]);
    assert_eq!(
        back,
        State::Queued {
            due: NOW,
            history: History { last_fence: Some(fence(1)), ..history(State::queued(NOW, allowed(3))) }
        }
    );
    let marked = Event::Claimed { fence: fence(1), start_mark: StartMark::NotYet };
    assert_eq!(after(&[marked, Event::GivenBack { fence: fence(1), due: NOW }]).name(), "queued");
    let start_mark = after(&[marked, Event::Started { fence: fence(1) }]);
    assert_eq!(
        refusal(start_mark, Event::GivenBack { fence: fence(1), due: NOW }),
        StepRefusal::MayHaveStarted
    );
}

#[test]
fn unstarted_call_of_a_dead_worker_is_not_done() {
    for safety in [Safety::None, Safety::Keyed, Safety::Idempotent, Safety::Transactional] {
        for alone in [true, false] {
            let mut state = State::queued(NOW, allowed(1));
            // More often than it has attempts, and than deaths are allowed: it was never called.
            for number in 1..=5 {
                state = state.step(marked(number), THEN).unwrap();
                let (next, spent) = state.advance(died(number, alone, safety), THEN).unwrap();
                assert_eq!(spent, None);
                state = next;
                assert!(matches!(state, State::Queued { due: THEN, .. }), "at once: {state:?}");
                let seen = history(state);
                let expected = (0, 0, Effect::NotDone, false);
                assert_eq!((seen.attempts, seen.deaths, seen.effect(), seen.suspect), expected);
            }
        }
    }
}

#[test]
fn possibly_started_call_is_parked_if_not_repeatable() {
    for alone in [true, false] {
        assert_eq!(after(&[claimed(1), died(1, alone, Safety::None)]).name(), "parked");
        let start_mark = [
            Event::Claimed { fence: fence(1), start_mark: StartMark::NotYet },
            Event::Started { fence: fence(1) },
            died(1, alone, Safety::None),
        ];
        assert_eq!(after(&start_mark).name(), "parked");
    }
}

/// Its effect would have been settled with it.
#[test]
fn transactional_call_of_a_dead_worker_is_not_done() {
    let once = after(&[claimed(1), died(1, true, Safety::Transactional)]);
    assert_eq!((once.name(), history(once).attempts, history(once).effect()), ("failed", 1, Effect::NotDone));
    let quarantined = after(&killed_twice(Safety::Transactional));
    assert!(matches!(quarantined, State::Dead { effect: Effect::NotDone, .. }), "{quarantined:?}");
    let doubted = [claimed(1), again(1, Effect::Unknown), claimed(2), died(2, true, Safety::Transactional)];
    assert_eq!(after(&doubted).name(), "parked", "the doubt is about a call under another guarantee");
}

#[test]
fn other_messages_of_a_batch_are_not_charged() {
    let suspect = after(&[claimed(1), died(1, false, Safety::Keyed)]);
    assert!(matches!(suspect, State::Queued { due: THEN, .. }), "at once");
    let seen = history(suspect);
    assert_eq!((seen.attempts, seen.deaths, seen.suspect), (0, 0, true));
    let cleared = after(&[claimed(1), died(1, false, Safety::Keyed), claimed(2), again(2, Effect::NotDone)]);
    assert!(!history(cleared).suspect, "its next worker survived");
}

#[test]
fn a_suspect_is_charged_when_a_worker_dies_with_it_again() {
    let keyed = Safety::Keyed;
    let caught = after(&[claimed(1), died(1, false, keyed), claimed(2), died(2, false, keyed)]);
    assert_eq!((caught.name(), history(caught).attempts, history(caught).deaths), ("failed", 1, 1));
}

#[test]
fn suspect_without_a_call_is_not_charged() {
    let keyed = Safety::Keyed;
    let waited = after(&[claimed(1), died(1, false, keyed), marked(2), died(2, true, keyed)]);
    assert!(matches!(waited, State::Queued { due: THEN, .. }), "{waited:?}");
    let seen = history(waited);
    assert_eq!((seen.attempts, seen.deaths, seen.suspect), (0, 0, true), "and it stays suspect");
}

#[test]
fn a_lone_death_counts_as_a_failure_and_the_second_means_quarantine() {
    for (safety, state) in [(Safety::Keyed, "parked"), (Safety::Idempotent, "dead")] {
        let killer = killed_twice(safety);
        let once = after(&killer[..3]);
        assert!(matches!(once, State::Failed { due: LATER, .. }), "{once:?}");
        assert_eq!((history(once).attempts, history(once).deaths), (1, 1));
        let quarantined = after(&killer);
        assert_eq!((quarantined.name(), history(quarantined).deaths), (state, 2));
    }
    let one_try = State::queued(NOW, allowed(1)).step(marked(1), SOON).unwrap().step(began(1), SOON).unwrap();
    let (_, dead) = one_try.advance(died(1, true, Safety::Keyed), SOON).unwrap();
    assert!(
        matches!(dead, Some(State::Dead { effect: Effect::Unknown, .. })),
        "no attempt is left: {dead:?}"
    );
}

/// It is unknown whether it was called, so the next call gets a start mark, and its last attempt is not used up.
#[test]
fn unmarked_lone_death_is_not_charged() {
    let once = after(&[claimed(1), died(1, true, Safety::Keyed)]);
    assert!(matches!(once, State::Failed { due: LATER, .. }), "{once:?}");
    let seen = history(once);
    assert_eq!((seen.attempts, seen.deaths, seen.suspect), (1, 0, true));
    let one_try = State::queued(NOW, allowed(1)).step(claimed(1), SOON).unwrap();
    let (again, dead) = one_try.advance(died(1, true, Safety::Keyed), SOON).unwrap();
    assert!(matches!((again, dead), (State::Queued { due: LATER, .. }, None)), "{again:?}");
    assert_eq!((history(again).attempts, history(again).suspect), (0, true));
}

#[test]
fn automatic_reconcile_grants_no_new_attempts() {
    let mut state = State::queued(NOW, allowed(3));
    for number in 1..=3 {
        state = state.step(claimed(number), LATER).unwrap();
        state = state.step(in_doubt(number), LATER).unwrap().step(not_done(), LATER).unwrap();
    }
    assert!(
        matches!(state, State::Dead { effect: Effect::NotDone, .. }),
        "three attempts were allowed: {state:?}"
    );
    let death = |number| [marked(number), began(number), died(number, true, Safety::None), not_done()];
    assert_eq!(after(&[death(1), death(2)].concat()).name(), "dead", "and two deaths are enough");
    let again = after(&[claimed(1), in_doubt(1), not_done()]);
    assert!(
        matches!(again, State::Queued { due: LATER, history } if history.attempts == 1 && history.doubt.is_none())
    );
}

#[test]
fn possibly_double_effect_is_parked_despite_the_worker() {
    let fail = |effect, safety| Event::Failed {
        fence: fence(1),
        failure: Failure::Retry { due: SOON },
        effect,
        safety,
        in_flight_until: SOON,
    };
    let sending = after(&[claimed(1)]);
    let outcome = |effect, safety| sending.step(fail(effect, safety), LATER).map(|state| state.name());
    assert_eq!(outcome(Effect::NotDone, Safety::None), Ok("failed"));
    assert_eq!(outcome(Effect::Unknown, Safety::None), Ok("parked"));
    assert_eq!(outcome(Effect::Unknown, Safety::Keyed), Ok("failed"));
    assert_eq!(outcome(Effect::Done, Safety::Idempotent), Ok("failed"));
    assert_eq!(refusal(sending, fail(Effect::Done, Safety::Keyed)), StepRefusal::WasDone);
}

#[test]
fn every_parked_message_is_in_doubt() {
    let parked = after(&[claimed(1), failed(1, Failure::InDoubt, Effect::NotDone)]);
    assert_eq!(history(parked).effect(), Effect::Unknown);
    let given_up = parked.step(Event::Decided(Decision::GiveUp), THEN).unwrap();
    assert_eq!(refusal(given_up, requeued(Safety::None)), StepRefusal::CouldDoItTwice);
}

#[test]
fn doubt_spans_first_to_last_uncertain_attempt() {
    let first = State::queued(NOW, allowed(5)).step(claimed(1), NOW).unwrap();
    let lost = |number, until| Event::Failed {
        fence: fence(number),
        failure: Failure::Retry { due: NOW },
        effect: Effect::Unknown,
        safety: Safety::Keyed,
        in_flight_until: until,
    };
    let once = first.step(lost(1, SOON), SOON).unwrap();
    assert_eq!(history(once).doubt, Some(Doubt { since: NOW, in_flight_until: SOON }), "since the claim");
    let twice = once.step(claimed(2), SOON).unwrap().step(lost(2, LATER), LATER).unwrap();
    assert_eq!(history(twice).doubt, Some(Doubt { since: NOW, in_flight_until: LATER }));
    let keyed = Guarantee::Keyed { keeps_for: std::time::Duration::from_mins(1) };
    assert_eq!(history(twice).safety(keyed, NOW), Safety::Keyed);
    assert_eq!(history(twice).safety(keyed, SOON), Safety::None, "the receiver has forgotten the key");
}

#[test]
fn late_success_resolves_parked_and_stops_resend() {
    let late = Event::LateSuccess { fence: fence(1) };
    assert_eq!(after(&[claimed(1), in_doubt(1), late]), State::Sent);
    assert_eq!(after(&[claimed(1), died(1, false, Safety::Keyed), late]), State::Sent);
    assert_eq!(after(&[claimed(1), again(1, Effect::Unknown), late]), State::Sent);
    let resending = after(&[claimed(1), died(1, false, Safety::Keyed), claimed(2)]);
    assert_eq!(
        refusal(resending, Event::LateSuccess { fence: fence(2) }),
        StepRefusal::StaleFence,
        "not an earlier attempt"
    );
    let never_claimed = Event::LateSuccess { fence: fence(9) };
    assert_eq!(refusal(after(&[claimed(1), in_doubt(1)]), never_claimed), StepRefusal::StaleFence);
    assert_eq!(refusal(State::queued(NOW, allowed(1)), late), StepRefusal::StaleFence);
    let dead = after(&[claimed(1), for_good(1, Effect::Unknown), late]);
    assert!(matches!(dead, State::Dead { effect: Effect::Done, .. }), "known, and still dead");
}

#[test]
fn late_success_during_resend_counts_after_that_attempt() {
    let resent =
        [claimed(1), died(1, false, Safety::Keyed), claimed(2), Event::LateSuccess { fence: fence(1) }];
    let proven = after(&resent);
    assert!(matches!(proven, State::Sending { proven: true, .. }), "its holder is not disturbed");
    assert_eq!(refusal(proven, Event::Started { fence: fence(2) }), StepRefusal::WasDone);
    let back = Event::GivenBack { fence: fence(2), due: SOON };
    let succeeded = Event::Succeeded { fence: fence(2) };
    for end in [
        again(2, Effect::NotDone),
        again(2, Effect::Unknown),
        for_good(2, Effect::NotDone),
        in_doubt(2),
        back,
        stopped(2),
        died(2, true, Safety::Keyed),
        succeeded,
    ] {
        assert_eq!(proven.step(end, THEN), Ok(State::Sent), "{end:?}");
    }
    assert_eq!(refusal(proven, again(1, Effect::NotDone)), StepRefusal::StaleFence);
}

#[test]
fn attempt_that_stopped_on_request_is_cancelled_with_what_is_known() {
    let untouched = after(&[claimed(1), stopped(1)]);
    assert!(matches!(untouched, State::Cancelled { effect: Effect::NotDone, .. }), "{untouched:?}");
    let marked_and_called = after(&[marked(1), began(1), stopped(1)]);
    assert!(matches!(marked_and_called, State::Cancelled { effect: Effect::NotDone, .. }));
    let in_doubt_before = after(&[claimed(1), again(1, Effect::Unknown), claimed(2), stopped(2)]);
    assert!(
        matches!(in_doubt_before, State::Cancelled { effect: Effect::Unknown, .. }),
        "an earlier attempt may have"
    );
    for waiting in [after(&[]), after(&[claimed(1), again(1, Effect::NotDone)])] {
        assert_eq!(refusal(waiting, stopped(1)), StepRefusal::StaleFence, "nobody holds it: {waiting:?}");
    }
    assert_eq!(
        refusal(after(&[claimed(1)]), Event::Cancelled),
        StepRefusal::WrongState,
        "its holder decides"
    );
}

#[test]
fn decision_waits_until_the_call_has_ended() {
    let parked = after(&[claimed(1), in_doubt(1)]);
    for event in [Event::Decided(Decision::NotDone), Event::Decided(Decision::GiveUp), not_done()] {
        assert_eq!(parked.step(event, NOW).unwrap_err().why, StepRefusal::TooEarly, "{event:?}");
        assert!(parked.step(event, SOON).is_ok(), "{event:?}");
    }
    for event in [Event::Decided(Decision::Done), Event::Reconciled(Reconciled::Done)] {
        assert_eq!(parked.step(event, NOW), Ok(State::Sent), "what is done stays done: {event:?}");
    }
    let given_up = after(&[claimed(1), for_good(1, Effect::Unknown)]);
    let cancelled = after(&[claimed(1), again(1, Effect::Unknown), Event::Cancelled]);
    for state in [given_up, cancelled] {
        assert_eq!(state.step(not_done(), NOW).unwrap_err().why, StepRefusal::TooEarly, "{state:?}");
        assert!(state.step(not_done(), SOON).is_ok(), "{state:?}");
    }
}

#[test]
fn a_dead_message_is_requeued_only_where_the_queue_allows_it() {
    let dead = after(&[claimed(1), again(1, Effect::NotDone), claimed(2), for_good(2, Effect::NotDone)]);
    let refused = Event::Requeued { allowed: false, safety: Safety::Keyed };
    assert_eq!(refusal(dead, refused), StepRefusal::RequeueNotAllowed);
    let second_life = dead.step(requeued(Safety::None), SOON).unwrap();
    assert_eq!(history(second_life).attempts, 0, "the count is back at 0");
    assert_eq!(history(second_life).last_fence, Some(fence(2)), "a zombie is still recognized");
}

#[test]
fn failed_message_is_requeued_at_once_and_its_attempts_count() {
    let failed = after(&[claimed(1), again(1, Effect::Unknown)]);
    for (allowed, safety) in [(true, Safety::Idempotent), (false, Safety::None)] {
        let retried = failed.step(Event::Requeued { allowed, safety }, NOW).unwrap();
        assert_eq!(retried, State::Queued { due: NOW, history: history(failed) });
    }
    let waiting = after(&[]);
    assert_eq!(refusal(waiting, requeued(Safety::Idempotent)), StepRefusal::WrongState);
}

/// The guarantee may have changed since a message was parked.
#[test]
fn parked_message_is_requeued_only_where_a_repetition_is_safe() {
    let parked = after(&[claimed(1), in_doubt(1)]);
    for (safety, expected) in [
        (Safety::Idempotent, Ok("queued")),
        (Safety::Keyed, Ok("queued")),
        (Safety::None, Err(StepRefusal::CouldDoItTwice)),
    ] {
        for allowed in [true, false] {
            let event = Event::Requeued { allowed, safety };
            let stepped = parked.step(event, NOW).map(|state| state.name()).map_err(|refused| refused.why);
            assert_eq!(stepped, expected, "{event:?}: the queue's setting is about dead messages");
        }
    }
    let released = history(parked.step(requeued(Safety::Keyed), SOON).unwrap());
    assert_eq!((released.attempts, released.effect()), (0, Effect::Unknown), "no requeue takes a doubt away");
}

#[test]
fn discarded_or_replaced_message_stays_dead_with_its_effect() {
    let dead = after(&[claimed(1), for_good(1, Effect::NotDone)]);
    for event in [Event::Discarded, Event::Replaced] {
        assert_eq!(dead.step(event, THEN), Ok(dead), "{event:?}");
    }
    let in_doubt_and_dead = after(&[claimed(1), for_good(1, Effect::Unknown)]);
    assert_eq!(in_doubt_and_dead.step(Event::Discarded, THEN), Ok(in_doubt_and_dead));
}

#[test]
fn message_with_unknown_effect_is_not_replaced() {
    let dead = after(&[claimed(1), for_good(1, Effect::Unknown)]);
    assert_eq!(refusal(dead, Event::Replaced), StepRefusal::CouldDoItTwice);
    let asked_after = dead.step(not_done(), THEN).unwrap();
    assert_eq!(asked_after.step(Event::Replaced, THEN), Ok(asked_after));
}

#[test]
fn only_a_dead_message_is_discarded_or_replaced() {
    let others = [
        after(&[]),
        after(&[claimed(1)]),
        after(&[claimed(1), again(1, Effect::NotDone)]),
        after(&[claimed(1), in_doubt(1)]),
        after(&[claimed(1), Event::Succeeded { fence: fence(1) }]),
        after(&[Event::Cancelled]),
    ];
    for state in others {
        for event in [Event::Discarded, Event::Replaced] {
            assert_eq!(refusal(state, event), StepRefusal::WrongState, "{state:?} by {event:?}");
        }
    }
}

#[test]
fn a_second_life_begins_with_a_clean_record() {
    let killer = killed_twice(Safety::Idempotent);
    let reborn = after(&killer).step(requeued(Safety::Idempotent), LATER).unwrap();
    let seen = history(reborn);
    assert_eq!((seen.attempts, seen.deaths, seen.suspect, seen.last_fence), (0, 0, false, Some(fence(2))));
    let suspect = [claimed(1), died(1, false, Safety::None), Event::Decided(Decision::NotDone)];
    let seen = history(after(&suspect));
    assert_eq!((seen.attempts, seen.deaths, seen.suspect, seen.doubt), (0, 0, false, None));
}

#[test]
fn dead_message_with_unknown_effect_is_decided_first() {
    for unknown in [
        after(&[claimed(1), for_good(1, Effect::Unknown)]),
        after(&[claimed(1), in_doubt(1), Event::Decided(Decision::GiveUp)]),
    ] {
        assert_eq!(refusal(unknown, requeued(Safety::None)), StepRefusal::CouldDoItTwice);
        assert_eq!(unknown.step(requeued(Safety::Keyed), LATER).unwrap().name(), "queued");
        let not_done = unknown.step(not_done(), LATER).unwrap();
        assert_eq!(history(not_done).doubt, None, "proof takes the doubt away");
        assert_eq!(not_done.step(requeued(Safety::None), LATER).unwrap().name(), "queued");
        let done = unknown.step(Event::Reconciled(Reconciled::Done), LATER).unwrap();
        assert_eq!(refusal(done, self::not_done()), StepRefusal::WrongState, "what is done stays done");
        for safety in [Safety::None, Safety::Keyed] {
            assert_eq!(refusal(done, requeued(safety)), StepRefusal::CouldDoItTwice);
        }
        assert!(done.step(requeued(Safety::Idempotent), LATER).is_ok(), "doing it twice is harmless");
    }
}

#[test]
fn a_clean_refusal_does_not_clear_an_earlier_doubt() {
    let dead = after(&[claimed(1), again(1, Effect::Unknown), claimed(2), for_good(2, Effect::NotDone)]);
    assert!(matches!(dead, State::Dead { effect: Effect::Unknown, .. }));
    let cancelled = after(&[claimed(1), again(1, Effect::Unknown), Event::Cancelled]);
    assert!(matches!(cancelled, State::Cancelled { effect: Effect::Unknown, .. }));
    let done = cancelled.step(Event::LateSuccess { fence: fence(1) }, LATER).unwrap();
    assert!(matches!(done, State::Cancelled { effect: Effect::Done, .. }), "known, and still cancelled");
    let reborn = after(&[claimed(1), for_good(1, Effect::Unknown), requeued(Safety::Keyed)]);
    assert_eq!(history(reborn).effect(), Effect::Unknown, "no requeue takes it away");
    let decided = after(&[claimed(1), in_doubt(1), Event::Decided(Decision::NotDone)]);
    assert_eq!(history(decided).effect(), Effect::NotDone, "a person vouched for it");
}

#[test]
fn attempt_outcome_becomes_its_event() {
    let tried = AttemptResult {
        fence: fence(1),
        effect: Effect::Unknown,
        safety: Safety::Keyed,
        due: LATER,
        in_flight_until: SOON,
    };
    let failed = |failure| failed(1, failure, Effect::Unknown);
    for (next, event, state) in [
        (NextStep::Sent, Event::Succeeded { fence: fence(1) }, "sent"),
        (NextStep::SentBefore, Event::Succeeded { fence: fence(1) }, "sent"),
        (NextStep::Retry, failed(Failure::Retry { due: LATER }), "failed"),
        (NextStep::RetryAnswer, failed(Failure::Retry { due: LATER }), "failed"),
        (NextStep::Dead, failed(Failure::Permanent), "dead"),
        (NextStep::Reconcile, failed(Failure::InDoubt), "parked"),
    ] {
        assert_eq!(Event::from_attempt(next, tried), event, "{next:?}");
        assert_eq!(after(&[claimed(1), event]).name(), state, "{next:?}");
    }
}

/// Any event, for tests that walk through lives.
pub(crate) fn events() -> impl Strategy<Value = Event> {
    let fences = || (0_u64..8).prop_map(fence);
    let effects = || prop_oneof![Just(Effect::NotDone), Just(Effect::Unknown)];
    let safeties = || {
        let harmless = prop_oneof![Just(Safety::Keyed), Just(Safety::Idempotent)];
        prop_oneof![2 => harmless, 1 => Just(Safety::Transactional), 1 => Just(Safety::None)]
    };
    let start_mark = || prop_oneof![Just(StartMark::NotYet), Just(StartMark::NotTracked)];
    let moments = || (990_i64..1_020).prop_map(Timestamp::from_secs);
    let failures = prop_oneof![
        2 => moments().prop_map(|due| Failure::Retry { due }),
        1 => Just(Failure::Permanent),
        1 => Just(Failure::InDoubt),
    ];
    let found = prop_oneof![Just(Reconciled::Done), moments().prop_map(|due| Reconciled::NotDone { due })];
    let decisions = prop_oneof![Just(Decision::NotDone), Just(Decision::Done), Just(Decision::GiveUp)];
    prop_oneof![
        4 => (fences(), start_mark()).prop_map(|(fence, start_mark)| Event::Claimed { fence, start_mark }),
        1 => fences().prop_map(|fence| Event::Started { fence }),
        1 => fences().prop_map(|fence| Event::Succeeded { fence }),
        4 => (fences(), failures, effects(), safeties(), moments()).prop_map(
            |(fence, failure, effect, safety, in_flight_until)| Event::Failed { fence, failure, effect, safety, in_flight_until }
        ),
        1 => (fences(), moments()).prop_map(|(fence, due)| Event::GivenBack { fence, due }),
        1 => fences().prop_map(|fence| Event::Stopped { fence }),
        2 => (fences(), any::<bool>(), safeties(), moments(), moments()).prop_map(
            |(fence, alone, safety, due, in_flight_until)| Event::WorkerDied { fence, alone, safety, due, in_flight_until }
        ),
        1 => Just(Event::CameDue),
        1 => Just(Event::Spent),
        1 => fences().prop_map(|fence| Event::LateSuccess { fence }),
        1 => found.prop_map(Event::Reconciled),
        1 => decisions.prop_map(Event::Decided),
        1 => (any::<bool>(), safeties()).prop_map(|(allowed, safety)| Event::Requeued { allowed, safety }),
        1 => Just(Event::Discarded),
        1 => Just(Event::Replaced),
        1 => Just(Event::Cancelled),
    ]
}

/// The fence of a worker's event.
fn fence_of(event: Event) -> Option<Fence> {
    match event {
        Event::Started { fence }
        | Event::Succeeded { fence }
        | Event::Failed { fence, .. }
        | Event::GivenBack { fence, .. }
        | Event::Stopped { fence }
        | Event::WorkerDied { fence, .. } => Some(fence),
        Event::Claimed { .. }
        | Event::CameDue
        | Event::Spent
        | Event::LateSuccess { .. }
        | Event::Reconciled(_)
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Discarded
        | Event::Replaced
        | Event::Cancelled => None,
    }
}

proptest! {
    #[test]
    fn a_final_state_is_left_only_by_an_operators_requeue(
        events in proptest::collection::vec(events(), 0..60), attempts in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(attempts));
        for (second, event) in events.into_iter().enumerate() {
            let now = Timestamp::from_secs(1_000 + i64::try_from(second).unwrap());
            let Ok(next) = state.step(event, now) else { continue };
            if state.is_final() && next.name() != state.name() {
                let by_an_operator = matches!(event, Event::Requeued { allowed: true, .. });
                prop_assert!(by_an_operator && state.name() == "dead" && next.name() == "queued");
            }
            state = next;
        }
    }

    #[test]
    fn a_stale_fence_never_changes_anything(
        events in proptest::collection::vec(events(), 0..60), attempts in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(attempts));
        for event in events {
            let held = match state {
                State::Sending { fence, .. } => Some(fence),
                _ => None,
            };
            let result = state.step(event, SOON);
            if fence_of(event).is_some() && fence_of(event) != held {
                prop_assert!(result.is_err(), "{:?} took {:?}", state, event);
            }
            if let (Event::Claimed { fence, .. }, Ok(next)) = (event, &result) {
                prop_assert!(history(state).last_fence < Some(fence), "{:?}", next);
            }
            state = result.unwrap_or(state);
        }
    }

    /// Attempts stay within the limit, and a doubt ends only with proof, a decision or success.
    #[test]
    fn attempts_are_bounded_and_doubts_stay(
        events in proptest::collection::vec(events(), 0..60), attempts in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(attempts));
        for event in events {
            let Ok(next) = state.step(event, SOON) else { continue };
            if next != State::Sent {
                prop_assert!(history(next).attempts <= attempts);
                let cleared = history(state).doubt.is_some() && history(next).doubt.is_none();
                let by_proof = matches!(
                    event, Event::Reconciled(Reconciled::NotDone { .. }) | Event::Decided(Decision::NotDone)
                );
                prop_assert!(!cleared || by_proof, "{:?} by {:?}", state, event);
            }
            state = next;
        }
    }
}
