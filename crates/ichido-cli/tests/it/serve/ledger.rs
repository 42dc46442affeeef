//! Keys over HTTP.
// Spec: A6, C5, D10, F2.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::{Fingerprint, RequestParts};
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use serde_json::{Value, json};

use super::client::{RawRequest, problem};
use super::program::{ServeProcess, ServerFixture, on_both};
use crate::http_message::HttpMessage;

/// Settles a request under a key.
async fn settled(store: &Store, key: &str, outcome: KeyOutcome) {
    let policy = Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect)).expect("a policy"));
    let name = RecordName {
        operation: "orders.create".to_owned(),
        identity: "ann".to_owned(),
        key: IdempotencyKey::parse(key).expect("a key"),
    };
    let request_digest = Digest::of_bytes(b"one apple");
    let fingerprint = Fingerprint::new(&RequestParts {
        operation: &name.operation,
        identity: &name.identity,
        method: "POST",
        path: "/orders",
        query: "",
        media_type: "text/plain",
        digest: request_digest,
        inputs: None,
    });
    let claim = KeyClaim { name: name.clone(), fingerprint, request_digest, policy, hops: None, trace: None };
    let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.expect("claimed") else {
        panic!("nobody was here before");
    };
    let _ = store.keys().settle(KeySettle { name, fence, outcome }).await.expect("settled");
}

fn applied() -> KeyOutcome {
    KeyOutcome::Keep {
        settled: Settled::Applied,
        response: StoredResponse { status: 201, headers: Vec::new(), body: Some(b"thanks".to_vec()) },
        result_digest: None,
        message_id: None,
        ttl: Duration::from_hours(1),
    }
}

async fn store(fixture: &ServerFixture) -> Store {
    Store::open(&fixture.url, 2).await.expect("the store")
}

fn target(key: &str) -> String {
    format!("/v1/keys?operation=orders.create&identity=ann&key={key}")
}

async fn decide(server: &ServeProcess, key: &str, finding: &str) -> HttpMessage {
    let text = json!({"operation": "orders.create", "identity": "ann", "key": key, "decision": finding});
    let request = RawRequest::post("/v1/keys/decide").field("Content-Type", "application/json");
    server.send(&request.body(text.to_string())).await
}

on_both! {
    async fn viewer_sees_key_records_without_bodies(fixture) {
        let viewer = fixture.token(&["screen", "--role", "viewer"]);
        let operator = fixture.token(&["night watch", "--role", "operator"]);
        let producer = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
        settled(&store(&fixture).await, "k1", applied()).await;
        let server = fixture.serve(&[]);
        let ask = async |target: &str, token: &str| server.send(&RawRequest::get(target).token(token)).await;
        let seen = ask(&target("k1"), &viewer).await.json()["keys"][0].clone();
        for (member, value) in [
            ("kind", json!("request")),
            ("operation", json!("orders.create")),
            ("identity", json!("ann")),
            ("idempotency_key", json!("k1")),
            ("state", json!("applied")),
            ("message", Value::Null),
            ("response", json!({"status": 201, "body_bytes": 6})),
        ] {
            assert_eq!(seen[member], value, "{member} of {seen}");
        }
        let whole = ask(&target("k1"), &operator).await.json();
        assert_eq!(whole["keys"][0]["response"]["body_base64"], "dGhhbmtz");
        for target in [&*target("k1"), "/v1/keys/unknown"] {
            assert_eq!(problem(&ask(target, &producer).await), (403, "role_insufficient".to_owned()));
        }
        let post = RawRequest::post("/v1/keys/decide").token(&viewer);
        assert_eq!(problem(&server.send(&post).await), (403, "role_insufficient".to_owned()));
        for (query, status, code) in [
            ("operation=orders.create&identity=ann", 400, "parameter_invalid"),
            ("key=k1&hash=173d0ddbff034193", 400, "parameter_invalid"),
            ("hash=k1", 400, "parameter_invalid"),
            ("operation=orders.create&identity=ann&key=", 400, "key_invalid"),
        ] {
            let answer = ask(&format!("/v1/keys?{query}"), &viewer).await;
            assert_eq!(problem(&answer), (status, code.to_owned()), "{query}");
        }
    }

    /// The same look-up answers for a request of the layer and for a message of the outbox.
    #[test]
    async fn one_look_up_finds_requests_and_messages(fixture) {
        settled(&store(&fixture).await, "order-4711", applied()).await;
        let server = fixture.serve(&[]);
        assert_eq!(server.send(&RawRequest::put("order-4711", "{}")).await.status(), 201);
        let find = async |query: &str| server.get(&format!("/v1/keys?{query}")).await.json();
        let kinds = |found: &Value| -> Vec<String> {
            found["keys"].as_array().unwrap().iter().map(|key| key["kind"].as_str().unwrap().to_owned()).collect()
        };
        // printf %s order-4711 | sha256sum | cut -c1-16
        for query in ["key=order-4711", "hash=173d0ddbff034193"] {
            let found = find(query).await;
            assert_eq!((kinds(&found), &found["is_complete"]), (vec!["request".into(), "message".into()], &json!(true)));
            let [request, message] = &found["keys"].as_array().unwrap()[..] else { panic!("{found}") };
            for key in [request, message] {
                assert_eq!((&key["idempotency_key"], &key["key_hash"]), (&json!("order-4711"), &json!("173d0ddbff034193")));
                assert!(key["request_digest"].as_str().unwrap().starts_with("sha256:"), "{key}");
                assert!(key["created_at"].is_string(), "{key}");
            }
            assert_eq!((&request["state"], &request["operation"], &request["queue"]), (&json!("applied"), &json!("orders.create"), &Value::Null));
            assert!(request["completed_at"].is_string() && request["expires_at"].is_string(), "{request}");
            let steps: Vec<&str> = request["history"].as_array().unwrap().iter().map(|step| step["to"].as_str().unwrap()).collect();
            assert_eq!(steps, ["claimed", "applied"]);
            assert_eq!((&message["queue"], &message["operation"]), (&json!("demo"), &Value::Null));
        }
        assert_eq!(find("hash=173d0ddbff034193").await["searched"]["messages"], 1);
        assert_eq!(kinds(&find("key=order-4711&queue=demo").await), ["message"]);
        assert_eq!(kinds(&find("key=order-4711&identity=ann&operation=orders.create").await), ["request"]);
        for nothing in ["key=order-4712", "hash=0000000000000000", "key=order-4711&operation=other", "key=order-4711&identity=bob"] {
            let found = find(nothing).await;
            assert_eq!((kinds(&found), &found["is_complete"]), (Vec::new(), &json!(true)), "{nothing}");
        }
    }

    async fn key_records_with_unknown_outcome_are_listed_and_decided(fixture) {
        let kept = store(&fixture).await;
        for key in ["k1", "k2", "k3"] {
            settled(&kept, key, KeyOutcome::Hold).await;
        }
        settled(&kept, "known", applied()).await;
        let server = fixture.serve(&[]);
        let keys = |page: &Value| -> Vec<String> {
            let records = page["records"].as_array().unwrap().iter();
            records.map(|record| record["idempotency_key"].as_str().unwrap().to_owned()).collect()
        };
        let first = server.get("/v1/keys/unknown?limit=2").await.json();
        assert_eq!(keys(&first), ["k1", "k2"]);
        let next = first["next"].as_str().unwrap();
        let second = server.get(&format!("/v1/keys/unknown?limit=2&cursor={next}")).await.json();
        assert_eq!((keys(&second), &second["next"]), (vec!["k3".to_owned()], &Value::Null));
        for query in ["cursor=AAAA", "limit=0", "limit=101", "before=k1"] {
            let answer = server.get(&format!("/v1/keys/unknown?{query}")).await;
            assert_eq!(problem(&answer), (400, "parameter_invalid".to_owned()), "{query}");
        }

        let decided = decide(&server, "k1", "done").await;
        assert_eq!((decided.status(), &decided.json()["record"]["state"]), (200, &json!("applied")), "{decided:?}");
        let kept_until = Timestamp::parse(decided.json()["record"]["expires_at"].as_str().unwrap()).unwrap();
        assert!(
            Duration::from_hours(9 * 366 * 24) < kept_until.since(kept.now().await.unwrap()),
            "a decided request must not run again: {kept_until}"
        );
        assert_eq!(problem(&decide(&server, "k1", "give_up").await), (409, "decision_refused".to_owned()));
        let early = decide(&server, "k2", "not_done").await;
        assert_eq!(problem(&early), (409, "decision_refused".to_owned()), "its call may still be travelling");
        assert_eq!(problem(&decide(&server, "k4", "done").await), (404, "record_unknown".to_owned()));
        assert_eq!(problem(&decide(&server, "k2", "perhaps").await), (422, "body_unexpected".to_owned()));
        let text = json!({"operation": "orders.create", "identity": "ann", "key": "k2", "decision": "not_done", "settle_grace": "soon"});
        let answer = server.send(&RawRequest::post("/v1/keys/decide").body(text.to_string())).await;
        assert_eq!(problem(&answer), (422, "body_unexpected".to_owned()));
        assert_eq!(keys(&server.get("/v1/keys/unknown").await.json()), ["k2", "k3"]);
        let actions = kept.actions().list(None, 10).await.unwrap();
        assert_eq!((actions[0].action.kind.as_str(), actions[0].action.actor.as_deref()), ("decided", Some("local")));
    }
}
