//! Claiming, renewing and giving back messages.
// SPEC D2, D12, E1.

use std::collections::BTreeSet;
use std::time::Duration;

use ichido_core::lifecycle::{Event, StartMark, StepRefusal};
use ichido_store::message::{ClaimOptions, NewMessage, StepResult, limits};
use ichido_store::testing::while_busy;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, KEYED, LEASE, StoreFixture, given_back, ids, many, message, now, only, queue,
    queue_named, terms, will_retry,
};

both_databases! {
    #[test]
    async fn a_claim_takes_no_more_than_it_asks_for(fixture: StoreFixture) {
        let all = fixture.enqueue_many(10).await;
        let first = fixture.claim(4).await;
        let second = fixture.claim(4).await;
        let third = fixture.claim(4).await;
        assert_eq!([ids(&first), ids(&second), ids(&third)].concat(), all);
        assert_eq!((first.len(), second.len(), third.len()), (4, 4, 2));
        assert!(first[0].fence < second[0].fence && second[0].fence < third[0].fence);
        assert!(fixture.claim(4).await.is_empty());
    }

    #[test]
    async fn a_claim_leaves_other_queues_alone(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        assert!(fixture.store.claims().claim(&queue_named("mail"), many(5), terms()).await.unwrap().is_empty());
    }

    #[test]
    async fn a_claim_is_bounded_whatever_it_asks_for(fixture: StoreFixture) {
        let all = fixture.enqueue_many(limits::MAX_CLAIM as usize + 1).await;
        let work = fixture.claim(u32::MAX).await;
        assert_eq!(ids(&work), all[..limits::MAX_CLAIM as usize]);
        assert_eq!(ids(&fixture.claim(u32::MAX).await), all[limits::MAX_CLAIM as usize..]);
    }

    #[test]
    async fn sixteen_claimers_take_each_of_ten_thousand_messages_once(fixture: StoreFixture) {
        let all: BTreeSet<Uuid> = fixture.enqueue_many(10_000).await.into_iter().collect();
        let other = fixture.another_node().await;
        let claimers: Vec<_> = (0..16)
            .map(|number: u128| {
                let store = if number.is_multiple_of(2) { fixture.store.clone() } else { other.clone() };
                let terms = ClaimOptions { node: Uuid::from_u128(number), ..terms() };
                tokio::spawn(async move {
                    let (queue, mut taken) = (queue(), Vec::new());
                    loop {
                        let work = while_busy(|| store.claims().claim(&queue, many(57), terms)).await;
                        if work.is_empty() {
                            return taken;
                        }
                        taken.extend(ids(&work));
                    }
                })
            })
            .collect();
        let mut taken = Vec::new();
        for claimer in claimers {
            taken.extend(claimer.await.unwrap());
        }
        // A claimer may find nothing while another one still has the last rows locked.
        taken.extend(ids(&fixture.claim(limits::MAX_CLAIM).await));
        assert_eq!(taken.len(), 10_000);
        assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), all);
        fixture.assert_counts(&[("sending", 10_000)]).await;
    }

    #[test]
    async fn returned_message_keeps_its_attempt(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        for _ in 0..5 {
            let work = fixture.claim_one().await;
            assert_eq!(work.history.attempts, 1);
            assert_eq!(now(fixture.settle(&work, given_back(&work)).await).name(), "queued");
            assert_eq!((fixture.status(id).await, fixture.row(id).await.attempts), ("queued", 0));
        }
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    #[test]
    async fn a_message_can_be_given_back_for_later(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let later = Event::GivenBack { fence: work.fence, due: work.claimed_at.plus(BACKOFF) };
        let _ = fixture.settle(&work, later).await;
        assert!(fixture.claim(1).await.is_empty());
        fixture.pass(BACKOFF);
        fixture.promote().await;
        assert_eq!(fixture.claim_one().await.history.attempts, 1);
    }

    #[test]
    async fn a_message_given_back_for_a_moment_that_has_come_is_claimable_at_once(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        fixture.pass(Duration::from_secs(10));
        let due = Event::GivenBack { fence: work.fence, due: work.claimed_at.plus(Duration::from_secs(5)) };
        let _ = fixture.settle(&work, due).await;
        fixture.claim_one().await;
    }

    #[test]
    async fn call_may_start_while_its_claim_is_valid(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        let work = fixture.claim_with_marks(2).await;
        assert!(work.iter().all(|work| work.start_mark == StartMark::NotYet));
        let calls: Vec<_> = work.iter().map(|work| (work.id, work.fence)).collect();
        assert_eq!(fixture.store.claims().mark_started(&calls).await.unwrap(), [true, true]);
        assert_eq!(
            fixture.store.claims().mark_started(&calls[..1]).await.unwrap(),
            [true],
            "asked again, the answer is the same"
        );
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        assert_eq!(fixture.store.claims().mark_started(&calls).await.unwrap(), [false, false]);
    }

    #[test]
    async fn a_call_may_not_begin_once_its_message_is_settled(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        let work = fixture.claim_with_marks(2).await;
        let _ = fixture.settle(&work[0], will_retry(&work[0])).await;
        let calls: Vec<_> = work.iter().map(|work| (work.id, work.fence)).collect();
        assert_eq!(fixture.store.claims().mark_started(&calls).await.unwrap(), [false, true]);
    }

    #[test]
    async fn a_message_whose_call_began_is_not_given_back(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let mut work = only(fixture.claim_with_marks(1).await);
        fixture.store.claims().mark_started(&[(work.id, work.fence)]).await.unwrap();
        work.start_mark = StartMark::Written;
        let refused = fixture.settle(&work, given_back(&work)).await;
        assert_eq!(refused, StepResult::Refused(StepRefusal::MayHaveStarted));
        assert_eq!(fixture.status(id).await, "sending");
        fixture.send(&work).await;
    }

    #[test]
    async fn a_renewed_claim_is_not_rescued(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        for _ in 0..3 {
            fixture.pass(Duration::from_secs(20));
            assert_eq!(fixture.store.claims().renew(&[work.fence], LEASE).await.unwrap(), [true]);
            assert_eq!(fixture.rescue(KEYED).await, None);
        }
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!(fixture.store.claims().renew(&[work.fence], LEASE).await.unwrap(), [false]);
        assert_eq!(fixture.status(id).await, "failed");
    }

    #[test]
    async fn a_paused_queue_is_not_claimed_from(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        fixture.put(NewMessage { queue: queue_named("mail"), ..message("k1") }).await;
        fixture.store.queues().pause(&queue(), true, Some("olivia")).await.unwrap();
        assert!(fixture.claim(10).await.is_empty());
        assert_eq!(fixture.store.claims().claim(&queue_named("mail"), many(1), terms()).await.unwrap().len(), 1);
        fixture.enqueue("k2").await;
        assert!(
            fixture.another_node().await.claims().claim(&queue(), many(10), terms()).await.unwrap().is_empty()
        );
        fixture.store.queues().pause(&queue(), false, None).await.unwrap();
        assert_eq!(fixture.claim(10).await.len(), 2);
    }

    #[test]
    async fn suspects_wait_too_while_their_queue_is_paused(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        fixture.claim(2).await;
        fixture.store.queues().pause(&queue(), true, None).await.unwrap();
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(2));
        assert!(fixture.claim(10).await.is_empty());
    }

    #[test]
    async fn claimed_message_settles_while_its_queue_is_paused(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        fixture.store.queues().pause(&queue(), true, None).await.unwrap();
        fixture.send(&work).await;
    }
}
