//! Tests that the client reports what is known if it cannot learn the outcome.
// Spec: A8, A9.

use std::time::Duration;

use ichido_client::decision::GiveUpReason;
use ichido_client::{ClientSettings, LastResult, MAX_TIME, Outcome};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, NetworkFault};

use crate::server::{ServerAction, TestServer, build_client, order, plain, quick, with};

/// Long enough for a local server on a slow machine to read a request, and short enough to wait for.
const SHORT: Duration = Duration::from_secs(1);

/// A test that waits longer has failed.
const MAX_CASE: Duration = Duration::from_mins(1);

struct GaveUp {
    why: GiveUpReason,
    last: LastResult,
    effect: Effect,
    attempts: u32,
}

async fn gave_up(settings: ClientSettings) -> GaveUp {
    match build_client(settings).send(&order("k1")).await {
        Outcome::GaveUp { why, last, effect, attempts } => GaveUp { why, last, effect, attempts },
        other => panic!("it was not given up: {other:?}"),
    }
}

fn fault(last: &LastResult) -> NetworkFault {
    match last {
        LastResult::Error { kind, .. } => *kind,
        LastResult::Response(answer) => panic!("an answer came: {answer:?}"),
    }
}

#[tokio::test]
async fn refused_connection_proves_nothing_was_done() {
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let end = gave_up(quick(format!("http://{}", address.expect("a free port")))).await;
    assert_eq!((end.why, end.effect, end.attempts), (GiveUpReason::TriesSpent, Effect::NotDone, 3));
    assert_eq!(fault(&end.last), NetworkFault::ConnectRefused);
}

#[tokio::test]
async fn a_server_that_fails_every_time_leaves_the_effect_unknown() {
    let server = TestServer::with_actions(vec![ServerAction::Say(plain("502 Bad Gateway"))]).await;
    let end = gave_up(server.settings()).await;
    assert_eq!((end.why, end.effect, end.attempts), (GiveUpReason::TriesSpent, Effect::Unknown, 3));
    assert!(matches!(end.last, LastResult::Response(answer) if answer.status == 502));
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_connection_that_breaks_every_time_leaves_the_effect_unknown() {
    let server = TestServer::with_actions(vec![ServerAction::WorkAndReset]).await;
    let end = gave_up(server.settings()).await;
    assert_eq!((end.why, end.effect, end.attempts), (GiveUpReason::TriesSpent, Effect::Unknown, 3));
    assert_eq!((server.seen().len(), server.effects("k1")), (3, 1), "it was done, once");
}

#[tokio::test]
async fn silent_server_times_out() {
    for act in [
        ServerAction::Silence,
        ServerAction::SayAndHold("HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nabc".to_owned()),
    ] {
        let server = TestServer::with_actions(vec![act.clone()]).await;
        let end = gave_up(ClientSettings { attempt_timeout: SHORT, ..server.settings() }).await;
        assert_eq!(
            (end.why, end.effect, end.attempts),
            (GiveUpReason::TriesSpent, Effect::Unknown, 3),
            "{act:?}"
        );
        assert!(matches!(fault(&end.last), NetworkFault::Timeout | NetworkFault::ResponseCut), "{act:?}");
    }
}

#[tokio::test]
async fn all_attempts_share_a_total_timeout() {
    let server = TestServer::with_actions(vec![ServerAction::Silence]).await;
    let settings = ClientSettings { total_timeout: SHORT, attempt_timeout: MAX_TIME, ..server.settings() };
    let end = tokio::time::timeout(MAX_CASE, gave_up(settings)).await.expect("the total cuts the try short");
    assert!(matches!(end.why, GiveUpReason::OutOfTime { .. }), "{:?}", end.why);
    assert_eq!((end.effect, end.attempts), (Effect::Unknown, 1));
}

#[tokio::test]
async fn long_retry_after_gives_up_and_says_until_when() {
    let date = "Fri, 15 Jan 2100 08:00:00 GMT";
    let busy = with("429 Too Many Requests", &[("Retry-After", date)], "");
    let server = TestServer::with_actions(vec![ServerAction::Say(busy), ServerAction::Work]).await;
    let end = gave_up(server.settings()).await;
    let GiveUpReason::AskedToWait { come_back_at } = end.why else { panic!("{:?}", end.why) };
    // The date is later than the longest possible wait.
    assert!(Timestamp::parse("2026-01-01T00:00:00Z").expect("a moment") < come_back_at);
    assert_eq!((end.effect, end.attempts, server.seen().len()), (Effect::NotDone, 1, 1));
}

#[tokio::test]
async fn response_that_is_not_http_is_not_an_outcome() {
    for answer in ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 201 Created\r\nno field\r\n\r\n"] {
        let server = TestServer::with_actions(vec![ServerAction::SayAndClose(answer.to_owned())]).await;
        let end = gave_up(server.settings()).await;
        assert_eq!(
            (end.why, end.effect, end.attempts),
            (GiveUpReason::TriesSpent, Effect::Unknown, 3),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn response_for_another_key_is_not_an_outcome() {
    let others = with("201 Created", &[("Idempotency-Key", "k2")], "{}");
    let server = TestServer::with_actions(vec![ServerAction::Say(others)]).await;
    let end = gave_up(server.settings()).await;
    assert_eq!((end.why, end.effect, end.attempts), (GiveUpReason::AnotherKey, Effect::Unknown, 1));
}
