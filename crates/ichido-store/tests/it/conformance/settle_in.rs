//! Settling in the caller's own transaction: the outcome commits with the caller's writes, or not at all.

use std::time::Duration;

use ichido_core::ledger::{OperationGuarantee, RecordPhase};
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaimed, KeyOutcome, KeySettle, KeySettled};

use super::ledger::{keep, name, request, response};
use super::transaction::Business;
use crate::both_databases;
use crate::fixture::{AFTER_LEASE, StoreFixture};

const LONG: Duration = Duration::from_mins(10);

fn settle(fence: ichido_core::fence::Fence, outcome: KeyOutcome) -> KeySettle {
    KeySettle { name: name("k1"), fence, outcome }
}

fn done() -> KeyOutcome {
    keep(response(b"done"))
}

both_databases! {
    #[test]
    async fn outcome_commits_with_its_writes(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let fence = fixture.run("k1", OperationGuarantee::Transactional).await;
        let mut open = business.begin().await;
        open.order().await;
        let settled = open.settle(&fixture.store, &settle(fence, done())).await.unwrap();
        assert_eq!(settled, KeySettled::Settled);
        assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Claimed { .. })), "nobody else sees it yet");
        open.commit().await;
        fixture.store.keys().wake(&name("k1"), fence);
        assert_eq!(business.orders().await, 1);
        let second = fixture.arrive(request("k1", OperationGuarantee::Transactional)).await;
        assert_eq!(second, KeyClaimed::Replay(response(b"done")));
    }

    #[test]
    async fn an_outcome_that_is_rolled_back_leaves_the_claim(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let fence = fixture.run("k1", OperationGuarantee::Transactional).await;
        let mut open = business.begin().await;
        open.order().await;
        let _ = open.settle(&fixture.store, &settle(fence, done())).await.unwrap();
        open.roll_back().await;
        assert_eq!(business.orders().await, 0);
        assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Claimed { .. })));
        assert_eq!(fixture.report("k1", fence, KeyOutcome::Release).await, KeySettled::Settled);
    }

    #[test]
    async fn overtaken_owner_settles_nothing_in_its_transaction(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let zombie = fixture.run("k1", OperationGuarantee::Transactional).await;
        fixture.pass(AFTER_LEASE);
        let fence = fixture.run("k1", OperationGuarantee::Transactional).await;
        let mut open = business.begin().await;
        open.order().await;
        let settled = open.settle(&fixture.store, &settle(zombie, done())).await.unwrap();
        assert_eq!(settled, KeySettled::Stale);
        open.roll_back().await;
        let mut open = business.begin().await;
        open.order().await;
        assert_eq!(open.settle(&fixture.store, &settle(fence, done())).await.unwrap(), KeySettled::Settled);
        open.commit().await;
        let mut late = business.begin().await;
        late.order().await;
        let settled = late.settle(&fixture.store, &settle(fence, done())).await.unwrap();
        assert_eq!(settled, KeySettled::Stale, "a second time it changes nothing either");
        late.roll_back().await;
        assert_eq!(business.orders().await, 1);
    }

    #[test]
    async fn a_key_is_given_back_or_held_in_a_transaction_too(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        let mut open = business.begin().await;
        let _ = open.settle(&fixture.store, &settle(fence, KeyOutcome::Hold)).await.unwrap();
        open.commit().await;
        assert_eq!(fixture.phase("k1").await, Some(RecordPhase::Unknown));
        let mut open = business.begin().await;
        let _ = open.settle(&fixture.store, &settle(fence, KeyOutcome::Release)).await.unwrap();
        open.commit().await;
        assert_eq!(fixture.phase("k1").await, None);
    }

    #[test]
    async fn committed_outcome_wakes_its_waiters(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let fence = fixture.run("k1", OperationGuarantee::Transactional).await;
        let store = fixture.store.clone();
        let waiter = tokio::spawn(async move { store.keys().wait(&name("k1"), LONG).await });
        let mut open = business.begin().await;
        let _ = open.settle(&fixture.store, &settle(fence, done())).await.unwrap();
        open.commit().await;
        fixture.store.keys().wake(&name("k1"), fence);
        assert!(waiter.await.unwrap());
    }

    #[test]
    async fn a_commit_with_an_outcome_waits_for_the_disk_however_the_connection_is_set_up(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let fence = fixture.run("k1", OperationGuarantee::Transactional).await;
        let mut open = business.begin_careless().await;
        let _ = open.settle(&fixture.store, &settle(fence, done())).await.unwrap();
        assert!(open.is_durable().await);
        open.commit().await;
    }

    #[test]
    async fn a_transaction_of_the_other_database_is_refused(fixture: StoreFixture) {
        let other =
            if fixture.store.is_sqlite() { StoreFixture::postgres().await } else { StoreFixture::sqlite().await };
        let fence = fixture.run("k1", OperationGuarantee::Transactional).await;
        let mut open = Business::open(&other).await.begin().await;
        let refused = open.settle(&fixture.store, &settle(fence, done())).await;
        assert!(matches!(refused, Err(StoreError::WrongDatabase(_))), "{refused:?}");
    }
}
