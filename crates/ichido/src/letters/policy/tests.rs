use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Doubt, History};
use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const HOUR: Duration = Duration::from_hours(1);
const KEYED: Guarantee = Guarantee::HonoursKeys { keeps_for: HOUR };

fn queue() -> QueueName {
    QueueName::parse("orders").unwrap()
}

/// A dead letter whose first attempt in doubt, if any, was made this long ago.
fn letter(effect: Effect, doubt_for: Option<Duration>) -> LetterRow {
    let since = doubt_for.map(|ago| Timestamp::from_secs(1_000_000 - i64::try_from(ago.as_secs()).unwrap()));
    let doubt = since.map(|since| Doubt { since, travels_until: since });
    LetterRow {
        id: Uuid::nil(),
        queue: queue(),
        identity: "alice".to_owned(),
        key: IdempotencyKey::parse("k1").unwrap(),
        state: LetterState::Dead,
        standing: Standing::Open,
        effect,
        code: None,
        error: None,
        since: NOW,
        created_at: NOW,
        history: History { tries: 3, doubt, ..History::new(NonZeroU32::MIN) },
        priority: 2,
        made_from: None,
        request_bytes: 0,
    }
}

fn judged(requeue: bool, guarantee: Guarantee, letter: &LetterRow) -> Result<(), Refusal> {
    Policies::default().with(queue(), QueuePolicy { requeue, guarantee }).judge(letter, NOW)
}

#[test]
fn not_done_is_requeued_if_queue_allows() {
    let letter = letter(Effect::NotDone, None);
    for guarantee in [KEYED, Guarantee::Repeatable, Guarantee::Nothing] {
        assert_eq!(judged(true, guarantee, &letter), Ok(()));
        assert_eq!(judged(false, guarantee, &letter), Err(Refusal::NotAllowed));
    }
    assert_eq!(Policies::default().judge(&letter, NOW), Err(Refusal::QueueNotKnown));
}

#[test]
fn unknown_effect_is_requeued_only_while_key_is_remembered_or_repeatable() {
    let fresh = letter(Effect::Unknown, Some(HOUR / 2));
    let old = letter(Effect::Unknown, Some(HOUR));
    assert_eq!(judged(true, KEYED, &fresh), Ok(()));
    assert_eq!(judged(true, KEYED, &old), Err(Refusal::KeyForgotten));
    assert_eq!(judged(true, Guarantee::Nothing, &fresh), Err(Refusal::EffectUnknown));
    assert_eq!(judged(true, Guarantee::Repeatable, &old), Ok(()));
}

#[test]
fn done_replaced_or_parked_is_not_requeued() {
    assert_eq!(judged(true, KEYED, &letter(Effect::Done, None)), Err(Refusal::WasDone));
    let replaced = LetterRow { standing: Standing::Replaced, ..letter(Effect::NotDone, None) };
    assert_eq!(judged(true, KEYED, &replaced), Err(Refusal::HasSuccessor));
    let parked = LetterRow { state: LetterState::Parked, ..letter(Effect::Unknown, Some(HOUR)) };
    assert_eq!(judged(true, KEYED, &parked), Err(Refusal::Parked));
    let discarded = LetterRow { standing: Standing::Discarded, ..letter(Effect::NotDone, None) };
    assert_eq!(judged(true, KEYED, &discarded), Ok(()), "an operator can change their mind");
}
