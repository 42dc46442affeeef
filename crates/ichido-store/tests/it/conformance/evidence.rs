//! A success whose claim was lost is evidence: the message is not sent again.
// SPEC D12, E1.

use std::time::Duration;

use ichido_core::lifecycle::{Event, State, StepRefusal};
use ichido_core::verdict::Effect;
use ichido_store::message::{ClaimedMessage, Note, Settlement, StepResult};
use ichido_store::testing::while_busy;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, KEYED, StoreFixture, final_failure, given_back, in_doubt, succeeded, will_retry,
};

/// One worker loses a message, a second one sends it, and the first reports its success.
async fn answered_during_the_resend(fixture: &StoreFixture) -> (ClaimedMessage, ClaimedMessage) {
    fixture.enqueue("k1").await;
    let zombie = fixture.claim_one().await;
    fixture.pass(AFTER_LEASE);
    fixture.rescue(KEYED).await;
    fixture.pass(BACKOFF);
    fixture.promote().await;
    let second = fixture.claim_with_marks(1).await.remove(0);
    let note = Note { receipt: Some("order 7".to_owned()), status: Some(201), ..Note::default() };
    let answer = fixture.settle_with_note(&zombie, succeeded(&zombie), note).await;
    assert_eq!(answer, StepResult::Refused(StepRefusal::StaleFence), "the message is the second one's");
    assert_eq!(fixture.status(second.id).await, "sending");
    fixture.assert_counts(&[("sending", 1)]).await;
    (zombie, second)
}

async fn never_sent_again(fixture: &StoreFixture) {
    fixture.pass(Duration::from_hours(1));
    assert_eq!(fixture.promote().await, 0);
    assert!(fixture.claim(10).await.is_empty());
    fixture.assert_counts(&[("sent", 1)]).await;
}

/// Ends the second attempt without success, with this event.
async fn ends_with(fixture: StoreFixture, event: impl Fn(&ClaimedMessage) -> Event) {
    let (_, second) = answered_during_the_resend(&fixture).await;
    assert_eq!(fixture.settle(&second, event(&second)).await, StepResult::Now(State::Sent));
    assert_eq!(fixture.settle(&second, event(&second)).await, StepResult::Now(State::Sent), "reported again");
    let row = fixture.row(second.id).await;
    assert_eq!((row.status.as_str(), row.effect, row.attempts), ("sent", Effect::Done, 2));
    never_sent_again(&fixture).await;
}

both_databases! {
    #[test]
    async fn repeated_late_success_is_accepted_again(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let zombie = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        for _ in 0..2 {
            assert_eq!(fixture.settle(&zombie, succeeded(&zombie)).await, StepResult::Now(State::Sent));
        }
        assert_eq!(fixture.steps(zombie.id).await.len(), 3, "claimed, lost, sent");
    }

    #[test]
    async fn a_late_success_counts_when_the_resend_fails(fixture: StoreFixture) {
        ends_with(fixture, will_retry).await;
    }

    #[test]
    async fn late_success_counts_when_the_resend_fails_permanently(fixture: StoreFixture) {
        ends_with(fixture, |work| final_failure(work, Effect::NotDone)).await;
    }

    #[test]
    async fn a_late_success_counts_when_the_resend_is_in_doubt(fixture: StoreFixture) {
        ends_with(fixture, in_doubt).await;
    }

    #[test]
    async fn a_late_success_counts_when_the_resend_is_given_back(fixture: StoreFixture) {
        ends_with(fixture, given_back).await;
    }

    #[test]
    async fn a_late_success_counts_when_the_second_worker_dies_too(fixture: StoreFixture) {
        let (_, second) = answered_during_the_resend(&fixture).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!(fixture.status(second.id).await, "sent");
        never_sent_again(&fixture).await;
    }

    #[test]
    async fn a_call_does_not_begin_once_its_work_is_proven_to_be_done(fixture: StoreFixture) {
        let (_, second) = answered_during_the_resend(&fixture).await;
        assert_eq!(fixture.store.claims().mark_started(&[(second.id, second.fence)]).await.unwrap(), [false]);
    }

    #[test]
    async fn audit_lists_the_late_success_under_its_own_claim(fixture: StoreFixture) {
        let (zombie, second) = answered_during_the_resend(&fixture).await;
        let _ = fixture.settle(&zombie, succeeded(&zombie)).await;
        let _ = fixture.settle(&second, will_retry(&second)).await;
        let transitions_seen = fixture.store.messages().transitions(second.id).await.unwrap();
        let steps: Vec<_> = transitions_seen.iter().map(|step| (step.kind.as_str(), step.attempts)).collect();
        let expected = [
            ("claimed", 1), ("worker_died", 1), ("late_success", 1), ("came_due", 1), ("claimed", 2), ("failed", 2),
        ];
        assert_eq!(steps, expected);
        assert_eq!((transitions_seen[2].fence, transitions_seen[2].receipt.as_deref()), (Some(zombie.fence.get()), Some("order 7")));
        assert_eq!((transitions_seen[5].from.as_str(), transitions_seen[5].to.as_str()), ("sending", "sent"));
    }

    #[test]
    async fn a_late_success_that_meets_the_end_of_the_resend_is_never_lost(fixture: StoreFixture) {
        for round in 0..60 {
            fixture.enqueue(&format!("k{round}")).await;
            let zombie = fixture.claim_one().await;
            fixture.pass(AFTER_LEASE);
            fixture.rescue(KEYED).await;
            fixture.pass(BACKOFF);
            fixture.promote().await;
            let second = fixture.claim_one().await;
            let report = |work: &ClaimedMessage, event| Settlement::new(work, event, Note::default());
            let (proof, end) = (report(&zombie, succeeded(&zombie)), report(&second, will_retry(&second)));
            let store = fixture.store.clone();
            // Both lock the same row, and a batch does not wait long for a lock.
            let late = tokio::spawn(async move {
                while_busy(|| async { store.claims().settle_all(vec![proof.clone()]).await.remove(0) }).await
            });
            let _ = while_busy(|| fixture.store.claims().settle(end.clone())).await;
            let _ = late.await.unwrap();
            assert_eq!(fixture.status(second.id).await, "sent", "round {round}");
        }
    }
}
