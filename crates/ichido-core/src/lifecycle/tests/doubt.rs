//! Unknown effects: parked messages, late responses, and requests to stop.

use super::*;
use crate::retry::Guarantee;

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
