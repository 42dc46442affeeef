//! Tests that the work is done once and its outcome is learned, whatever fails.
// Spec: A8, C5, C6.

use std::num::NonZeroU32;
use std::sync::Arc;

use ichido_client::{Action, Cause, ClientSettings, Outcome, Token};
use ichido_core::key::IdempotencyKey;
use tokio::task::JoinSet;

use crate::server::{ServerAction, TestServer, build_client, order, plain, with};

/// The outcome of an order that was done.
struct CompletedOrder {
    id: Option<String>,
    is_replay: bool,
    attempts: u32,
}

async fn done(server: &TestServer, key: &str) -> CompletedOrder {
    match server.client().send(&order(key)).await {
        Outcome::Done { answer, attempts } => {
            CompletedOrder { id: answer.text_at("/id"), is_replay: answer.is_replay(), attempts }
        }
        other => panic!("it was not done: {other:?}"),
    }
}

#[tokio::test]
async fn lost_response_is_learned_with_the_same_key() {
    for act in [ServerAction::WorkAndReset, ServerAction::WorkAndCut] {
        let server = TestServer::with_actions(vec![act, ServerAction::Work]).await;
        let done = done(&server, "k1").await;
        assert_eq!((done.id.as_deref(), done.is_replay, done.attempts), (Some("order-1"), true, 2));
        assert_eq!(server.effects("k1"), 1);
        let [first, second] = server.seen().try_into().expect("two requests");
        assert_eq!(
            (first.line.as_str(), &first.body),
            ("POST /orders HTTP/1.1", &br#"{"qty": 1.0}"#.to_vec())
        );
        // The attempt and the request id.
        // Spec: A14, F1.
        let of_the_try = ["ichido-attempt", "ichido-hops", "x-request-id"];
        let others = |fields: &[(String, String)]| {
            fields
                .iter()
                .filter(|(name, _)| !of_the_try.contains(&name.as_str()))
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            others(&first.fields),
            others(&second.fields),
            "the same except for what identifies the attempt"
        );
        assert_eq!((&first.line, &first.body), (&second.line, &second.body), "byte for byte");
        assert_eq!(server.attempts(), ["1; manual", "2; auto"]);
    }
}

#[tokio::test]
async fn request_is_retried_until_the_server_recovers() {
    for status in ["500 Internal Server Error", "503 Service Unavailable", "408 Request Timeout"] {
        let server =
            TestServer::with_actions(vec![ServerAction::Say(plain(status)), ServerAction::Work]).await;
        let done = done(&server, "k1").await;
        assert_eq!((done.is_replay, done.attempts, server.effects("k1")), (false, 2, 1), "{status}");
    }
}

#[tokio::test]
async fn retry_after_in_seconds_and_as_past_date_is_respected() {
    for wish in ["0", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let busy = with("429 Too Many Requests", &[("Retry-After", wish)], "");
        let server = TestServer::with_actions(vec![ServerAction::Say(busy), ServerAction::Work]).await;
        assert_eq!((done(&server, "k1").await.attempts, server.effects("k1")), (2, 1), "{wish}");
    }
}

#[tokio::test]
async fn action_in_flight_is_polled_until_it_ends() {
    let processing =
        with("202 Accepted", &[("Idempotency-Status", "processing"), ("Retry-After", "0")], "{}");
    let mut acts = vec![ServerAction::Say(processing); 7];
    acts.push(ServerAction::Work);
    let server = TestServer::with_actions(acts).await;
    // Far more often than a failing server is retried.
    assert_eq!((done(&server, "k1").await.attempts, server.effects("k1")), (8, 1));
    assert_eq!(server.attempts()[7], "8; auto");
}

#[tokio::test]
async fn plain_202_is_an_outcome() {
    let server = TestServer::with_actions(vec![ServerAction::Say(plain("202 Accepted"))]).await;
    assert_eq!((done(&server, "k1").await.attempts, server.seen().len()), (1, 1));
}

#[tokio::test]
async fn manual_retry_continues_the_attempt_numbers() {
    let server = TestServer::with_actions(vec![
        ServerAction::Say(plain("503 Service Unavailable")),
        ServerAction::Work,
    ])
    .await;
    let pressed = order("k1").with_previous_attempts(3);
    assert!(matches!(server.client().send(&pressed).await, Outcome::Done { attempts: 2, .. }));
    let by_itself = order("k2").started_by(Cause::Auto);
    assert!(matches!(server.client().send(&by_itself).await, Outcome::Done { .. }));
    assert_eq!(server.attempts(), ["4; manual", "5; auto", "1; auto", "2; auto"]);
}

#[tokio::test]
async fn token_is_sent_only_to_the_server() {
    let server = TestServer::with_actions(vec![ServerAction::Work]).await;
    let mut settings = server.settings();
    settings.base_url.push_str("/inner/");
    settings.token = Some(Token::parse("s3cret").expect("a token"));
    assert!(!format!("{settings:?}").contains("s3cret"));
    let client = build_client(settings);
    let outcome = client.send(&order("k-hidden")).await;
    let [request] = server.seen().try_into().expect("one request");
    assert_eq!(request.field("authorization"), Some("Bearer s3cret"));
    assert_eq!(request.line, "POST /inner/orders HTTP/1.1");
    let shown = format!("{client:?} {outcome:?} {:?}", order("k-hidden"));
    for secret in ["s3cret", "k-hidden", "order-1", "qty"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

/// Each of 200 actions meets a different mixture of failures; each takes effect once, and each outcome is learned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_actions_with_faults_are_each_done_once() {
    let faults = [
        ServerAction::WorkAndReset,
        ServerAction::WorkAndCut,
        ServerAction::Say(plain("503 Service Unavailable")),
        ServerAction::SayAndClose(with("429 Too Many Requests", &[("Retry-After", "0")], "")),
        ServerAction::Work,
    ];
    let server = TestServer::start(move |nth, request| {
        let number: usize = request.key()[1..].parse().expect("k and a number");
        match nth {
            0 => faults[number % 5].clone(),
            1 => faults[number / 5 % 5].clone(),
            _ => ServerAction::Work,
        }
    })
    .await;
    // A server that closes an idle connection while a request is in transit costs an attempt too, occasionally more
    // than one. All of them fail on purpose, which would exhaust any budget.
    let mut settings = ClientSettings { budget: None, ..server.settings() };
    settings.retry.max_attempts = NonZeroU32::new(20).expect("some");
    let client = Arc::new(build_client(settings));
    let mut sending = JoinSet::new();
    for number in 0..200 {
        let client = Arc::clone(&client);
        sending.spawn(async move { client.send(&order(&format!("k{number}"))).await });
    }
    for outcome in sending.join_all().await {
        assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    }
    for number in 0..200 {
        assert_eq!(server.effects(&format!("k{number}")), 1, "k{number}");
    }
}

#[tokio::test]
async fn any_method_that_changes_state_is_an_action() {
    let server = TestServer::with_actions(vec![ServerAction::Work]).await;
    for method in ["PUT", "PATCH", "DELETE", "PURGE"] {
        let key = IdempotencyKey::parse(method).expect("a key");
        let verb = http::Method::from_bytes(method.as_bytes()).expect("a method");
        let action = Action::new(verb, "/orders/1?now=1", key, "text/plain", "").expect("an action");
        assert!(matches!(server.client().send(&action).await, Outcome::Done { .. }), "{method}");
        assert_eq!(server.seen().pop().expect("it came").line, format!("{method} /orders/1?now=1 HTTP/1.1"));
    }
}
