//! One round, on both databases.

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, PolicyDraft, RecordName, Settled};
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled, StoredResponse};
use ichido_store::message::{NewMessage, QueueName};
use ichido_store::testing::{postgres, sqlite, while_busy};
use tokio::task::JoinSet;

use super::*;

const TTL: Duration = Duration::from_hours(72);
/// More than one statement deletes.
const MANY: u64 = 501;

#[tokio::test]
async fn layer_deletes_many_expired_keys_in_one_round() {
    let (database, file) = (postgres::fresh_database().await, sqlite::fresh_file());
    for url in [&database.url, &file.url] {
        let store = Store::open(url, 4).await.unwrap();
        // First of all: a key that its message still uses.
        let queue = QueueName::parse("mail").unwrap();
        let message = NewMessage::new(queue, "alice", key("used"), b"thanks!".to_vec());
        let used_by = store.messages().enqueue(message).await.unwrap().id();
        settle(&store, "used", Some(used_by)).await;
        let mut settling = JoinSet::new();
        for number in 0..MANY {
            let store = store.clone();
            settling.spawn(async move { settle(&store, &number.to_string(), None).await });
        }
        settling.join_all().await;
        store.advance_clock(TTL);
        let counts = run_once(&store, &[], Uuid::now_v7()).await.unwrap();
        assert_eq!(counts.forgotten, MANY);
        assert!(store.keys().get(&name("used")).await.unwrap().is_some());
    }
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).unwrap()
}

fn name(text: &str) -> RecordName {
    RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key: key(text) }
}

/// Settles a new key, with the message that uses it.
async fn settle(store: &Store, text: &str, message_id: Option<Uuid>) {
    let draft = PolicyDraft { guarantee: Some(OperationGuarantee::None), ..PolicyDraft::new(Class::Mutate) };
    let claim = KeyClaim {
        name: name(text),
        fingerprint: Fingerprint::from_bytes(*Digest::of_bytes(b"10 EUR").as_bytes()),
        request_digest: Digest::of_bytes(b"10 EUR"),
        policy: Arc::new(Policy::build(draft).unwrap()),
        hops: None,
        trace: None,
    };
    let claimed = while_busy(|| store.keys().claim(claim.clone())).await;
    let KeyClaimed::Run { fence, .. } = claimed else { panic!("it is new") };
    let response = StoredResponse { status: 201, headers: Vec::new(), body: None };
    let outcome =
        KeyOutcome::Keep { settled: Settled::Applied, response, result_digest: None, message_id, ttl: TTL };
    let settle = KeySettle { name: name(text), fence, outcome };
    assert_eq!(while_busy(|| store.keys().settle(settle.clone())).await, KeySettled::Settled);
}
