//! Requests to cancel messages, in flight and not.
// SPEC D2, H5.

use ichido_core::lifecycle::{Decision, Event, Failure, State, StateName};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::Effect;
use ichido_store::message::{CancelOutcome, ClaimedMessage, NewMessage, Note, StepResult};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, StoreFixture, TRAVELS_FOR, final_failure, given_back, in_doubt, message, new_id,
    now, succeeded, will_retry,
};

const NODE: Uuid = Uuid::from_u128(1);
const NOBODY: [Uuid; 0] = [];

/// How a holder ends its attempt.
type End = fn(&ClaimedMessage) -> Event;

fn by_olivia() -> Note {
    Note { actor: Some("olivia".to_owned()), excerpt: Some("ordered twice".to_owned()), ..Note::default() }
}

fn stopped(work: &ClaimedMessage) -> Event {
    Event::Stopped { fence: work.fence }
}

/// A failed attempt that may have had its effect, and is retried because the receiver deduplicates by key.
fn lost(work: &ClaimedMessage) -> Event {
    Event::Failed {
        fence: work.fence,
        failure: Failure::Retry { due: work.claimed_at.plus(BACKOFF) },
        effect: Effect::Unknown,
        safety: Safety::Keyed,
        in_flight_until: work.claimed_at.plus(TRAVELS_FOR),
    }
}

impl StoreFixture {
    async fn cancel(&self, id: Uuid) -> CancelOutcome {
        self.store.messages().cancel(id, &by_olivia()).await.unwrap()
    }

    /// Enqueues and claims a message, and asks to cancel it.
    async fn asked_to_stop(&self, key: &str) -> ClaimedMessage {
        self.enqueue(key).await;
        let work = self.claim_one().await;
        assert_eq!(self.cancel(work.id).await, CancelOutcome::Requested);
        work
    }

    /// Lists the requests as a worker sees them.
    async fn requests(&self) -> Vec<Uuid> {
        self.store.nodes().heartbeat(NODE, "web-1").await.unwrap().cancellations
    }

    /// Ends the requests as a worker does. Returns the messages that were cancelled.
    async fn apply_requests(&self) -> Vec<Uuid> {
        let requests = self.requests().await;
        self.store.messages().apply_cancellations(&requests).await.unwrap()
    }
}

both_databases! {
    #[test]
    async fn message_in_flight_is_asked_to_stop_and_its_holder_cancels_it(fixture: StoreFixture) {
        let work = fixture.asked_to_stop("k1").await;
        let request = fixture.store.messages().cancellation(work.id).await.unwrap().unwrap();
        assert_eq!((request.actor.as_deref(), request.reason.as_deref()), (Some("olivia"), Some("ordered twice")));
        assert_eq!(fixture.cancel(work.id).await, CancelOutcome::Requested, "asking again changes nothing");
        assert_eq!((fixture.status(work.id).await, fixture.requests().await), ("sending", vec![work.id]));
        assert_eq!(fixture.apply_requests().await, NOBODY, "it belongs to its worker");
        let settled = fixture.settle_with_note(&work, stopped(&work), request.note()).await;
        assert!(matches!(settled, StepResult::Now(State::Cancelled { effect: Effect::NotDone, .. })), "{settled:?}");
        let again = fixture.settle(&work, stopped(&work)).await;
        assert!(matches!(again, StepResult::Now(State::Cancelled { .. })), "a repeated report: {again:?}");
        assert_eq!(fixture.steps(work.id).await, ["queued>sending", "sending>cancelled"]);
        let last = fixture.store.messages().transitions(work.id).await.unwrap().pop().unwrap();
        assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("stopped", Some("olivia")));
        fixture.assert_counts(&[("cancelled", 1)]).await;
        assert_eq!((fixture.apply_requests().await, fixture.requests().await), (vec![], vec![]), "it is over");
        assert_eq!(fixture.cancel(work.id).await, CancelOutcome::Cancelled);
        fixture.pass(AFTER_LEASE);
        assert!(fixture.claim(10).await.is_empty());
    }

    #[test]
    async fn request_to_cancel_is_an_operators_action(fixture: StoreFixture) {
        let work = fixture.asked_to_stop("k1").await;
        assert_eq!(fixture.cancel(work.id).await, CancelOutcome::Requested, "asking again is not recorded again");
        let actions = fixture.store.actions().list(None, 10).await.unwrap();
        let [asked] = &actions[..] else { panic!("one entry: {actions:?}") };
        assert_eq!(asked.action.about, format!("message {}", work.id));
        assert_eq!((asked.action.kind.as_str(), asked.action.actor.as_deref()), ("cancel_requested", Some("olivia")));
        assert_eq!(asked.action.detail.as_deref(), Some("ordered twice"));
        assert_eq!(fixture.steps(work.id).await, ["queued>sending"], "nothing has come of it yet");
    }

    #[test]
    async fn message_sent_despite_a_request_stays_sent(fixture: StoreFixture) {
        let work = fixture.asked_to_stop("k1").await;
        assert_eq!(fixture.settle(&work, succeeded(&work)).await, StepResult::Now(State::Sent));
        assert_eq!((fixture.apply_requests().await, fixture.requests().await), (vec![], vec![]));
        assert_eq!(fixture.status(work.id).await, "sent");
        assert_eq!(fixture.cancel(work.id).await, CancelOutcome::Refused(StateName::Sent));
    }

    /// The holder did not see the request in time.
    #[test]
    async fn attempt_that_ended_without_an_effect_is_cancelled_afterwards(fixture: StoreFixture) {
        for (key, end) in [("k1", will_retry as End), ("k2", given_back as End)] {
            let work = fixture.asked_to_stop(key).await;
            let _ = fixture.settle(&work, end(&work)).await;
            assert_eq!((fixture.apply_requests().await, fixture.requests().await), (vec![work.id], vec![]));
            assert_eq!(fixture.status(work.id).await, "cancelled");
            let last = fixture.store.messages().transitions(work.id).await.unwrap().pop().unwrap();
            assert_eq!((last.actor.as_deref(), last.excerpt.as_deref()), (Some("olivia"), Some("ordered twice")));
        }
        fixture.pass(BACKOFF);
        assert_eq!(fixture.promote().await, 0);
        fixture.assert_counts(&[("cancelled", 2)]).await;
    }

    #[test]
    async fn unknown_effect_ends_a_request_without_a_cancellation(fixture: StoreFixture) {
        let retried = fixture.asked_to_stop("k1").await;
        let _ = fixture.settle(&retried, lost(&retried)).await;
        let parked = fixture.asked_to_stop("k2").await;
        let _ = fixture.settle(&parked, in_doubt(&parked)).await;
        assert_eq!((fixture.apply_requests().await, fixture.requests().await), (vec![], vec![]));
        assert_eq!((fixture.status(retried.id).await, fixture.status(parked.id).await), ("failed", "parked"));
        assert_eq!(fixture.cancel(parked.id).await, CancelOutcome::Refused(StateName::Parked));
        assert_eq!(fixture.cancel(retried.id).await, CancelOutcome::Cancelled, "an operator may give up on it");
    }

    /// The later decision counts: the request was about an attempt before it.
    #[test]
    async fn operators_requeue_ends_a_request(fixture: StoreFixture) {
        let requeued = |allowed| Event::Requeued { allowed, safety: Safety::None };
        let dead = |work: &ClaimedMessage| final_failure(work, Effect::NotDone);
        for (key, end, event) in [
            ("dead", dead as End, requeued(true)),
            ("failed", will_retry as End, requeued(false)),
            ("parked", in_doubt as End, Event::Decided(Decision::NotDone)),
        ] {
            let work = fixture.asked_to_stop(key).await;
            let _ = fixture.settle(&work, end(&work)).await;
            fixture.pass(TRAVELS_FOR);
            assert!(matches!(now(fixture.step(work.id, event).await), State::Queued { .. }), "{key}");
            assert_eq!((fixture.apply_requests().await, fixture.requests().await), (vec![], vec![]), "{key}");
            let again = fixture.claim_one().await;
            assert_eq!((again.id, fixture.cancel(work.id).await), (work.id, CancelOutcome::Requested), "{key}");
            assert_eq!(fixture.requests().await, [work.id], "another request is about this attempt: {key}");
            let _ = fixture.settle(&again, stopped(&again)).await;
            assert_eq!((fixture.status(work.id).await, fixture.apply_requests().await), ("cancelled", vec![]), "{key}");
        }
    }

    #[test]
    async fn message_of_a_dead_worker_is_cancelled_if_its_call_did_not_start(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let other = fixture.enqueue("k2").await;
        let works = fixture.claim_with_marks(1).await;
        assert_eq!((works[0].id, fixture.cancel(id).await), (id, CancelOutcome::Requested));
        assert_eq!(fixture.claim_one().await.id, other, "a request blocks no claim");
        fixture.pass(AFTER_LEASE);
        while fixture.rescue(Guarantee::None).await.is_some() {}
        assert_eq!(fixture.apply_requests().await, [id]);
        assert_eq!(fixture.status(id).await, "cancelled");
    }

    #[test]
    async fn waiting_message_is_cancelled_without_a_request(fixture: StoreFixture) {
        let queued = fixture.enqueue("k1").await;
        assert_eq!(fixture.cancel(queued).await, CancelOutcome::Cancelled);
        assert_eq!(fixture.store.messages().cancellation(queued).await.unwrap(), None);
        let delayed = NewMessage { delay: BACKOFF, ..message("k2") };
        assert_eq!(fixture.cancel(new_id(fixture.put(delayed).await)).await, CancelOutcome::Cancelled);
        let dead = fixture.dead("k3", Effect::NotDone).await;
        assert_eq!(fixture.cancel(dead).await, CancelOutcome::Refused(StateName::Dead));
        assert_eq!(fixture.cancel(Uuid::from_u128(7)).await, CancelOutcome::NoSuchMessage);
        assert_eq!(fixture.requests().await, NOBODY);
    }
}
