//! What the ledger records, and for how long.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::hops::Hops;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordPhase, Settled};
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;

use super::{adapter, name, numbering};
use crate::proxy::client::{HUNG, ProxyRequest, send};
use crate::proxy::program::ProxyProcess;

#[tokio::test]
async fn key_record_has_route_hops_and_trace() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    let gateway =
        ProxyProcess::start("gateway", proxy.address, &["--allow-headers", "content-type,traceparent"]);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request =
        ProxyRequest::post("/orders/7").key("k").field("traceparent", trace).field("x-request-id", "r-1");
    assert_eq!(send(gateway.address, &request).await.status(), 201);
    let store = Store::open(&file.url, 2).await.expect("the store");
    let record =
        store.keys().get(&name("POST /orders/{id}", "k")).await.expect("readable").expect("a record");
    let hops = Hops::read(record.hops.as_deref());
    let text: Vec<_> = hops.iter().map(|hop| (hop.name.as_str(), hop.request_id.as_str())).collect();
    assert_eq!(text, [("gateway", "r-1"), ("adapter", "r-1")]);
    assert_eq!(record.trace.as_deref(), Some(trace));
}

#[tokio::test]
async fn expired_keys_are_deleted_in_the_background() {
    let database = fresh_database().await;
    let file = fresh_file();
    for url in [&file.url, &database.url] {
        let store = Store::open(url, 2).await.expect("the store");
        let name = name("POST /orders", "old");
        let policy = Arc::new(Policy::build(PolicyDraft::new(Class::Mutate)).expect("a policy"));
        let claim = KeyClaim {
            name: name.clone(),
            fingerprint: ichido_core::fingerprint::Fingerprint::from_bytes([1; 32]),
            request_digest: ichido_core::digest::Digest::of_bytes(b""),
            policy,
            hops: None,
            trace: None,
        };
        let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.expect("claimed") else {
            panic!("it is new")
        };
        let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(Vec::new()) };
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response,
            result_digest: None,
            message_id: None,
            ttl: Duration::from_micros(1),
        };
        let _ = store.keys().settle(KeySettle { name: name.clone(), fence, outcome }).await.expect("settled");
        let found = store.keys().get(&name).await.expect("readable").expect("it is still there");
        assert!(matches!(found.record.phase, RecordPhase::Settled { .. }));
        let service = numbering().await;
        let _proxy = adapter(&service, url, &[]);
        let forgotten = async {
            while store.keys().get(&name).await.expect("readable").is_some() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HUNG, forgotten).await.expect("it is forgotten");
    }
}
