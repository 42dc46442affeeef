use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Doubt, History};
use uuid::Uuid;

use super::super::bulk::BulkAction;
use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const HOUR: Duration = Duration::from_hours(1);
const KEYED: Guarantee = Guarantee::Keyed { keeps_for: HOUR };

fn queue() -> QueueName {
    QueueName::parse("orders").unwrap()
}

/// A dead letter whose first attempt in doubt, if any, was made this long ago.
fn letter(effect: Effect, doubt_for: Option<Duration>) -> DeadLetterRow {
    let since = doubt_for.map(|ago| Timestamp::from_secs(1_000_000 - i64::try_from(ago.as_secs()).unwrap()));
    let doubt = since.map(|since| Doubt { since, in_flight_until: since });
    DeadLetterRow {
        id: Uuid::nil(),
        queue: queue(),
        identity: "alice".to_owned(),
        key: IdempotencyKey::parse("k1").unwrap(),
        state: DeadLetterState::Dead,
        disposition: Disposition::Open,
        effect,
        code: None,
        error: None,
        group: None,
        since: NOW,
        asked_at: None,
        created_at: NOW,
        history: History { attempts: 3, doubt, ..History::new(NonZeroU32::MIN) },
        priority: 2,
        replacement_of: None,
        item: None,
        request_bytes: 0,
    }
}

fn judged(requeue: bool, guarantee: Guarantee, letter: &DeadLetterRow) -> Result<(), RequeueRefusal> {
    RequeuePolicies::default()
        .with(queue(), RequeuePolicy { requeue, guarantee })
        .judge(&letter.traits(), NOW)
}

#[test]
fn not_done_is_requeued_if_queue_allows() {
    let letter = letter(Effect::NotDone, None);
    for guarantee in [KEYED, Guarantee::Idempotent, Guarantee::None] {
        assert_eq!(judged(true, guarantee, &letter), Ok(()));
        assert_eq!(judged(false, guarantee, &letter), Err(RequeueRefusal::NotAllowed));
    }
    assert_eq!(RequeuePolicies::default().judge(&letter.traits(), NOW), Err(RequeueRefusal::QueueNotKnown));
}

#[test]
fn unknown_effect_is_requeued_only_while_key_is_remembered_or_repeatable() {
    let fresh = letter(Effect::Unknown, Some(HOUR / 2));
    let old = letter(Effect::Unknown, Some(HOUR));
    assert_eq!(judged(true, KEYED, &fresh), Ok(()));
    assert_eq!(judged(true, KEYED, &old), Err(RequeueRefusal::KeyExpired));
    assert_eq!(judged(true, Guarantee::None, &fresh), Err(RequeueRefusal::EffectUnknown));
    assert_eq!(judged(true, Guarantee::Idempotent, &old), Ok(()));
}

#[test]
fn done_or_replaced_is_not_requeued() {
    assert_eq!(judged(true, KEYED, &letter(Effect::Done, None)), Err(RequeueRefusal::WasDone));
    let replaced = DeadLetterRow { disposition: Disposition::Replaced, ..letter(Effect::NotDone, None) };
    assert_eq!(judged(true, KEYED, &replaced), Err(RequeueRefusal::HasSuccessor));
    let discarded = DeadLetterRow { disposition: Disposition::Discarded, ..letter(Effect::NotDone, None) };
    assert_eq!(judged(true, KEYED, &discarded), Ok(()), "an operator can change their mind");
}

/// An operator changed the guarantee after messages were parked.
#[test]
fn parked_is_requeued_where_the_new_guarantee_allows_it() {
    let parked = |doubt_for| DeadLetterRow {
        state: DeadLetterState::Parked,
        ..letter(Effect::Unknown, Some(doubt_for))
    };
    let (fresh, old) = (parked(HOUR / 2), parked(HOUR));
    for requeue in [true, false] {
        assert_eq!(judged(requeue, Guarantee::Idempotent, &old), Ok(()), "always");
        assert_eq!(judged(requeue, KEYED, &fresh), Ok(()), "the receiver still knows the key");
        assert_eq!(judged(requeue, KEYED, &old), Err(RequeueRefusal::KeyExpired));
        assert_eq!(judged(requeue, Guarantee::None, &fresh), Err(RequeueRefusal::EffectUnknown));
    }
    assert_eq!(RequeuePolicies::default().judge(&fresh.traits(), NOW), Err(RequeueRefusal::QueueNotKnown));
    for refusal in [RequeueRefusal::KeyExpired, RequeueRefusal::EffectUnknown] {
        assert!(refusal.to_string().contains("ichido dead decide"), "{refusal}");
    }
}

#[test]
fn decision_needs_an_unknown_effect_and_no_call_in_transit() {
    use RequeueRefusal::{EffectKnown, TooEarly};
    use ichido_core::lifecycle::Decision::{Done, GiveUp, NotDone};

    let in_transit = |state, until: u64| {
        let letter = letter(Effect::Unknown, Some(HOUR));
        let doubt = letter
            .history
            .doubt
            .map(|doubt| Doubt { in_flight_until: NOW.plus(Duration::from_secs(until)), ..doubt });
        DeadLetterRow { state, history: History { doubt, ..letter.history }, ..letter }
    };
    let (parked, dead) = (DeadLetterState::Parked, DeadLetterState::Dead);
    for (letter, expected) in [
        (in_transit(parked, 0), [Ok(()), Ok(()), Ok(())]),
        (in_transit(parked, 1), [Ok(()), Err(TooEarly), Err(TooEarly)]),
        (in_transit(dead, 0), [Ok(()), Ok(()), Err(EffectKnown)]),
        (in_transit(dead, 1), [Ok(()), Err(TooEarly), Err(EffectKnown)]),
        (letter(Effect::NotDone, None), [Err(EffectKnown), Err(EffectKnown), Err(EffectKnown)]),
    ] {
        let judged = [Done, NotDone, GiveUp].map(|decision| {
            let decide = BulkAction::Decide { decision, canary: None };
            decide.judge(&RequeuePolicies::default(), &letter.traits(), NOW)
        });
        assert_eq!(judged, expected, "{letter:?}");
    }
}
