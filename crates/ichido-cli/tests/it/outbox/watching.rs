//! A worker without queues watches for alerts, for instance about requests behind proxies.
// Spec: A15, F2.

use std::sync::Arc;

use http_for_tests::{Receiver, plain};
use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName};
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle};

use super::database::{OutboxDatabase, POLL_EVERY, both_databases, key};
use super::program::WorkerProcess;
use crate::folder;

/// Adds a key of unknown outcome to the ledger.
async fn add_unknown(database: &OutboxDatabase) {
    let name = RecordName { operation: "charge".to_owned(), identity: "alice".to_owned(), key: key("k1") };
    let claim = KeyClaim {
        name: name.clone(),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        request_digest: Digest::of_bytes(b"10 EUR"),
        policy: Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect)).expect("a policy")),
        hops: None,
        trace: None,
    };
    let claimed = database.store.keys().claim(claim).await.expect("claimed");
    let KeyClaimed::Run { fence, .. } = claimed else { panic!("{claimed:?}") };
    let held = KeySettle { name, fence, outcome: KeyOutcome::Hold };
    let _ = database.store.keys().settle(held).await.expect("held");
}

both_databases! {
    #[test]
    async fn worker_without_queues_notifies_about_held_keys(database: OutboxDatabase) {
        add_unknown(&database).await;
        let receiver = Receiver::answering(plain("204 No Content")).await;
        let folder = folder::fresh();
        folder.write("ichido.toml", &format!(
            "[store]\nurl = \"{}\"\n[destinations.ops]\nkind = \"http\"\nurl = \"{}\"\nguarantee = \"idempotent\"\n\
             [alerts.to.ops]\ndestination = \"ops\"\nformat = \"webhook\"\n",
            database.url,
            receiver.url("/hooks"),
        ));
        let _worker = WorkerProcess::start(folder.path(), &[]);
        let body = loop {
            if let Some(request) = receiver.seen().first() {
                break String::from_utf8(request.body.clone()).expect("text");
            }
            tokio::time::sleep(POLL_EVERY).await;
        };
        assert!(body.contains("\"rule\":\"unknown_outcome\"") && body.contains("operation charge"), "{body}");
        assert!(!body.contains("k1"), "no key: {body}");
    }
}
