//! The settings of flags and boundary files.

use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::RecordName;
use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;
use serde_json::json;

use super::{adapter, numbering, order};
use crate::folder;
use crate::proxy::client::{ProxyRequest, send};
use crate::proxy::program::{ProxyProcess, run};

#[tokio::test]
async fn adapter_reads_all_settings_from_boundary_files() {
    let store = fresh_file();
    let folder = folder::fresh();
    let enabled = json!({
        "fingerprint": {
            "include": ["identity", "route.operation", "idempotency-key", "method", "path", "query", "body_hash"],
            "body_hash": {"input": {"leave_out": ["/trace_id"]}},
        },
        "inflight_lock": {"status_on_lock_conflict": 409},
        "conflict_rule": {"same_key_different_fingerprint": {"status": 422}},
        "response_replay": {
            "on_duplicate_while_inflight": {"wait_up_to_ms": 0, "on_timeout": {"status": 409}},
            "response_headers_subset_allowlist": ["content-type", "location"],
        },
        "storage": {"ttl": {"days": 7}},
    });
    let inbound = json!({"allow": ["content-type", "ichido-hops", "idempotency-key", "x-user-id"]});
    let receiving = folder.boundary(
        "gateway_to_adapter.json",
        &json!({
            "http": {"idempotency": {"enabled": enabled}},
            "headers": {"adapter_inbound": inbound, "gateway_outbound": inbound},
        }),
    );
    let day = json!({"days": 1});
    let sending = folder.boundary(
        "adapter.json",
        &json!({"identity": {"source": "header", "name": "x-user-id"}, "operations": {
            "orders.create": {"path": "/orders", "class": "mutate", "guarantee": "keyed", "keeps_keys_for": day, "ttl": null},
            "orders.search": {"methods": ["POST"], "path": "/orders/search", "class": "read", "guarantee": "none"},
            "profiles.update": null}}),
    );
    let service = numbering().await;
    let flags = ["--store", &store.url, "--boundary", &receiving, "--boundary", &sending];
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    let json = |trace: &str, qty: u32| {
        let body = format!("{{\"trace_id\": \"{trace}\", \"qty\": {qty}}}");
        ProxyRequest::post("/orders")
            .key("k")
            .field("x-user-id", "alice")
            .field("content-type", "application/json")
            .body(body)
    };
    let first = send(proxy.address, &json("t1", 1)).await;
    assert_eq!((first.status(), first.one("idempotency-key")), (201, Some("k")));
    let replay = send(proxy.address, &json("t2", 1)).await;
    assert_eq!((replay.status(), replay.one("idempotency-replayed")), (201, Some("true")));
    assert_eq!(
        (replay.one("location"), replay.all("link")),
        (Some("/orders/1"), vec![]),
        "as the file lists"
    );
    assert_eq!(send(proxy.address, &json("t1", 2)).await.status(), 422, "the IETF's number");
    for _ in 0..2 {
        assert_eq!(send(proxy.address, &ProxyRequest::post("/orders/search").body("{}")).await.status(), 201);
    }
    assert_eq!(service.seen().len(), 3, "a read passes, without a key and every time");
    let record = Store::open(&store.url, 2).await.expect("the store");
    let key = IdempotencyKey::parse("k").expect("a key");
    let name = RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key };
    assert!(record.keys().get(&name).await.expect("readable").is_some(), "under the file's name");
}

/// Any structured-field string is a key in the IETF draft, a space included.
#[tokio::test]
async fn key_with_a_space_is_a_key_in_profile_ietf() {
    let store = fresh_file();
    let service = numbering().await;
    let key = "\"order 4711\"";
    let strict = adapter(&service, &store.url, &[]);
    assert_eq!(send(strict.address, &order(key)).await.code(), "key_invalid");
    let proxy = adapter(&service, &store.url, &["--profile", "ietf"]);
    let gateway = ProxyProcess::start("gateway", proxy.address, &[]);
    assert_eq!(send(gateway.address, &order(key)).await.text(), "order 0");
    assert_eq!(send(gateway.address, &order(key)).await.one("idempotency-replayed"), Some("true"));
    assert_eq!(service.only().one("idempotency-key"), Some(key), "byte for byte");
    // With several callers and a service that deduplicates, it gets a derived key, which is a UUID.
    let flags = ["--store", &store.url, "--identity", "header:x-user-id", "--operation", "POST /orders"];
    let flags = [&flags[..], &["--guarantee", "keyed", "--profile", "ietf"]].concat();
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    assert_eq!(send(proxy.address, &order(key).field("x-user-id", "alice")).await.status(), 201);
    let seen = service.seen();
    let derived = seen[1].one("idempotency-key").expect("a key");
    assert!(uuid::Uuid::parse_str(derived).is_ok(), "{derived}");
}

/// A service that deduplicates by key compares the header's bytes.
#[tokio::test]
async fn service_gets_one_spelling_of_the_key() {
    let store = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &store.url, &["--guarantee", "keyed"]);
    assert_eq!(send(proxy.address, &order("\"order-1\"")).await.text(), "order 0");
    assert_eq!(service.only().one("idempotency-key"), Some("order-1"));
}

#[tokio::test]
async fn unopenable_store_error_hides_the_password() {
    let service = numbering().await;
    let url = "postgres://user:hunter2@127.0.0.1:1/none";
    let upstream = format!("http://{}", service.address);
    let flags =
        ["proxy", "--role", "adapter", "--upstream", &upstream, "--listen", "127.0.0.1:0", "--store", url];
    let flags = [&flags[..], &["--identity", "single:shop", "--operation", "POST /orders"]].concat();
    let (code, _, err) = run(&flags);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("cannot open the store") && !err.contains("hunter2"), "{err}");
}

#[tokio::test]
async fn identity_header_can_be_dropped_before_the_service() {
    let store = fresh_file();
    let folder = folder::fresh();
    let sending = folder.boundary(
        "adapter.json",
        &json!({
            "identity": {"source": "header", "name": "x-user-id"},
            "headers": {"adapter_outbound": {"drop": ["x-user-id"]}},
            "operations": {"orders.create": {"path": "/orders"}, "profiles.update": null},
        }),
    );
    let passing = ["accept", "authorization", "content-type", "ichido-hops", "idempotency-key", "x-user-id"];
    let inbound = json!({ "allow": passing });
    let headers = json!({"adapter_inbound": inbound, "gateway_outbound": inbound});
    let receiving = folder.boundary("gateway_to_adapter.json", &json!({"headers": headers}));
    let service = numbering().await;
    let flags = ["--store", &store.url, "--boundary", &sending, "--boundary", &receiving];
    let flags = [&flags[..], &["--drop-headers", "authorization"]].concat();
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    let request =
        order("k").field("x-user-id", "alice").field("authorization", "Bearer secret").field("accept", "*/*");
    assert_eq!(send(proxy.address, &request).await.status(), 201);
    let seen = service.only();
    assert_eq!(
        (seen.one("x-user-id"), seen.one("authorization"), seen.one("accept")),
        (None, None, Some("*/*"))
    );
}
