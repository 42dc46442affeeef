//! Operators' events on messages.
// SPEC D2, D17, E3, E4, F2.

use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Decision, Event, Reconciled, StartMark, State, StepRefusal};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::message::{NewMessage, Note, StepResult};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, KEYED, StoreFixture, TRAVELS_FOR, final_failure, given_back, ids, many, message,
    new_id, now, queue, succeeded, terms, will_retry,
};

const REQUEUE: Event = Event::Requeued { allowed: true, safety: Safety::None };
const SEND_AGAIN: Event = Event::Decided(Decision::NotDone);
const WAS_DONE: Event = Event::Decided(Decision::Done);
const GIVE_UP: Event = Event::Decided(Decision::GiveUp);
const FOUND_NOT_DONE: Event = Event::Reconciled(Reconciled::NotDone { due: Timestamp::EPOCH });

fn name(stepped: StepResult) -> &'static str {
    now(stepped).name()
}

both_databases! {
    #[test]
    async fn a_dead_message_is_requeued_with_its_count_at_zero_and_its_history_kept(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        assert_eq!(name(fixture.step(id, REQUEUE).await), "queued");
        let row = fixture.row(id).await;
        assert_eq!((row.status.as_str(), row.attempts), ("queued", 0));
        assert_eq!(row.last_error.as_deref(), Some("BAD_REQUEST"), "what went wrong is still seen");
        fixture.assert_counts(&[("queued", 1)]).await;
        let work = fixture.claim_one().await;
        assert_eq!((work.id, work.history.attempts), (id, 1));
        fixture.send(&work).await;
        let steps = fixture.steps(id).await;
        assert_eq!(
            steps,
            ["queued>sending", "sending>dead", "dead>queued", "queued>sending", "sending>sent"]
        );
    }

    #[test]
    async fn a_requeue_is_in_the_audit_with_its_actor(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        let _ = fixture.step(id, REQUEUE).await;
        let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
        assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("requeued", Some("olivia")));
        assert_eq!((last.from.as_str(), last.to.as_str(), last.attempts), ("dead", "queued", 0));
    }

    #[test]
    async fn a_requeue_that_the_queue_does_not_allow_is_refused(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        let event = Event::Requeued { allowed: false, safety: Safety::Idempotent };
        assert_eq!(fixture.step(id, event).await, StepResult::Refused(StepRefusal::RequeueNotAllowed));
        assert_eq!(fixture.status(id).await, "dead");
        assert_eq!(fixture.steps(id).await.len(), 2);
        fixture.assert_counts(&[("dead", 1)]).await;
    }

    #[test]
    async fn requeue_with_unknown_effect_is_refused_until_decided(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::Unknown).await;
        assert_eq!(fixture.step(id, REQUEUE).await, StepResult::Refused(StepRefusal::CouldDoItTwice));
        assert_eq!(fixture.step(id, FOUND_NOT_DONE).await, StepResult::Refused(StepRefusal::TooEarly));
        fixture.pass(TRAVELS_FOR);
        let learnt = fixture.step(id, FOUND_NOT_DONE).await;
        assert!(matches!(learnt, StepResult::Now(State::Dead { effect: Effect::NotDone, .. })), "{learnt:?}");
        assert_eq!(fixture.row(id).await.effect, Effect::NotDone);
        assert_eq!(name(fixture.step(id, REQUEUE).await), "queued");
    }

    #[test]
    async fn requeue_is_safe_if_the_receiver_deduplicates(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::Unknown).await;
        let event = Event::Requeued { allowed: true, safety: Safety::Keyed };
        assert_eq!(name(fixture.step(id, event).await), "queued");
        assert!(fixture.claim_one().await.history.doubt.is_some(), "the doubt goes with it");
    }

    #[test]
    async fn a_failed_message_is_retried_at_once_and_its_attempts_count(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, will_retry(&work)).await;
        assert!(fixture.claim(10).await.is_empty(), "its backoff is running");
        // A failed message is not judged by the policy of dead ones.
        let event = Event::Requeued { allowed: false, safety: Safety::None };
        assert_eq!(name(fixture.step(id, event).await), "queued");
        fixture.assert_counts(&[("queued", 1)]).await;
        let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
        assert_eq!((last.kind.as_str(), last.actor.as_deref(), last.attempts), ("requeued", Some("olivia"), 1));
        let work = fixture.claim_one().await;
        assert_eq!((work.id, work.history.attempts), (id, 2), "the first attempt counts");
        assert_eq!(fixture.step(id, event).await, StepResult::Refused(StepRefusal::WrongState), "sending");
        fixture.send(&work).await;
        fixture.assert_counts(&[("sent", 1)]).await;
    }

    #[test]
    async fn queued_sending_and_sent_messages_are_not_requeued(fixture: StoreFixture) {
        let queued = fixture.enqueue("k1").await;
        assert_eq!(fixture.step(queued, REQUEUE).await, StepResult::Refused(StepRefusal::WrongState));
        let work = fixture.claim_one().await;
        assert_eq!(fixture.step(queued, REQUEUE).await, StepResult::Refused(StepRefusal::WrongState), "sending");
        fixture.send(&work).await;
        assert_eq!(fixture.step(queued, REQUEUE).await, StepResult::Refused(StepRefusal::WrongState), "sent");
        fixture.assert_counts(&[("sent", 1)]).await;
    }

    #[test]
    async fn a_refused_step_leaves_the_message_claimable(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        for _ in 0..20 {
            assert_eq!(fixture.step(id, WAS_DONE).await, StepResult::Refused(StepRefusal::WrongState));
            let work = fixture.claim_one().await;
            let _ = fixture.settle(&work, given_back(&work)).await;
        }
    }

    #[test]
    async fn missing_message_is_reported(fixture: StoreFixture) {
        assert_eq!(fixture.step(Uuid::from_u128(7), REQUEUE).await, StepResult::NoSuchMessage);
    }

    #[test]
    async fn a_second_life_ends_like_the_first(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        let _ = fixture.step(id, REQUEUE).await;
        for attempts in 1..=3 {
            let work = fixture.claim_one().await;
            assert_eq!(work.history.attempts, attempts);
            let _ = fixture.settle(&work, will_retry(&work)).await;
            fixture.pass(BACKOFF);
            fixture.promote().await;
        }
        assert_eq!(fixture.status(id).await, "dead");
        assert_eq!(name(fixture.step(id, REQUEUE).await), "queued");
    }

    #[test]
    async fn a_zombie_of_the_first_life_does_not_settle_the_second(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let zombie = fixture.claim_one().await;
        let _ = fixture.settle(&zombie, final_failure(&zombie, Effect::NotDone)).await;
        let _ = fixture.step(id, REQUEUE).await;
        let second = fixture.claim_one().await;
        for event in [succeeded(&zombie), will_retry(&zombie)] {
            assert_eq!(fixture.settle(&zombie, event).await, StepResult::Refused(StepRefusal::StaleFence));
        }
        assert_eq!(fixture.status(id).await, "sending");
        fixture.send(&second).await;
    }

    #[test]
    async fn a_queued_a_delayed_and_a_failed_message_are_cancelled(fixture: StoreFixture) {
        let failed = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, will_retry(&work)).await;
        let queued = fixture.enqueue("k2").await;
        let delayed = NewMessage { delay: BACKOFF, ..message("k3") };
        let delayed = new_id(fixture.put(delayed).await);
        for id in [failed, queued, delayed] {
            assert_eq!(name(fixture.step(id, Event::Cancelled).await), "cancelled");
            assert_eq!(fixture.status(id).await, "cancelled");
        }
        fixture.pass(BACKOFF);
        assert_eq!(fixture.promote().await, 0);
        assert!(fixture.claim(10).await.is_empty());
        fixture.assert_counts(&[("cancelled", 3)]).await;
    }

    #[test]
    async fn sending_and_sent_messages_are_not_cancelled(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        assert_eq!(fixture.step(id, Event::Cancelled).await, StepResult::Refused(StepRefusal::WrongState));
        fixture.send(&work).await;
        assert_eq!(fixture.step(id, Event::Cancelled).await, StepResult::Refused(StepRefusal::WrongState));
        let (parked, _) = fixture.parked("k2").await;
        assert_eq!(fixture.step(parked, Event::Cancelled).await, StepResult::Refused(StepRefusal::WrongState));
    }

    #[test]
    async fn a_cancelled_message_stays_cancelled(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let _ = fixture.step(id, Event::Cancelled).await;
        for event in [Event::Cancelled, REQUEUE, SEND_AGAIN] {
            assert_eq!(fixture.step(id, event).await, StepResult::Refused(StepRefusal::WrongState));
        }
        assert_eq!(fixture.steps(id).await, ["queued>cancelled"]);
    }

    #[test]
    async fn cancelled_message_in_doubt_can_be_decided(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        let _ = fixture.step(id, Event::Cancelled).await;
        assert_eq!(fixture.step(id, FOUND_NOT_DONE).await, StepResult::Refused(StepRefusal::TooEarly));
        fixture.pass(TRAVELS_FOR);
        let learnt = fixture.step(id, FOUND_NOT_DONE).await;
        assert!(
            matches!(learnt, StepResult::Now(State::Cancelled { effect: Effect::NotDone, .. })),
            "{learnt:?}"
        );
        assert_eq!(
            (fixture.status(id).await, fixture.row(id).await.effect),
            ("cancelled", Effect::NotDone)
        );
        fixture.assert_counts(&[("cancelled", 1)]).await;
    }

    #[test]
    async fn decision_waits_until_the_call_has_ended(fixture: StoreFixture) {
        let (id, _) = fixture.parked("k1").await;
        for event in [SEND_AGAIN, GIVE_UP, FOUND_NOT_DONE] {
            assert_eq!(fixture.step(id, event).await, StepResult::Refused(StepRefusal::TooEarly));
        }
        assert_eq!(fixture.status(id).await, "parked");
        fixture.assert_counts(&[("parked", 1)]).await;
    }

    #[test]
    async fn a_parked_message_is_sent_again_by_decision(fixture: StoreFixture) {
        let (id, first) = fixture.parked("k1").await;
        fixture.pass(TRAVELS_FOR);
        assert_eq!(name(fixture.step(id, SEND_AGAIN).await), "queued");
        let work = fixture.claim_one().await;
        assert_eq!((work.id, work.history.attempts, work.history.doubt), (id, 1, None));
        assert!(first.fence < work.fence);
        assert_eq!(fixture.steps(id).await[..3], ["queued>sending", "sending>parked", "parked>queued"]);
    }

    #[test]
    async fn decision_done_counts_at_once(fixture: StoreFixture) {
        for (text, event) in [("k1", WAS_DONE), ("k2", Event::Reconciled(Reconciled::Done))] {
            let (id, _) = fixture.parked(text).await;
            assert_eq!(fixture.step(id, event).await, StepResult::Now(State::Sent));
            assert_eq!(
                (fixture.status(id).await, fixture.row(id).await.effect),
                ("sent", Effect::Done)
            );
        }
        fixture.assert_counts(&[("sent", 2)]).await;
    }

    #[test]
    async fn parked_message_can_be_given_up(fixture: StoreFixture) {
        let (id, _) = fixture.parked("k1").await;
        fixture.pass(TRAVELS_FOR);
        assert_eq!(name(fixture.step(id, GIVE_UP).await), "dead");
        assert_eq!(
            (fixture.status(id).await, fixture.row(id).await.effect),
            ("dead", Effect::Unknown)
        );
        fixture.assert_counts(&[("dead", 1)]).await;
    }

    #[test]
    async fn reconciled_undone_message_is_retried_and_attempts_count(fixture: StoreFixture) {
        let (id, _) = fixture.parked("k1").await;
        fixture.pass(TRAVELS_FOR);
        assert_eq!(name(fixture.step(id, FOUND_NOT_DONE).await), "queued");
        assert_eq!(fixture.row(id).await.effect, Effect::NotDone);
        assert_eq!(fixture.claim_one().await.history.attempts, 2);
    }

    #[test]
    async fn event_has_the_stores_time(fixture: StoreFixture) {
        let (id, work) = fixture.parked("k1").await;
        fixture.pass(TRAVELS_FOR);
        let wait = Duration::from_mins(1);
        let event = |now: Timestamp| Event::Reconciled(Reconciled::NotDone { due: now.plus(wait) });
        let stepped = fixture.store.messages().step(id, event, &Note::default()).await.unwrap();
        let StepResult::Now(State::Queued { due, .. }) = stepped else { panic!("{stepped:?}") };
        assert!(work.claimed_at.plus(TRAVELS_FOR).plus(wait) <= due);
        assert!(fixture.claim(1).await.is_empty());
        fixture.pass(wait);
        fixture.promote().await;
        fixture.claim_one().await;
    }

    /// A claim, an outcome or a death needs a lease; an operator has none, and the message would be lost.
    #[test]
    async fn a_workers_event_is_not_an_operators(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let fence = Fence::new(1_000_000).unwrap();
        let claimed = Event::Claimed { fence, start_mark: StartMark::NotTracked };
        assert_eq!(fixture.step(id, claimed).await, StepResult::Refused(StepRefusal::WrongState));
        let work = fixture.claim_one().await;
        for event in [succeeded(&work), will_retry(&work), given_back(&work)] {
            assert_eq!(fixture.step(id, event).await, StepResult::Refused(StepRefusal::WrongState));
        }
        fixture.send(&work).await;
        fixture.assert_counts(&[("sent", 1)]).await;
    }

    #[test]
    async fn a_requeued_message_is_found_by_a_node_that_has_gone_past_it(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let old = fixture.dead("old", Effect::NotDone).await;
        fixture.enqueue_many(5_000).await;
        other.claims().claim(&queue(), many(1), terms()).await.unwrap();
        let _ = fixture.step(old, REQUEUE).await;
        // The other node rescans from the start periodically, long before it reaches the end.
        for _ in 0..4_000 {
            let work = other.claims().claim(&queue(), many(1), terms()).await.unwrap();
            if ids(&work) == [old] {
                return;
            }
        }
        panic!("the old message waits behind all new ones");
    }
}
