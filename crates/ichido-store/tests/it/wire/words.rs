//! Helpers for keys and for waiting.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, PolicyDraft, RecordName, Settled};
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::fixture::{DAY, LEASE, key};

/// How long to wait for anything: far beyond what it takes.
const PATIENCE: Duration = Duration::from_mins(2);

/// Counts the sessions that wait for a lock.
pub(crate) const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

pub(crate) fn name(text: &str) -> RecordName {
    RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key: key(text) }
}

pub(crate) fn claim(text: &str, mode: OperationGuarantee) -> KeyClaim {
    let draft = PolicyDraft { guarantee: Some(mode), lease: Some(LEASE), ..PolicyDraft::new(Class::Mutate) };
    KeyClaim {
        name: name(text),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        request_digest: Digest::of_bytes(text.as_bytes()),
        policy: Arc::new(Policy::build(draft).unwrap()),
        hops: None,
        trace: None,
    }
}

/// Claims a free key.
pub(crate) async fn run(store: &Store, text: &str) -> Fence {
    match store.keys().claim(claim(text, OperationGuarantee::None)).await.unwrap() {
        KeyClaimed::Run { fence, .. } => fence,
        other => panic!("{text}: {other:?}"),
    }
}

pub(crate) fn keep(text: &str, fence: Fence) -> KeySettle {
    let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(text.as_bytes().to_vec()) };
    let outcome = KeyOutcome::Keep {
        settled: Settled::Applied,
        response,
        result_digest: None,
        message_id: None,
        ttl: DAY,
    };
    KeySettle { name: name(text), fence, outcome }
}

pub(crate) fn release(text: &str, fence: Fence) -> KeySettle {
    KeySettle { name: name(text), fence, outcome: KeyOutcome::Release }
}

pub(crate) fn hold(text: &str, fence: Fence) -> KeySettle {
    KeySettle { name: name(text), fence, outcome: KeyOutcome::Hold }
}

/// Opens another connection to the same database.
pub(crate) async fn other(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

/// Polls a condition until it is true.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asking).await.is_ok(), "it never came to this: {what}");
}

/// Waits until all other connections to the database have ended: their transactions are committed or rolled back, and their
/// counters are published.
pub(crate) async fn until_alone(connection: &mut PgConnection) {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    until("all others have left", async || number(&mut *connection, others).await == 0).await;
}

/// Closes the stores on a database and asserts that its server broke no deadlocks. The server must detect deadlocks before any
/// lock wait times out, or it would never see one.
pub(crate) async fn assert_never_deadlocked(stores: impl IntoIterator<Item = Store>, url: &str) {
    for store in stores {
        store.postgres_pool().unwrap().close().await;
    }
    let mut connection = other(url).await;
    until_alone(&mut connection).await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(number(&mut connection, deadlocks).await, 0, "deadlocks");
}

/// Reads one number from the database.
pub(crate) async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query(sql).fetch_one(connection).await.unwrap().get(0)
}
