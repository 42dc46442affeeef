//! What people decide: requeued, discarded, replaced, decided.

use super::*;

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
