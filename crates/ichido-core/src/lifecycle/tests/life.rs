//! From queued to sent: attempts, backoff, and the fence.

use super::*;
use crate::verdict::NextStep;

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
