//! Changes between a read and the write that follows from it: the write sees them.

use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::ledger::OperationGuarantee;
use ichido_core::lifecycle::{Event, StateName};
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::KeyClaimed;
use ichido_store::message::{ClaimOptions, Enqueued, MessageFilter, NewMessage, Note, SameContent};
use ichido_store::rescue::RescueOptions;
use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::while_busy;
use sqlx::{Connection as _, Row as _};

use super::words::{WAITING, claim, number, other, until};
use crate::fixture::{AFTER_LEASE, DAY, many, message, new_id, only, queue, terms, with_time_limit};

/// The owner renews a lapsed claim just when another request under its key is about to take it over, or to mark it unknown.
async fn a_renewal_in_between_is_seen(mode: OperationGuarantee) {
    with_time_limit(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 1).await.unwrap();
        // Its only connection waits long: the test decides when the row is free.
        let mut connection = store.postgres_pool().unwrap().acquire().await.unwrap();
        sqlx::query("SET lock_timeout = '1min'").execute(&mut *connection).await.unwrap();
        drop(connection);
        let owner = store.keys().claim(claim("k", mode)).await.unwrap();
        assert!(matches!(owner, KeyClaimed::Run { .. }), "{owner:?}");
        // After a known key the store looks up before it inserts; an insert would wait for the renewal and then see it.
        let known = store.keys().claim(claim("k", mode)).await.unwrap();
        assert!(matches!(known, KeyClaimed::InFlight { .. }), "{known:?}");
        store.advance_clock(AFTER_LEASE);

        let (mut owners, mut watching) = (other(&database.url).await, other(&database.url).await);
        let mut renewing = owners.begin().await.unwrap();
        sqlx::query("UPDATE ichido.ledger SET lease_until = clock_timestamp() + interval '1 hour'")
            .execute(&mut *renewing)
            .await
            .unwrap();
        let another = tokio::spawn({
            let store = store.clone();
            async move { store.keys().claim(claim("k", mode)).await }
        });
        until("the other request waits", async || number(&mut watching, WAITING).await == 1).await;
        renewing.commit().await.unwrap();
        let another = another.await.unwrap().unwrap();
        assert!(matches!(another, KeyClaimed::InFlight { .. }), "{another:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_is_renewed_meanwhile_is_not_taken_over() {
    a_renewal_in_between_is_seen(OperationGuarantee::Transactional).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_is_renewed_meanwhile_is_not_marked_as_unknown() {
    a_renewal_in_between_is_seen(OperationGuarantee::None).await;
}

/// A claim skips rows that somebody else has locked: it never waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_skips_locked_rows() {
    with_time_limit(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 2).await.unwrap();
        let held = new_id(store.messages().enqueue(message("held")).await.unwrap());
        let free = new_id(store.messages().enqueue(message("free")).await.unwrap());
        let mut theirs = other(&database.url).await;
        let mut open = theirs.begin().await.unwrap();
        let row = sqlx::query("SELECT 1 FROM ichido.ready WHERE message_id = $1 FOR UPDATE").bind(held);
        row.execute(&mut *open).await.unwrap();
        let claimed = async || only(store.claims().claim(&queue(), many(10), terms()).await.unwrap()).id;
        assert_eq!(claimed().await, free);
        open.rollback().await.unwrap();
        assert_eq!(claimed().await, held);
    })
    .await;
}

/// `now()` is the beginning of the caller's transaction, which may be long ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_enqueued_late_in_a_transaction_has_that_time() {
    with_time_limit(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 2).await.unwrap();
        let mut theirs = other(&database.url).await;
        let mut open = theirs.begin().await.unwrap();
        let late = "CREATE TEMP TABLE late AS SELECT clock_timestamp() AS at";
        sqlx::query(late).execute(&mut *open).await.unwrap();
        let same_content = Some(SameContent { content: Digest::of_bytes(b"c"), window: DAY });
        let put = NewMessage { same_content, delay: DAY, ..message("k") };
        new_id(store.messages().enqueue_in(&mut *open, put).await.unwrap());
        let row = sqlx::query(
            "SELECT m.created_at >= late.at AND m.due >= late.at + interval '1 day' AND s.due = m.due AS put, c.until >= late.at + interval '1 day' AS remembered
             FROM ichido.messages m JOIN ichido.scheduled s ON s.message_id = m.id JOIN ichido.contents c ON c.message_id = m.id, late",
        )
        .fetch_one(&mut *open)
        .await
        .unwrap();
        assert!(row.get::<bool, _>("put"), "the message");
        assert!(row.get::<bool, _>("remembered"), "its content");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolled_back_savepoint_drops_its_messages() {
    with_time_limit(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 2).await.unwrap();
        let mut theirs = other(&database.url).await;
        let mut open = theirs.begin().await.unwrap();
        let mut inner = open.begin().await.unwrap();
        let same_content = Some(SameContent { content: Digest::of_bytes(b"c"), window: DAY });
        let compared = || NewMessage { same_content, ..message("c") };
        for put in [message("k"), compared()] {
            new_id(store.messages().enqueue_in(&mut *inner, put).await.unwrap());
        }
        inner.rollback().await.unwrap();
        for put in [message("k"), compared()] {
            let again = store.messages().enqueue_in(&mut *open, put).await.unwrap();
            assert!(matches!(again, Enqueued::New { .. }), "{again:?}");
        }
        open.commit().await.unwrap();
        assert_eq!(store.queues().counts().await.unwrap()[0].count, 2);
    })
    .await;
}

/// A call that may start is not at the same time rescued as not started: it would be done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_may_begin_is_not_rescued_as_not_begun() {
    const ROUNDS: usize = 60;
    const CALLS: u32 = 40;
    with_time_limit(Box::pin(async {
        let database = fresh_database().await;
        let store = Store::open(&database.url, 4).await.unwrap();
        let other = Store::open(&database.url, 4).await.unwrap();
        let neither =
            RescueOptions { guarantee: Guarantee::None, wait: Duration::ZERO, max_time_in_flight: DAY };
        for round in 0..ROUNDS {
            let puts = (0..CALLS).map(|number| message(&format!("{round}-{number}"))).collect();
            let enqueued = store.messages().enqueue_all(puts).await;
            assert!(enqueued.iter().all(Result::is_ok), "{enqueued:?}");
            let mut calls = Vec::new();
            while calls.len() < CALLS as usize {
                let marks = ClaimOptions { start_marks: true, ..terms() };
                let work = store.claims().claim(&queue(), many(CALLS), marks).await.unwrap();
                calls.extend(work.iter().map(|work| (work.id, work.fence)));
            }
            store.advance_clock(AFTER_LEASE);
            other.advance_clock(AFTER_LEASE);
            let start_mark = tokio::spawn({
                let (store, calls) = (store.clone(), calls.clone());
                async move { store.claims().mark_started(&calls).await }
            });
            while while_busy(|| other.claims().rescue(|_| neither)).await.is_some() {}
            let start_mark = match start_mark.await.unwrap() {
                // The rescue prevented it: none of them may start.
                Err(StoreError::Busy) => Vec::new(),
                start_mark => start_mark.unwrap(),
            };
            // The rescue skipped a claim that was being marked.
            while other.claims().rescue(|_| neither).await.unwrap().is_some() {}
            for ((id, _), start_mark) in calls.iter().zip(start_mark) {
                let status = store.messages().get(*id).await.unwrap().unwrap().status;
                assert!(
                    !start_mark || status == StateName::Parked,
                    "round {round}: it may begin, and is {status:?}"
                );
            }
            // Out of the way.
            let queued = MessageFilter { status: Some(StateName::Queued), ..MessageFilter::default() };
            for row in store.messages().list(&queued, 1_000).await.unwrap() {
                let _ = store.messages().step(row.id, |_| Event::Cancelled, &Note::default()).await.unwrap();
            }
        }
    }))
    .await;
}
