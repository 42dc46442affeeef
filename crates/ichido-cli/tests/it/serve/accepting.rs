//! Enqueues messages.
// Spec: A1, A3, A4, C5, C9, D1, D3, D11.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::client::{RawRequest, problem, send};
use super::program::{POLL_EVERY, on_both};

const ORDER: &str = r#"{"symbol":"ACME","intent":"buy","qty":"10","limit_price":1.50}"#;

on_both! {
    /// Status and body are identical, byte for byte; a header marks the replay; the request id is new.
    #[test]
    async fn repeated_request_gets_first_response_and_is_sent_once(fixture) {
        let server = fixture.serve(&[]);
        let first = server.send(&RawRequest::put("order-1", ORDER)).await;
        assert_eq!(first.status(), 201, "{first:?}");
        assert_eq!(first.one("idempotency-replayed"), None);
        let body = first.json();
        let href = format!("/v1/messages/{}", body["id"].as_str().unwrap());
        assert_eq!((first.one("location"), body["href"].as_str()), (Some(href.as_str()), Some(href.as_str())));
        assert_eq!((&body["queue"], &body["idempotency_key"], &body["status"]), (&"demo".into(), &"order-1".into(), &"queued".into()));
        server.until_status(&href, "sent").await;

        // An equivalent body in another spelling is the same request; the message's outcome changes nothing.
        let spelled = r#"{ "limit_price": 1.5, "qty": "10", "intent": "buy", "symbol": "ACME" }"#;
        for again in [RawRequest::put("order-1", ORDER), RawRequest::put("\"order-1\"", spelled)] {
            let again = server.send(&again).await;
            assert_eq!((again.status(), &again.body), (201, &first.body));
            assert_eq!(again.one("idempotency-replayed"), Some("true"));
            assert_eq!(again.one("location"), Some(href.as_str()));
            assert_ne!(again.one("x-request-id").unwrap(), first.one("x-request-id").unwrap());
        }
        let stored = server.get(&format!("{href}/request")).await;
        assert_eq!(stored.text(), ORDER, "the caller's bytes are what is stored");
        assert_eq!(server.effects().await["effects"], 1);
    }

    /// The same key enqueued ten times at once is sent once.
    // Spec: D16.
    #[test]
    async fn ten_concurrent_duplicates_are_one_message(fixture) {
        let server = fixture.serve(&[]);
        let mut sending = JoinSet::new();
        for _ in 0..10 {
            let address = server.address;
            sending.spawn(async move { send(address, &RawRequest::put("order-1", ORDER)).await });
        }
        let answers = sending.join_all().await;
        assert!(answers.iter().all(|answer| answer.status() == 201));
        let bodies: BTreeSet<_> = answers.iter().map(|answer| answer.body.clone()).collect();
        assert_eq!(bodies.len(), 1, "all get the same response");
        assert_eq!(answers.iter().filter(|answer| answer.one("idempotency-replayed").is_none()).count(), 1);
        server.until_status(answers[0].one("location").unwrap(), "sent").await;
        assert_eq!(server.effects().await["effects"], 1);
    }

    #[test]
    async fn different_request_with_same_key_is_refused(fixture) {
        let server = fixture.serve(&[]);
        let first = server.send(&RawRequest::put("order-1", ORDER)).await;
        let other = server.send(&RawRequest::put("order-1", r#"{"symbol":"ACME","qty":"11"}"#)).await;
        assert_eq!(problem(&other), (409, "key_conflict".to_owned()));
        assert_eq!(other.json()["first"], first.json()["href"]);
        // Bodies of another type are compared as bytes.
        let text = |body: &str| RawRequest::post("/v1/queues/demo/messages").key("text-1").field("Content-Type", "text/plain").body(body);
        assert_eq!(server.send(&text("1.0")).await.status(), 201);
        assert_eq!(server.send(&text("1.0")).await.status(), 201);
        assert_eq!(server.send(&text("1.00")).await.status(), 409);
    }

    /// One by one or in a batch. `10` and `10.0` are one number as JSON, and canonical JSON has the bytes of a text.
    async fn same_bytes_under_another_content_type_are_a_conflict(fixture) {
        let server = fixture.serve(&[]);
        let path = "/v1/queues/demo/messages";
        let typed = |content_type: &str, body: &str| RawRequest::post(path).key("k").field("Content-Type", content_type).body(body);
        assert_eq!(server.send(&typed("application/json", "10")).await.status(), 201);
        assert_eq!(server.send(&typed("application/json; charset=utf-8", "10.0")).await.status(), 201);
        for other in ["text/plain", "application/merge-patch+json"] {
            let answer = server.send(&typed(other, "10")).await;
            assert_eq!(problem(&answer), (409, "key_conflict".to_owned()), "{other}");
            let said = format!("the first request's media type is application/json, this one's {other}");
            assert!(answer.text().contains(&said), "{}", answer.text());
        }
        assert_eq!(server.send(&RawRequest::post(path).key("k").body("10")).await.status(), 409);
        let lines = ["{\"key\":\"k\",\"body\":10.0}", "{\"key\":\"k\",\"body\":10,\"content_type\":\"text/plain\"}"];
        let batch = RawRequest::post("/v1/queues/demo/messages:batch").field("Content-Type", "application/x-ndjson");
        let answer = server.send(&batch.body(lines.join("\n"))).await;
        let results: Vec<serde_json::Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&results[0]["status"], &results[1]["status"]), (&201.into(), &409.into()), "{}", answer.text());
        let said = "the first request's media type is application/json, this one's text/plain";
        assert!(answer.text().contains(said), "{}", answer.text());
    }

    /// The same key of another identity is another action, and reveals nobody else's message.
    async fn same_key_from_another_identity_is_another_action(fixture) {
        let server = fixture.serve(&[]);
        let ann = server.send(&RawRequest::put("k", ORDER).field("Ichido-Identity", "ann")).await;
        let bob = server.send(&RawRequest::put("k", "{}").field("Ichido-Identity", "bob")).await;
        assert_eq!((ann.status(), bob.status()), (201, 201));
        assert_ne!(ann.json()["id"], bob.json()["id"]);
        let shown = server.get(ann.one("location").unwrap()).await.json();
        assert_eq!(shown["identity"], "ann");
        for answer in [&ann, &bob] {
            server.until_status(answer.one("location").unwrap(), "sent").await;
        }
        assert_eq!(server.effects().await["effects"], 2, "their keys do not meet at the broker");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_requests_are_refused_and_enqueue_nothing() {
    let fixture = super::program::ServerFixture::new(super::program::DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let plain = || RawRequest::post("/v1/queues/demo/messages").body("{}");
    let json = |body: &str| RawRequest::put("k", body);
    let cases = [
        (plain(), 400, "key_missing", "Idempotency-Key"),
        (plain().key("a b"), 400, "key_invalid", ""),
        (plain().key("a").key("a"), 400, "key_invalid", ""),
        (plain().key("a").field("X-Idempotency-Key", "b"), 400, "key_invalid", ""),
        (plain().key(&"k".repeat(256)), 400, "key_invalid", "255"),
        (json(r#"{"idempotency_key":"other"}"#), 422, "key_mismatch", ""),
        (json("{\"a\":1,\n \"a\":2}"), 400, "body_invalid", "line 2, column 2"),
        (json("{\"a\":NaN}"), 400, "body_invalid", "line 1"),
        (plain().key("k").field("Content-Type", "what is this"), 415, "media_type_unsupported", ""),
        (
            plain().key("k").field("Content-Type", "a/b").field("Content-Type", "a/c"),
            415,
            "media_type_unsupported",
            "once",
        ),
        (
            plain().key("k").field("Content-Encoding", "gzip"),
            415,
            "media_type_unsupported",
            "Content-Encoding",
        ),
        (plain().key("k").field("Ichido-Identity", &"i".repeat(256)), 400, "identity_invalid", "255"),
        (
            plain().key("k").to("/v1/queues/nowhere/messages"),
            404,
            "queue_unknown",
            "no queue nowhere here; see",
        ),
        (plain().key("k").to("/v1/queues/dmeo/messages"), 404, "queue_unknown", "did you mean demo?"),
        (plain().key("k").to("/v1/queues/no%20name/messages"), 404, "queue_unknown", "`ichido queues list`"),
        (plain().key("k").to("/v1/queues/demo/messages?wiat=5s"), 400, "parameter_invalid", "wait"),
        (plain().key("k").to("/v1/queues/demo/messages?wait=soon"), 400, "parameter_invalid", "5s"),
        (plain().key("k").to("/v1/queues/demo/messages?wait=1h"), 400, "parameter_invalid", "30s"),
        (plain().key("k").to("/v1/queues/demo/messages?wait=1s&wait=2s"), 400, "parameter_invalid", "once"),
        (plain().key("k").to("/v1/queues/%ff/messages"), 404, "route_unknown", ""),
    ];
    for (request, status, code, part) in cases {
        let answer = server.send(&request).await;
        assert_eq!(problem(&answer), (status, code.to_owned()), "{request:?}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(part), "{part} in {detail}");
        assert!(code == "queue_unknown" || !detail.contains("demo"), "it names no queue: {detail}");
        assert!(answer.one("x-request-id").is_some());
    }
    let counts = server.queue("demo").await["counts"].as_object().unwrap().clone();
    assert!(counts.values().all(|count| count == 0), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_body_key_and_trace_are_kept() {
    let fixture = super::program::ServerFixture::new(super::program::DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = RawRequest::put("k", r#"{"idempotency_key":"k"}"#).field("traceparent", trace);
    let answer = server.send(&request).await;
    assert_eq!(answer.status(), 201);
    let shown = server.get(answer.one("location").unwrap()).await.json();
    assert_eq!((&shown["trace"], &shown["idempotency_key"]), (&trace.into(), &"k".into()));
}

/// Without a content type the body is bytes, and an empty body is allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_may_contain_any_bytes() {
    let fixture = super::program::ServerFixture::new(super::program::DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let large = vec![0xff_u8; 300 * 1024];
    let refused = server.send(&RawRequest::put("empty", "")).await;
    assert_eq!(problem(&refused), (400, "body_invalid".to_owned()), "as JSON");
    for (key, body) in [("empty", &b""[..]), ("bytes", b"\0\xff{"), ("large", &large)] {
        let answer = server.send(&RawRequest::post("/v1/queues/demo/messages").key(key).body(body)).await;
        assert_eq!(answer.status(), 201, "{answer:?}");
        let href = answer.one("location").unwrap();
        let kept = server.get(&format!("{href}/request")).await;
        assert_eq!(kept.body, body, "{key}");
        assert_eq!(kept.one("content-type"), Some("application/octet-stream"));
        while server.get(href).await.json()["status"] == "queued" {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }
}

/// Logs contain the hash of the key, and neither the key nor the body.
// Spec: C5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_contains_only_the_key_hash() {
    let fixture = super::program::ServerFixture::new(super::program::DatabaseKind::Sqlite).await;
    let mut server = fixture.serve(&["--log", "debug"]);
    let key = ichido_core::key::IdempotencyKey::parse("very-secret-key").unwrap();
    let put =
        RawRequest::put(key.as_str(), r#"{"card":"4111-1111"}"#).to("/v1/queues/demo/messages?wait=30s");
    let answer = server.send(&put).await;
    assert_eq!(answer.json()["status"], "sent");
    assert_eq!(server.send(&RawRequest::put(key.as_str(), "{]")).await.status(), 400);
    server.signal("TERM");
    let (code, log) = server.wait().await;
    assert_eq!(code, Some(0));
    assert!(log.contains(&key.log_hash()) && log.contains(answer.one("x-request-id").unwrap()), "{log}");
    assert!(!log.contains("very-secret-key") && !log.contains("4111-1111"), "{log}");
}

/// Counts requests with a key, repeated requests, and whose retries those are.
// Spec: A14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_counted_by_outcome_and_retry_kind() {
    let fixture = super::program::ServerFixture::new(super::program::DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let put = |body: &str| RawRequest::put("k-1", body);
    let batch = "{\"key\":\"k-1\",\"body\":{}}\n{\"key\":\"k-2\",\"body\":{}}\n";
    for (request, status) in [
        (put("{}").field("ichido-attempt", "1; manual"), 201),
        (put("{}").field("ichido-attempt", "2; auto"), 201),
        (put("{}").field("ichido-attempt", "3; manual"), 201),
        (put("{\"a\":1}"), 409),
        (put("{]"), 400),
        (RawRequest::post("/v1/queues/demo/messages").body("{}"), 400),
        (RawRequest::put("k-1", "{}").to("/v1/queues/nowhere/messages"), 404),
        (
            RawRequest::post("/v1/queues/demo/messages:batch")
                .field("content-type", "application/x-ndjson")
                .body(batch),
            200,
        ),
    ] {
        let answer = server.send(&request).await;
        assert_eq!(answer.status(), status, "{answer:?}");
    }
    let page = server.get("/metrics").await;
    let page = page.text();
    for (result, by, count) in [
        ("new", "first", 2),
        ("same", "first", 1),
        ("same", "auto", 1),
        ("same", "manual", 1),
        ("conflict", "first", 1),
        ("refused", "first", 1),
        ("keyless", "first", 1),
    ] {
        let line =
            format!(r#"ichido_arrivals_total{{queue="demo",result="{result}",attempt="{by}"}} {count}"#);
        assert!(page.lines().any(|found| found == line), "{line} is not in {page}");
    }
    assert!(!page.contains("nowhere"), "{page}");
}
