//! A report counts only for messages that its claim holds.
// SPEC D12.

use ichido_core::lifecycle::{State, StepRefusal};
use ichido_store::message::{ClaimedMessage, Note, Settlement, StepResult};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, KEYED, StoreFixture, given_back, message, new_id, only, succeeded, will_retry,
};

/// Creates reports about another message than the one that is held.
fn about(other: Uuid, work: &ClaimedMessage) -> Vec<Settlement> {
    [succeeded(work), will_retry(work), given_back(work)]
        .map(|event| Settlement { id: other, ..Settlement::new(work, event, Note::default()) })
        .to_vec()
}

async fn is_refused(fixture: &StoreFixture, reports: Vec<Settlement>) {
    for report in reports {
        let event = report.event;
        let answer = fixture.store.claims().settle(report).await.unwrap();
        assert_eq!(answer, StepResult::Refused(StepRefusal::StaleFence), "{event:?}");
    }
}

both_databases! {
    #[test]
    async fn a_report_about_a_message_that_the_claim_does_not_hold_changes_nothing(fixture: StoreFixture) {
        fixture.enqueue("held").await;
        let work = fixture.claim_one().await;
        let waiting = fixture.enqueue("waiting").await;
        is_refused(&fixture, about(waiting, &work)).await;
        assert_eq!(fixture.steps(waiting).await, [""; 0]);
        let other = fixture.claim_one().await;
        is_refused(&fixture, about(waiting, &work)).await;
        fixture.assert_counts(&[("sending", 2)]).await;
        fixture.send(&work).await;
        is_refused(&fixture, about(waiting, &work)).await;
        fixture.send(&other).await;
        fixture.assert_counts(&[("sent", 2)]).await;
    }

    #[test]
    async fn a_report_about_another_message_does_not_end_the_claim(fixture: StoreFixture) {
        let held = fixture.enqueue("held").await;
        let work = fixture.claim_one().await;
        let other = fixture.enqueue("other").await;
        let reports = about(other, &work).into_iter().chain(about(Uuid::now_v7(), &work)).collect();
        for answer in fixture.store.claims().settle_all(reports).await {
            let answer = answer.unwrap();
            assert!(matches!(answer, StepResult::Refused(StepRefusal::StaleFence) | StepResult::NoSuchMessage), "{answer:?}");
        }
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!(fixture.status(held).await, "failed");
    }

    #[test]
    async fn a_lost_claim_proves_nothing_of_other_messages(fixture: StoreFixture) {
        fixture.enqueue("lost").await;
        let zombie = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        let other = fixture.enqueue("other").await;
        let second = fixture.claim_one().await;
        let _ = fixture.settle(&second, will_retry(&second)).await;
        is_refused(&fixture, about(other, &zombie)).await;
        assert_eq!(fixture.status(other).await, "failed");
        fixture.pass(BACKOFF);
        assert_eq!(fixture.promote().await, 2);
    }

    #[test]
    async fn report_from_another_process_is_accepted(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let all = fixture.enqueue_many(3).await;
        let work = fixture.claim(3).await;
        let reports = [succeeded(&work[0]), will_retry(&work[1]), given_back(&work[2])];
        for (work, event) in work.iter().zip(reports) {
            let answer = other.claims().settle(Settlement::new(work, event, Note::default())).await.unwrap();
            assert!(matches!(answer, StepResult::Now(_)), "{answer:?}");
        }
        assert_eq!(fixture.status(all[0]).await, "sent");
        assert_eq!(fixture.status(all[1]).await, "failed");
        assert_eq!(fixture.status(all[2]).await, "queued");
    }

    #[test]
    async fn a_call_of_a_message_that_the_claim_does_not_hold_may_not_begin(fixture: StoreFixture) {
        fixture.enqueue("held").await;
        let work = only(fixture.claim_with_marks(1).await);
        let other = new_id(fixture.put(message("other")).await);
        let calls = [(other, work.fence), (work.id, work.fence)];
        assert_eq!(fixture.store.claims().mark_started(&calls).await.unwrap(), [false, true]);
        let node = fixture.another_node().await;
        assert_eq!(node.claims().mark_started(&calls).await.unwrap(), [false, true], "on any node");
        let settled = fixture.settle(&work, succeeded(&work)).await;
        assert_eq!(settled, StepResult::Now(State::Sent));
    }
}
