//! Lost answers: what was done is read back, and what is unknown is reported as such.

use std::time::Duration;

use ichido_core::ledger::OperationGuarantee;
use ichido_core::lifecycle::{Event, State};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{ClaimOrigin, KeyClaimed, KeySettled};
use ichido_store::message::{ClaimedMessage, Enqueued, Note, Settlement, StepResult};
use ichido_store::rescue::RescueOptions;
use ichido_store::testing::postgres::{PgTestDatabase, fresh_database};

use super::proxy::FaultProxy;
use super::words::{claim, keep, release, run};
use crate::fixture::{
    AFTER_LEASE, BACKOFF, KEYED, TRAVELS_FOR, many, message, new_id, only, queue, rescue, succeeded, terms,
    will_retry, with_time_limit,
};

async fn store() -> (PgTestDatabase, FaultProxy, Store) {
    let database = fresh_database().await;
    let proxy = FaultProxy::to(&database.url).await;
    let store = Store::open(&proxy.url, 4).await.unwrap();
    (database, proxy, store)
}

async fn claim_one(store: &Store) -> ClaimedMessage {
    only(store.claims().claim(&queue(), many(10), terms()).await.unwrap())
}

async fn settle(store: &Store, work: &ClaimedMessage, event: Event) -> StepResult {
    store.claims().settle(Settlement::new(work, event, Note::default())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_response_to_a_batch_is_read_back() {
    with_time_limit(async {
        let (_database, proxy, store) = store().await;
        proxy.cut_at("INSERT 0");
        let enqueued = store.messages().enqueue(message("k")).await;
        assert!(matches!(enqueued, Ok(Enqueued::New { .. })), "{enqueued:?}");
        assert_eq!(proxy.met(), 1);

        proxy.cut_at("INSERT 0");
        let fence = run(&store, "kept").await;
        assert_eq!(proxy.met(), 2);
        proxy.cut_at("UPDATE 1");
        assert_eq!(store.keys().settle(keep("kept", fence)).await.unwrap(), KeySettled::Settled);
        assert_eq!(proxy.met(), 3);
        let fence = run(&store, "released").await;
        proxy.cut_at("DELETE 1");
        assert_eq!(store.keys().settle(release("released", fence)).await.unwrap(), KeySettled::Settled);
        assert_eq!(proxy.met(), 4);

        let work = claim_one(&store).await;
        proxy.cut_at("COMMIT");
        let failed = settle(&store, &work, will_retry(&work)).await;
        assert!(matches!(failed, StepResult::Now(State::Failed { .. })), "{failed:?}");
        assert_eq!(proxy.met(), 5);
        store.advance_clock(BACKOFF);
        store.claims().promote(10).await.unwrap();
        let work = claim_one(&store).await;
        proxy.hang_up_after("receipt-7");
        let note = Note { receipt: Some("receipt-7".to_owned()), ..Note::default() };
        let settled = store.claims().settle(Settlement::new(&work, succeeded(&work), note)).await.unwrap();
        assert_eq!(settled, StepResult::Now(State::Sent));
        assert_eq!(proxy.met(), 6);
    })
    .await;
}

/// Otherwise a run that did nothing would free a key whose first run may have done the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takeover_with_a_lost_response_is_still_a_takeover() {
    with_time_limit(async {
        let (_database, proxy, store) = store().await;
        let mode = OperationGuarantee::Keyed;
        let first = store.keys().claim(claim("k", mode)).await.unwrap();
        assert!(matches!(first, KeyClaimed::Run { began: ClaimOrigin::New, .. }), "{first:?}");
        store.advance_clock(AFTER_LEASE);
        proxy.cut_at("UPDATE 1");
        let second = store.keys().claim(claim("k", mode)).await.unwrap();
        assert_eq!(proxy.met(), 1);
        let KeyClaimed::Run { began, .. } = second else { panic!("{second:?}") };
        assert_eq!(began, ClaimOrigin::TakenOver { from: mode });
    })
    .await;
}

/// It is reported as unknown or as done, never as refused; a retry finds out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unbatched_call_reports_an_unknown_outcome() {
    with_time_limit(async {
        let (_database, proxy, store) = store().await;
        let id = new_id(store.messages().enqueue(message("k")).await.unwrap());
        proxy.cut_at("COMMIT");
        let stepped = store.messages().step(id, |_| Event::Cancelled, &Note::default()).await;
        assert!(matches!(stepped, Err(StoreError::Unknown(_))), "{stepped:?}");
        assert_eq!(store.messages().get(id).await.unwrap().unwrap().status.as_str(), "cancelled");

        store.messages().enqueue(message("w")).await.unwrap();
        // The message's identity, as the claim returns it.
        proxy.cut_at("alice");
        let work = store.claims().claim(&queue(), many(1), terms()).await;
        assert!(matches!(work, Err(StoreError::Unknown(_))), "{work:?}");
        store.advance_clock(AFTER_LEASE);
        proxy.cut_at("COMMIT");
        let terms = RescueOptions { guarantee: KEYED, wait: Duration::ZERO, max_time_in_flight: TRAVELS_FOR };
        let rescued = store.claims().rescue(|_| terms).await;
        assert!(matches!(rescued, Err(StoreError::Unknown(_))), "{rescued:?}");
        assert_eq!(store.claims().rescue(|_| terms).await.unwrap(), None, "it was done");
        assert_eq!(proxy.met(), 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_success_is_accepted() {
    with_time_limit(async {
        let (_database, proxy, store) = store().await;
        store.messages().enqueue(message("k")).await.unwrap();
        let zombie = claim_one(&store).await;
        store.advance_clock(AFTER_LEASE);
        assert_eq!(rescue(&store, KEYED).await, Some(1));
        proxy.cut_at("COMMIT");
        assert_eq!(settle(&store, &zombie, succeeded(&zombie)).await, StepResult::Now(State::Sent));
        assert_eq!(proxy.met(), 1);
    })
    .await;
}
