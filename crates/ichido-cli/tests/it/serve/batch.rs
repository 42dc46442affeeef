//! Many messages in one request.

use serde_json::Value;

use super::client::{RawClient, RawRequest, problem};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture, on_both};
use crate::http_message::HttpMessage;

fn batch(body: impl AsRef<[u8]>) -> RawRequest {
    RawRequest::post("/v1/queues/demo/messages:batch")
        .field("Content-Type", "application/x-ndjson")
        .body(body)
}

fn results(answer: &HttpMessage) -> Vec<Value> {
    assert_eq!((answer.status(), answer.one("content-type")), (200, Some("application/x-ndjson")));
    answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

on_both! {
    async fn each_batch_line_has_its_own_result(fixture) {
        let server = fixture.serve(&[]);
        let lines = [
            r#"{"key":"a","body":{"x": 1}}"#,
            r#"{"key":"a","body":{"x":1.0}}"#,
            r#"{"key":"a","body":{"x":2}}"#,
            "",
            "no JSON",
            r#"{"key":"b","body":{"y":1,"y":2}}"#,
            r#"{"key":"b"}"#,
            r#"{"key":"b","body":1,"body_base64":"aGk="}"#,
            r#"{"key":"b","body_base64":"aGk="}"#,
            r#"{"key":"b","body_base64":"a","content_type":"text/plain"}"#,
            r#"{"key":"b","body":1,"colour":"red"}"#,
            r#"{"key":"b b","body":1}"#,
            r#"{"key":"b","body":{"idempotency_key":"c"}}"#,
            r#"{"key":"b","body_base64":"aGk=","content_type":"text/plain"}"#,
            r#"{"key":7,"body":1}"#,
            r#"[{"key":"c","body":1}]"#,
            r#"{"content_type":"application/vnd.a+json","body": null ,"key":"\u0063"}"#,
        ];
        let answer = server.send(&batch(lines.join("\n"))).await;
        let results = results(&answer);
        let told: Vec<(u64, u64, &str)> = results
            .iter()
            .map(|result| {
                let code = result["code"].as_str().unwrap_or_default();
                (result["line"].as_u64().unwrap(), result["status"].as_u64().unwrap(), code)
            })
            .collect();
        let line = "line_invalid";
        assert_eq!(
            told,
            [
                (1, 201, ""), (2, 201, ""), (3, 409, "key_conflict"), (5, 400, line), (6, 400, line), (7, 400, line), (8, 400, line),
                (9, 400, line), (10, 400, line), (11, 400, line), (12, 400, "key_invalid"), (13, 422, "key_mismatch"), (14, 201, ""), (15, 400, line), (16, 400, line), (17, 201, ""),
            ],
            "{}", answer.text()
        );
        assert_eq!((&results[0]["replayed"], &results[1]["replayed"]), (&false.into(), &true.into()));
        assert_eq!(results[0]["id"], results[1]["id"]);
        let stored = server.get(&format!("{}/request", results[0]["href"].as_str().unwrap())).await;
        assert_eq!((stored.text(), stored.one("content-type")), (r#"{"x": 1}"#, Some("application/json")));
        let stored = server.get(&format!("{}/request", results[12]["href"].as_str().unwrap())).await;
        assert_eq!((stored.text(), stored.one("content-type")), ("hi", Some("text/plain")));
        let stored = server.get(&format!("{}/request", results[15]["href"].as_str().unwrap())).await;
        assert_eq!((stored.text(), stored.one("content-type")), ("null", Some("application/vnd.a+json")));
    }

    /// More lines than one write takes: the order is kept, and sending the whole again adds nothing.
    async fn long_batch_keeps_its_order_and_can_be_resent(fixture) {
        let server = fixture.serve(&[]);
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        let line = |number| format!("{{\"key\":\"k-{number}\",\"body\":{number}}}");
        let body = (0..1_203).map(line).collect::<Vec<_>>().join("\n");
        let first = results(&server.send(&batch(&body)).await);
        let again = results(&server.send(&batch(&body)).await);
        assert_eq!((first.len(), again.len()), (1_203, 1_203));
        for (index, (first, again)) in first.iter().zip(&again).enumerate() {
            assert_eq!((&first["line"], &first["status"]), (&(index + 1).into(), &201.into()));
            assert_eq!((&first["replayed"], &again["replayed"], &first["id"]), (&false.into(), &true.into(), &again["id"]));
        }
        assert_eq!(server.queue("demo").await["counts"]["queued"], 1_203);
        let seventh = server.get(first[6]["href"].as_str().unwrap()).await.json();
        assert_eq!(seventh["idempotency_key"], "k-6");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_batch_reports_its_progress() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&["--body-idle-timeout", "100ms"]);
    let mut client = RawClient::connect(server.address).await;
    let head = "POST /v1/queues/demo/messages:batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\nContent-Length: 1000\r\n\r\n";
    client.write(format!("{head}{}\n{{\"key\":", r#"{"key":"a","body":1}"#)).await;
    let results = results(&client.answer().await);
    assert_eq!(results.len(), 2);
    assert_eq!((&results[0]["line"], &results[0]["status"]), (&1.into(), &201.into()));
    assert_eq!((&results[1]["line"], &results[1]["code"]), (&2.into(), &"body_timeout".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_size_is_limited() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let lines = "{\"key\":\"a\",\"body\":1}\n".repeat(10_001);
    let told = results(&server.send(&batch(lines)).await);
    assert_eq!(told.len(), 10_001);
    assert_eq!((&told[9_999]["status"], &told[10_000]["code"]), (&201.into(), &"batch_too_large".into()));
    let long = format!("{{\"key\":\"b\",\"body\":1}}\n\"{}", "x".repeat(6 << 20));
    let told = results(&server.send(&batch(long)).await);
    assert_eq!(
        (told.len(), &told[0]["status"], &told[1]["code"]),
        (2, &201.into(), &"batch_too_large".into())
    );
    let json = RawRequest::post("/v1/queues/demo/messages:batch")
        .field("Content-Type", "application/json")
        .body("{}");
    assert_eq!(problem(&server.send(&json).await), (415, "media_type_unsupported".to_owned()));
    let elsewhere = batch("{}").to("/v1/queues/nowhere/messages:batch");
    assert_eq!(problem(&server.send(&elsewhere).await), (404, "queue_unknown".to_owned()));
}

const LINE: &str = "{\"key\":\"a\",\"body\":1}\n";

/// Sends a batch except for its last byte.
///
/// It holds a permit: the server asks for the body when it starts to read.
async fn start_batch(server: &ServeProcess, token: Option<&str>) -> RawClient {
    let request = token.into_iter().fold(batch(LINE).field("Expect", "100-continue"), RawRequest::token);
    let mut client = RawClient::connect(server.address).await;
    let bytes = request.bytes();
    client.write(&bytes[..bytes.len() - 1]).await;
    assert_eq!(client.reader.head().await.unwrap().unwrap().status(), 100);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_batches_are_limited() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let mut batches = Vec::new();
    for _ in 0..16 {
        batches.push(start_batch(&server, None).await);
    }
    let refused = server.send(&batch(LINE)).await;
    assert_eq!(
        (problem(&refused), refused.one("retry-after")),
        ((503, "batches_full".to_owned()), Some("1"))
    );
    assert_eq!(server.send(&RawRequest::put("k", "{}")).await.status(), 201, "all else goes on");
    for client in &mut batches {
        client.write("\n").await;
        assert_eq!(client.answer().await.status(), 200);
    }
    assert_eq!(server.send(&batch(LINE)).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_token_cannot_use_all_batch_permits() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let greedy = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
    let other = fixture.token(&["till 2", "--role", "producer", "--identity", "ben", "--queue", "demo"]);
    let server = fixture.serve(&[]);
    let mut batches = Vec::new();
    for _ in 0..4 {
        batches.push(start_batch(&server, Some(&greedy)).await);
    }
    let refused = server.send(&batch(LINE).token(&greedy)).await;
    assert_eq!((problem(&refused), refused.one("retry-after")), ((429, "token_busy".to_owned()), Some("1")));
    assert_eq!(server.send(&batch(LINE).token(&other)).await.status(), 200);
    // A client that hangs up releases its permit.
    batches.clear();
    while server.send(&batch(LINE).token(&greedy)).await.status() != 200 {
        tokio::time::sleep(POLL_EVERY).await;
    }
}
