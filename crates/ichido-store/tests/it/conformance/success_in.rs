//! A success in its holder's own transaction: it commits with the holder's writes, and only under a valid claim.
// SPEC H1.

use std::time::Duration;

use ichido_core::lifecycle::{State, StepRefusal};
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{ClaimOptions, ClaimedMessage, Note, Settlement, StepResult};
use sqlx::Row as _;

use super::transaction::{Business, BusinessTransaction};
use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, LEASE, StoreFixture, given_back, many, only, queue, rescue, succeeded, terms, will_retry,
};

const REFUSED: StepResult = StepResult::Refused(StepRefusal::StaleFence);
const TRANSACTIONAL: Guarantee = Guarantee::Transactional;

/// Claims one message like a worker with a transactional handler.
async fn claim(store: &Store) -> ClaimedMessage {
    let terms = ClaimOptions { guarantee: TRANSACTIONAL, ..terms() };
    only(store.claims().claim(&queue(), many(1), terms).await.unwrap())
}

fn success(work: &ClaimedMessage) -> Settlement {
    Settlement::new(work, succeeded(work), Note::default())
}

impl BusinessTransaction {
    async fn succeed(&mut self, store: &Store, settlement: &Settlement) -> Result<StepResult, StoreError> {
        match self {
            Self::Postgres(open) => store.claims().settle_in(open, settlement).await,
            Self::Sqlite(open) => store.claims().settle_in(open, settlement).await,
        }
    }
}

/// A business, and a message that a worker with a transactional handler holds.
async fn held(fixture: &StoreFixture) -> (Business, ClaimedMessage) {
    let business = Business::open(fixture).await;
    fixture.enqueue("k1").await;
    (business, claim(&fixture.store).await)
}

/// Writes an order and the success of a message in one transaction, and leaves it open.
async fn begin_order(
    store: &Store,
    business: &Business,
    work: &ClaimedMessage,
) -> (BusinessTransaction, StepResult) {
    let mut open = business.begin().await;
    open.order().await;
    let settled = open.succeed(store, &success(work)).await.unwrap();
    (open, settled)
}

/// The same, and commits it only if the success is settled.
async fn order(store: &Store, business: &Business, work: &ClaimedMessage) -> StepResult {
    let (open, settled) = begin_order(store, business, work).await;
    match settled {
        StepResult::Now(_) => open.commit().await,
        _ => open.roll_back().await,
    }
    settled
}

both_databases! {
    #[test]
    async fn success_commits_with_its_writes(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        let (open, settled) = begin_order(&fixture.store, &business, &work).await;
        assert_eq!(settled, StepResult::Now(State::Sent));
        assert_eq!(fixture.status(work.id).await, "sending", "nobody else sees it yet");
        open.commit().await;
        assert_eq!((fixture.status(work.id).await, business.orders().await), ("sent", 1));
        fixture.assert_counts(&[("sent", 1)]).await;
        fixture.store.claims().finish(&[work.fence]).await.unwrap();
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(TRANSACTIONAL).await, None, "its claim is gone");
    }

    #[test]
    async fn success_that_is_rolled_back_leaves_the_claim(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        let (open, _) = begin_order(&fixture.store, &business, &work).await;
        open.roll_back().await;
        assert_eq!((fixture.status(work.id).await, business.orders().await), ("sending", 0));
        let failed = fixture.settle(&work, will_retry(&work)).await;
        assert!(matches!(failed, StepResult::Now(State::Failed { .. })), "{failed:?}");
    }

    /// Nobody has rescued it yet, but somebody may at any moment.
    #[test]
    async fn success_is_refused_after_expiry(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        fixture.pass(LEASE);
        assert_eq!(order(&fixture.store, &business, &work).await, REFUSED);
        assert_eq!((fixture.status(work.id).await, business.orders().await), ("sending", 0));
        assert_eq!(fixture.rescue(TRANSACTIONAL).await, Some(1));
    }

    /// An expired claim stays expired: a late renewal would take it from its rescuer.
    #[test]
    async fn renewal_is_refused_after_expiry(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let work = claim(&fixture.store).await;
        fixture.pass(LEASE);
        assert_eq!(fixture.store.claims().renew(&[work.fence], LEASE).await.unwrap(), [false]);
        assert_eq!(fixture.rescue(TRANSACTIONAL).await, Some(1));
    }

    /// On SQLite, a claim of the process lasts as long as its own clock says; on PostgreSQL the database's clock is the only one.
    #[test]
    async fn clock_set_ahead_takes_no_claim_from_its_own_process(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        fixture.store.step_clock(i64::try_from(AFTER_LEASE.as_micros()).unwrap());
        let is_sqlite = fixture.store.is_sqlite();
        assert_eq!(fixture.store.claims().renew(&[work.fence], LEASE).await.unwrap(), [is_sqlite]);
        let settled = order(&fixture.store, &business, &work).await;
        assert_eq!(settled, if is_sqlite { StepResult::Now(State::Sent) } else { REFUSED });
        assert_eq!(business.orders().await, i64::from(is_sqlite));
    }

    #[test]
    async fn success_is_refused_after_a_rescue(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        let other = fixture.another_node().await;
        other.advance_clock(AFTER_LEASE);
        assert_eq!(rescue(&other, TRANSACTIONAL).await, Some(1));
        assert_eq!(order(&fixture.store, &business, &work).await, REFUSED);
        let row = fixture.row(work.id).await;
        assert_eq!((row.status.as_str(), row.effect.as_str()), ("failed", "not_done"), "it was not done");
        assert_eq!(business.orders().await, 0);
    }

    /// The rescued message is claimed again: the first holder cannot settle it, the second can.
    #[test]
    async fn success_is_refused_after_another_claim(fixture: StoreFixture) {
        let (business, first) = held(&fixture).await;
        let other = fixture.another_node().await;
        other.advance_clock(AFTER_LEASE);
        assert_eq!(rescue(&other, TRANSACTIONAL).await, Some(1));
        other.advance_clock(Duration::from_mins(2));
        other.claims().promote(10).await.unwrap();
        let second = claim(&other).await;
        assert!(first.fence < second.fence);
        assert_eq!(order(&fixture.store, &business, &first).await, REFUSED);
        assert_eq!(order(&other, &business, &second).await, StepResult::Now(State::Sent));
        assert_eq!(order(&fixture.store, &business, &first).await, REFUSED);
        assert_eq!((fixture.status(first.id).await, business.orders().await), ("sent", 1));
    }

    #[test]
    async fn success_is_refused_the_second_time(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        assert_eq!(order(&fixture.store, &business, &work).await, StepResult::Now(State::Sent));
        assert_eq!(order(&fixture.store, &business, &work).await, REFUSED);
        assert_eq!(business.orders().await, 1);
        fixture.assert_counts(&[("sent", 1)]).await;
    }

    /// Only a success commits with anything: a failure must outlive the rollback.
    #[test]
    async fn only_a_success_of_the_claim_is_settled_in_a_transaction(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        fixture.enqueue_many(2).await;
        let (work, other) = (claim(&fixture.store).await, claim(&fixture.store).await);
        let mut open = business.begin().await;
        for event in [will_retry(&work), given_back(&work)] {
            let settlement = Settlement::new(&work, event, Note::default());
            let refused = open.succeed(&fixture.store, &settlement).await.unwrap();
            assert!(matches!(refused, StepResult::Refused(_)), "{refused:?}");
        }
        let borrowed = Settlement { id: other.id, ..success(&work) };
        assert_eq!(open.succeed(&fixture.store, &borrowed).await.unwrap(), REFUSED, "another claim's message");
        open.commit().await;
        assert_eq!(business.orders().await, 0);
        fixture.assert_counts(&[("sending", 2)]).await;
    }

    /// The process died after its commit and before it deleted the claim.
    #[test]
    async fn rescue_finds_nothing_after_a_committed_success(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        assert_eq!(order(&fixture.store, &business, &work).await, StepResult::Now(State::Sent));
        let other = fixture.another_node().await;
        other.advance_clock(AFTER_LEASE);
        assert_eq!(rescue(&other, TRANSACTIONAL).await, Some(0), "the claim lapsed without a message");
        assert_eq!(rescue(&other, TRANSACTIONAL).await, None);
        assert_eq!((fixture.status(work.id).await, business.orders().await), ("sent", 1));
        assert!(other.claims().claim(&queue(), many(1), terms()).await.unwrap().is_empty());
    }

    /// How the fate of a lost COMMIT is found out: the report is refused if it took place.
    #[test]
    async fn failure_is_refused_after_a_committed_success(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        assert_eq!(order(&fixture.store, &business, &work).await, StepResult::Now(State::Sent));
        assert_eq!(fixture.settle(&work, will_retry(&work)).await, REFUSED);
        assert_eq!(fixture.status(work.id).await, "sent");
    }

    /// It waits for a transaction that may still commit.
    #[test]
    async fn failure_waits_for_an_open_success(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        let (open, _) = begin_order(&fixture.store, &business, &work).await;
        let (store, report) = (fixture.store.clone(), Settlement::new(&work, will_retry(&work), Note::default()));
        let failing = tokio::spawn(async move { store.claims().settle(report).await });
        open.commit().await;
        assert_eq!(failing.await.unwrap().unwrap(), REFUSED);
        assert_eq!((fixture.status(work.id).await, business.orders().await), ("sent", 1));
    }

    #[test]
    async fn finishing_leaves_a_claim_that_holds_a_message(fixture: StoreFixture) {
        let business = Business::open(&fixture).await;
        let ids = fixture.enqueue_many(2).await;
        let terms = ClaimOptions { guarantee: TRANSACTIONAL, ..terms() };
        let work = fixture.store.claims().claim(&queue(), many(2), terms).await.unwrap();
        assert_eq!(order(&fixture.store, &business, &work[0]).await, StepResult::Now(State::Sent));
        fixture.store.claims().finish(&[work[0].fence]).await.unwrap();
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(TRANSACTIONAL).await, Some(1), "the other message");
        assert_eq!(fixture.status(ids[0]).await, "sent");
    }

    #[test]
    async fn commit_with_a_success_waits_for_the_disk(fixture: StoreFixture) {
        let (business, work) = held(&fixture).await;
        let mut open = business.begin().await;
        if let BusinessTransaction::Postgres(open) = &mut open {
            sqlx::query("SET LOCAL synchronous_commit = off").execute(&mut **open).await.unwrap();
        }
        let _ = open.succeed(&fixture.store, &success(&work)).await.unwrap();
        let is_durable = match &mut open {
            BusinessTransaction::Postgres(open) => {
                let row = sqlx::query("SHOW synchronous_commit").fetch_one(&mut **open).await.unwrap();
                row.get::<String, _>(0) == "on"
            }
            BusinessTransaction::Sqlite(open) => {
                let row = sqlx::query("PRAGMA synchronous").fetch_one(&mut **open).await.unwrap();
                row.get::<i64, _>(0) == 2
            }
        };
        assert!(is_durable);
        open.commit().await;
    }
}
