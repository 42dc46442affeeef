//! The start mark before an irreversible call: a call that may have started is never repeated as if it had not.
// SPEC D12, F2.

use ichido_core::lifecycle::{StartMark, State, StepRefusal};
use ichido_core::retry::Guarantee;
use ichido_store::message::{Note, Settlement, StepResult};
use ichido_store::testing::while_busy;

use crate::both_databases;
use crate::fixture::{AFTER_LEASE, StoreFixture, given_back, only};

both_databases! {
    #[test]
    async fn start_mark_decides_over_the_holders_report(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let mut work = only(fixture.claim_with_marks(1).await);
        assert_eq!(fixture.store.claims().mark_started(&[(work.id, work.fence)]).await.unwrap(), [true]);
        for remembered in [StartMark::NotYet, StartMark::NotTracked, StartMark::Written] {
            work.start_mark = remembered;
            assert_eq!(fixture.settle(&work, given_back(&work)).await, StepResult::Refused(StepRefusal::MayHaveStarted));
        }
        assert!(fixture.claim(10).await.is_empty());
        fixture.assert_counts(&[("sending", 1)]).await;
        // The claim still holds it, and the rescue knows that it may have been done.
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(Guarantee::None).await, Some(1));
        assert_eq!(fixture.status(id).await, "parked");
    }

    #[test]
    async fn started_messages_stay_when_a_batch_is_returned(fixture: StoreFixture) {
        let all = fixture.enqueue_many(3).await;
        let work = fixture.claim_with_marks(3).await;
        fixture.store.claims().mark_started(&[(work[1].id, work[1].fence)]).await.unwrap();
        let back = work.iter().map(|work| Settlement::new(work, given_back(work), Note::default())).collect();
        let answers = fixture.store.claims().settle_all(back).await;
        for (index, answer) in answers.into_iter().enumerate() {
            match answer.unwrap() {
                StepResult::Now(State::Queued { .. }) => assert_ne!(index, 1),
                refused => assert_eq!((index, refused), (1, StepResult::Refused(StepRefusal::MayHaveStarted))),
            }
        }
        assert_eq!(fixture.status(all[1]).await, "sending");
        fixture.send(&work[1]).await;
        fixture.assert_counts(&[("queued", 2), ("sent", 1)]).await;
    }

    #[test]
    async fn a_call_does_not_begin_once_its_message_is_given_back(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        let work = fixture.claim_with_marks(2).await;
        let back = fixture.settle(&work[0], given_back(&work[0])).await;
        let calls: Vec<_> = work.iter().map(|work| (work.id, work.fence)).collect();
        assert_eq!(fixture.store.claims().mark_started(&calls).await.unwrap(), [false, true]);
        assert_eq!(fixture.settle(&work[0], given_back(&work[0])).await, back, "reported again, it is accepted");
    }

    #[test]
    async fn either_the_call_or_its_return_wins(fixture: StoreFixture) {
        for round in 0..100 {
            fixture.enqueue(&format!("k{round}")).await;
            fixture.enqueue(&format!("n{round}")).await;
            let work = fixture.claim_with_marks(2).await;
            let (store, calls) = (fixture.store.clone(), [(work[0].id, work[0].fence)]);
            let start_mark = tokio::spawn(async move { while_busy(|| store.claims().mark_started(&calls)).await });
            let settlement = Settlement::new(&work[0], given_back(&work[0]), Note::default());
            let back = while_busy(|| fixture.store.claims().settle(settlement.clone())).await;
            let start_mark = start_mark.await.unwrap() == [true];
            assert_eq!(start_mark, back == StepResult::Refused(StepRefusal::MayHaveStarted), "round {round}: {back:?}");
            for left in if start_mark { work } else { [work, fixture.claim(10).await].concat().split_off(1) } {
                fixture.send(&left).await;
            }
        }
    }
}
