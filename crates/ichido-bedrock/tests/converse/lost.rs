//! Calls without a complete response: one that was never sent is not billed, and every other may be.

use std::time::Duration;

use fake_llm::action::ScriptedAction;
use ichido_bedrock::BedrockSettings;
use ichido_core::verdict::{Advice, Effect, ErrorCode};
use ichido_llm::models::CallError;
use tokio::time::timeout;

use crate::fixture::{ask, assert_requests, call_error, fake, settings};
use crate::raw::{AfterAnswer, Raw};

/// Long enough for a busy local server to read a request; nothing waits longer.
const SHORT: Duration = Duration::from_secs(2);

/// A call that has not ended by then never ends.
const NEVER: Duration = Duration::from_mins(2);

fn assert_judged(call_error: &CallError, effect: Effect) {
    assert_code(call_error, ErrorCode::NetworkTimeout, effect);
}

fn assert_code(call_error: &CallError, code: ErrorCode, effect: Effect) {
    let verdict = call_error.verdict;
    assert_eq!(
        (verdict.code, verdict.effect, verdict.advice),
        (Some(code), effect, Advice::Retry),
        "{call_error:?}"
    );
    assert_eq!(call_error.may_be_billed(), effect == Effect::Unknown);
}

async fn asked(settings: BedrockSettings) -> CallError {
    let model = settings.resolve().await.unwrap();
    timeout(NEVER, ask(&model)).await.expect("a call ends in time").unwrap_err()
}

#[tokio::test]
async fn connection_dropped_after_request_may_be_billed_and_is_not_retried() {
    for action in [ScriptedAction::Drop, ScriptedAction::DropCompleted] {
        let fake = fake(action);
        let call_error = call_error(fake.url()).await;
        assert_judged(&call_error, Effect::Unknown);
        assert!(call_error.why.starts_with("may have been sent: "), "{}", call_error.why);
        assert_requests(&fake, 1);
    }
}

#[tokio::test]
async fn truncated_response_may_be_billed() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"output\":".to_vec();
    let raw = Raw::start(cut, AfterAnswer::Close).await;
    let call_error = call_error(raw.url()).await;
    assert_judged(&call_error, Effect::Unknown);
    assert_eq!((call_error.status, raw.requests()), (Some(200), 1));
}

#[tokio::test]
async fn oversized_response_is_abandoned() {
    const BYTES: usize = (4 << 20) + 1;
    let mut long = format!("HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\n\r\n").into_bytes();
    long.resize(long.len() + BYTES, b' ');
    let raw = Raw::start(long, AfterAnswer::Wait).await;
    let call_error = call_error(raw.url()).await;
    assert_judged(&call_error, Effect::Unknown);
    assert!(call_error.why.contains("length limit exceeded"), "{}", call_error.why);
}

#[tokio::test]
async fn timed_out_call_may_be_billed() {
    let silent = Vec::new();
    let stalled = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"output\":".to_vec();
    for said in [silent, stalled] {
        let raw = Raw::start(said, AfterAnswer::Wait).await;
        let settings = BedrockSettings { connect_timeout: SHORT, timeout: SHORT, ..settings(raw.url()) };
        assert_judged(&asked(settings).await, Effect::Unknown);
        assert_eq!(raw.requests(), 1);
    }
}

#[tokio::test]
async fn failed_connection_is_not_billed() {
    // Nothing listens there any more.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let call_error = call_error(format!("http://{gone}")).await;
    assert_code(&call_error, ErrorCode::ConnectFailed, Effect::NotDone);
    assert!(call_error.why.starts_with("not sent: "), "{}", call_error.why);
}

#[tokio::test]
async fn a_handshake_that_fails_or_never_ends_is_not_billed() {
    // One server does not speak TLS, and one does not respond.
    let plain = Raw::start(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), AfterAnswer::Close).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    for address in [plain.address(), silent.local_addr().unwrap()] {
        let settings = BedrockSettings { connect_timeout: SHORT, ..settings(format!("https://{address}")) };
        assert_judged(&asked(settings).await, Effect::NotDone);
    }
    assert_eq!(plain.requests(), 0);
}
