//! `bff` and `gateway` require and check the key, and forward it unchanged.
// Spec: C1, C2.

use serde_json::json;

use super::client::{ProxyRequest, send, send_bytes};
use super::program::ProxyProcess;
use super::service::{FakeService, ServiceAction, answer};
use crate::folder;

#[tokio::test]
async fn state_change_without_key_is_refused() {
    let service = FakeService::plain().await;
    for role in ["bff", "gateway"] {
        let proxy = ProxyProcess::start(role, service.address, &[]);
        for method in ["POST", "PATCH"] {
            let answer = send(proxy.address, &ProxyRequest::new(method, "/v1/orders").body("{}")).await;
            assert_eq!((answer.status(), answer.code().as_str()), (400, "key_missing"), "{role} {method}");
            assert!(answer.one("x-request-id").is_some());
        }
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn invalid_keys_are_refused() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let long = "k".repeat(256);
    for fields in [
        vec![("Idempotency-Key", "")],
        vec![("Idempotency-Key", "\"\"")],
        vec![("Idempotency-Key", long.as_str())],
        vec![("Idempotency-Key", "a b")],
        vec![("Idempotency-Key", "\"a")],
        vec![("Idempotency-Key", "\"a\", \"b\"")],
        vec![("Idempotency-Key", "schlüssel")],
        // Two lines join into one valid string, so they are counted before they are read.
        vec![("Idempotency-Key", "\"foo"), ("Idempotency-Key", "bar\"")],
        vec![("Idempotency-Key", "same"), ("Idempotency-Key", "same")],
        vec![("Idempotency-Key", "one"), ("X-Idempotency-Key", "two")],
    ] {
        let request =
            fields.iter().fold(ProxyRequest::post("/"), |request, (name, value)| request.field(name, value));
        let answer = send(proxy.address, &request).await;
        assert_eq!((answer.status(), answer.code().as_str()), (400, "key_invalid"), "{fields:?}");
        assert!(!answer.text().contains("schl"), "the value is not repeated");
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn key_is_forwarded_byte_for_byte() {
    let service = FakeService::plain().await;
    let gateway = ProxyProcess::start("gateway", service.address, &[]);
    let bff = ProxyProcess::start("bff", gateway.address, &["--allow-headers", "accept"]);
    // A hop does not know the adapter's profile, and one of them allows spaces.
    let spellings = ["\"a \\\" b\";v=1", "\"quoted\"", "bare:/*%00'", "K"];
    for (index, spelling) in spellings.into_iter().enumerate() {
        let request = ProxyRequest::post("/").field("Idempotency-Key", spelling);
        assert_eq!(send(bff.address, &request).await.status(), 200, "{spelling}");
        assert_eq!(service.seen()[index].all("idempotency-key"), [spelling]);
    }
    let both = ProxyRequest::post("/").key("\"k\"").field("X-Idempotency-Key", "k");
    assert_eq!(send(bff.address, &both).await.status(), 200);
    let seen = service.seen().pop().expect("the last");
    assert_eq!((seen.one("idempotency-key"), seen.one("x-idempotency-key")), (Some("\"k\""), Some("k")));
}

#[tokio::test]
async fn reads_need_no_key_and_ignore_one() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    assert_eq!(send(proxy.address, &ProxyRequest::get("/")).await.status(), 200);
    assert_eq!(send(proxy.address, &ProxyRequest::get("/").key("not a key")).await.status(), 200);
    assert_eq!(
        send(proxy.address, &ProxyRequest::new("DELETE", "/x")).await.status(),
        200,
        "not asked for by default"
    );
    let strict = ProxyProcess::start("bff", service.address, &["--key-on", "POST,PUT,DELETE"]);
    assert_eq!(send(strict.address, &ProxyRequest::new("DELETE", "/x")).await.code(), "key_missing");
    assert_eq!(send(strict.address, &ProxyRequest::new("PATCH", "/x")).await.status(), 200);
}

#[tokio::test]
async fn missing_key_is_refused_before_100_continue() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n";
    let mut client = super::client::ProxyClient::connect(proxy.address).await;
    client.write(head).await;
    let first = client.reader.head().await.expect("readable").expect("an answer");
    assert_eq!(first.status(), 400, "and not 100");
}

#[tokio::test]
async fn valid_key_gets_100_continue() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let mut client = super::client::ProxyClient::connect(proxy.address).await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    client.write(head).await;
    assert_eq!(client.reader.head().await.expect("readable").expect("an answer").status(), 100);
    client.write("hello").await;
    assert_eq!(client.answer().await.status(), 200);
    let seen = service.only();
    assert_eq!((seen.text(), seen.one("expect")), ("hello", None));
}

#[tokio::test]
async fn origin_responses_pass_unchanged() {
    let service = FakeService::start(|request, _| {
        let processing = [
            ("Idempotency-Status", "processing"),
            ("Retry-After", "1"),
            ("Content-Type", "application/json"),
        ];
        ServiceAction::Answer(match request.one("idempotency-key") {
            Some("processing") => answer("202 Accepted", &processing, "{\"a\": 1}"),
            Some("conflict") => answer(
                "409 Conflict",
                &[("content-type", "application/problem+json")],
                "{\"code\":\"key_conflict\"}",
            ),
            _ => answer(
                "201 Created",
                &[("Idempotency-Replayed", "true"), ("location", "/x/1"), ("link", "a"), ("link", "b")],
                "made",
            ),
        })
    })
    .await;
    let proxy = ProxyProcess::start(
        "bff",
        service.address,
        &["--attempts", "3", "--allow-response-headers", "content-type,location,link"],
    );
    let processing = send(proxy.address, &ProxyRequest::post("/").key("processing")).await;
    assert_eq!((processing.status(), processing.text()), (202, "{\"a\": 1}"));
    assert_eq!(
        (processing.one("idempotency-status"), processing.one("retry-after")),
        (Some("processing"), Some("1"))
    );
    let conflict = send(proxy.address, &ProxyRequest::post("/").key("conflict")).await;
    assert_eq!((conflict.status(), conflict.code().as_str()), (409, "key_conflict"));
    let replay = send(proxy.address, &ProxyRequest::post("/").key("replay")).await;
    assert_eq!((replay.status(), replay.one("idempotency-replayed")), (201, Some("true")));
    assert_eq!(replay.all("link"), ["a", "b"], "repeats stay repeats");
    assert_eq!(service.seen().len(), 3, "none of them is tried again");
}

#[tokio::test]
async fn refusal_follows_the_boundary_file() {
    let service = FakeService::plain().await;
    let folder = folder::fresh();
    let validate = json!({"on_missing_key": {"error_code": "KEY_REQUIRED"}});
    let file = folder.boundary(
        "browser_to_bff.json",
        &json!({
            "http": {
                "methods": {"allowed": ["GET", "POST"], "state_changing": ["POST"]},
                "idempotency": {"validate_only": validate},
                "retry": {"apply_to_methods": ["POST"]},
            },
            "observability": {"request_id": "new", "traceparent": "drop"},
        }),
    );
    let proxy = ProxyProcess::start("bff", service.address, &["--boundary", &file]);
    let missing = send(proxy.address, &ProxyRequest::post("/")).await;
    assert_eq!((missing.status(), missing.code().as_str()), (400, "KEY_REQUIRED"));
    let refused = send(proxy.address, &ProxyRequest::new("PATCH", "/").key("k")).await;
    assert_eq!((refused.status(), refused.code().as_str()), (405, "method_not_allowed"));
    assert_eq!(refused.one("allow"), Some("GET, POST"));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request =
        ProxyRequest::post("/").key("\"k\"").field("x-request-id", "mine").field("traceparent", trace);
    let passed = send(proxy.address, &request).await;
    assert_eq!((passed.status(), passed.one("idempotency-key")), (200, Some("\"k\"")), "the key is echoed");
    let seen = service.only();
    assert_ne!(seen.one("x-request-id"), Some("mine"));
    assert_eq!(seen.one("x-request-id"), passed.one("x-request-id"));
    assert_eq!(seen.one("traceparent"), None);
}

#[tokio::test]
async fn keys_reach_the_log_as_hashes_only() {
    let service = FakeService::plain().await;
    let mut proxy = ProxyProcess::start_logged("gateway", service.address, &["--log", "info"]);
    let request = ProxyRequest::post("/").key("order-4711").body("secret payload");
    assert_eq!(send(proxy.address, &request).await.status(), 200);
    send_bytes(proxy.address, "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: or der-4711\r\n\r\n").await;
    proxy.signal("TERM");
    proxy.wait().await;
    let log = proxy.log();
    assert!(log.contains(&hash("order-4711")), "{log}");
    for secret in ["order-4711", "der-4711", "secret"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

fn hash(key: &str) -> String {
    ichido_core::key::IdempotencyKey::parse(key).expect("a key").log_hash()
}
