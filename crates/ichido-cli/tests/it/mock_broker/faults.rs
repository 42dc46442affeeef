//! Each kind of fault as a caller sees it, and its effect.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::broker::{MockBroker, order};

fn always(kind: &str) -> MockBroker {
    MockBroker::start(&["--fault", &format!("{kind}=1"), "--retry-after", "7s", "--slow", "1ms"])
}

#[tokio::test]
async fn response_faults_return_their_status() {
    for (kind, status, error, effects) in [
        ("server_error_before", 503, "unavailable", 0),
        ("server_error_after", 500, "internal_error", 1),
        ("rate_limited", 429, "rate_limited", 0),
        ("conflict_processed", 409, "already_processed", 1),
        ("conflict_in_progress", 409, "in_progress", 0),
        ("conflict_other", 409, "market_closed", 0),
        ("bad_request", 400, "bad_order", 0),
        ("unauthorized", 401, "unauthorized", 0),
    ] {
        let mock = always(kind);
        for calls in 1..=2 {
            let answer = mock.post(&order("k")).await;
            assert_eq!(answer.error(), (status, error.to_owned()), "{kind}");
            assert_eq!(mock.counts("k").await, (effects, calls), "{kind}");
            assert_eq!(mock.effects().await["faults"][kind], calls, "{kind}");
            let wait = answer.headers.get("retry-after").and_then(|value| value.to_str().ok());
            assert_eq!(wait, (status == 429).then_some("7"), "{kind}");
            if kind == "conflict_processed" {
                assert_eq!(answer.json()["idempotency_key"], "k", "it is tied to the key");
            }
        }
    }
}

#[tokio::test]
async fn corrupt_response_faults_still_return_200() {
    let mock = always("wrong_key");
    let answer = mock.post(&order("k")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.json()["idempotency_key"].as_str().is_some_and(|key| key != "k"));
    let mock = always("no_key");
    assert!(mock.post(&order("k")).await.json().get("idempotency_key").is_none());
    let mock = always("malformed");
    let answer = mock.post(&order("k")).await;
    assert_eq!(answer.status, 200);
    assert!(serde_json::from_slice::<serde_json::Value>(&answer.body).is_err());
    let mock = always("slow");
    assert_eq!(mock.post(&order("k")).await.json()["idempotency_key"], "k");
    assert_eq!(mock.counts("k").await, (1, 1));
}

#[tokio::test]
async fn half_response_never_completes() {
    let mock = always("cut_after");
    assert!(mock.try_post(&order("k")).await.is_err(), "it is not taken for whole");
    let mut stream = post_raw(&mock).await;
    let mut text = Vec::new();
    drop(stream.read_to_end(&mut text).await);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let length: usize = length.parse().expect("a number");
    assert!(!body.is_empty() && body.len() < length, "{body}");
    assert_eq!(mock.counts("k").await, (1, 2));
}

/// Writes an order to a raw connection.
async fn post_raw(mock: &MockBroker) -> TcpStream {
    let body = order("k").body;
    let mut stream = TcpStream::connect(mock.address).await.expect("it listens");
    let head = format!(
        "POST /orders HTTP/1.1\r\nHost: mock.test\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("it reads");
    stream
}

#[tokio::test]
async fn reset_fault_resets_the_connection() {
    for (kind, effects) in [("reset_before", 0), ("reset_after", 1)] {
        let mock = always(kind);
        let mut stream = post_raw(&mock).await;
        let error = stream.read_to_end(&mut Vec::new()).await.expect_err("no end in good order");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{kind}");
        assert_eq!(mock.counts("k").await, (effects, 1), "{kind}");
    }
}

#[tokio::test]
async fn silence_lasts_until_the_caller_gives_up() {
    for (kind, effects) in [("silence_before", 0), ("silence_after", 1)] {
        let mock = always(kind);
        let mut stream = post_raw(&mock).await;
        let until_taken = async { while mock.counts("k").await.1 < 1 {} };
        until_taken.await;
        let waited = tokio::time::timeout(Duration::from_millis(50), stream.read_u8()).await;
        assert!(waited.is_err(), "{kind}: {waited:?}");
        assert_eq!(mock.counts("k").await, (effects, 1), "{kind}");
    }
}

#[tokio::test]
async fn slow_order_takes_effect_before_its_response() {
    let mock = MockBroker::start(&["--latency", "1h"]);
    let mut stream = post_raw(&mock).await;
    while mock.counts("k").await.0 < 1 {}
    let waited = tokio::time::timeout(Duration::from_millis(50), stream.read_u8()).await;
    assert!(waited.is_err(), "{waited:?}");
}

#[tokio::test]
async fn fault_text_selects_the_failing_order() {
    let mock = MockBroker::start(&["--fault", "server_error_before=1", "--fault-text", "\"order-13\""]);
    for round in 1..=3 {
        assert_eq!(mock.post(&order("order-13")).await.status, 503);
        assert_eq!(mock.post(&order("order-131")).await.status, 200, "its text is another");
        assert_eq!(mock.counts("order-13").await, (0, round));
    }
    assert_eq!(mock.put("/mock/faults", r#"{"fault_text":"order-131"}"#).await.status, 200);
    assert_eq!(mock.post(&order("order-13")).await.status, 200);
    assert_eq!(mock.post(&order("order-131")).await.status, 503, "it fails from now on, though it was taken");
    assert_eq!((mock.counts("order-13").await.0, mock.counts("order-131").await.0), (1, 1));
}
