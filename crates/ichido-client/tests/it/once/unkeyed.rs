//! Tests that an action without a key is retried only if provably not done.
// Spec: C4.

use http::Method;
use ichido_client::decision::GiveUpReason;
use ichido_client::{Client, LastResult, Outcome};
use ichido_core::verdict::{Effect, NetworkFault};

use crate::server::{NO_KEY, ServerAction, TestServer, build_client, plain, quick, unkeyed, with};

const CHANGES: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Returns the reason, what is known about the effect, and the number of attempts.
async fn gave_up(client: Client, method: Method) -> (GiveUpReason, Effect, u32) {
    match client.send(&unkeyed(method)).await {
        Outcome::GaveUp { why, effect, attempts, .. } => (why, effect, attempts),
        other => panic!("it was not given up: {other:?}"),
    }
}

#[tokio::test]
async fn request_that_may_have_been_done_is_not_retried() {
    let faults = [
        ServerAction::WorkAndReset,
        ServerAction::WorkAndCut,
        ServerAction::Say(plain("500 Broken")),
        ServerAction::Say(with("503 Later", &[("Retry-After", "0")], "")),
        ServerAction::Say(plain("408 Slow")),
    ];
    for method in CHANGES {
        for fault in &faults {
            let server = TestServer::with_actions(vec![fault.clone(), ServerAction::Work]).await;
            let end = gave_up(server.client(), method.clone()).await;
            assert_eq!(end, (GiveUpReason::NoKey, Effect::Unknown, 1), "{method} {fault:?}");
            assert_eq!(server.seen().len(), 1, "{method} {fault:?}");
            assert!(server.effects(NO_KEY) <= 1, "{method} {fault:?}");
        }
    }
    let words = GiveUpReason::NoKey.to_string();
    for word in ["no idempotency key", "repeat the effect", "use a key next time"] {
        assert!(words.contains(word), "{words}");
    }
}

#[tokio::test]
async fn request_refused_with_429_is_retried_without_a_key() {
    for method in CHANGES {
        let busy = with("429 Too Many Requests", &[("Retry-After", "0")], "");
        let server = TestServer::with_actions(vec![
            ServerAction::Say(busy.clone()),
            ServerAction::Say(busy),
            ServerAction::Work,
        ])
        .await;
        let outcome = server.client().send(&unkeyed(method.clone())).await;
        assert!(matches!(outcome, Outcome::Done { attempts: 3, .. }), "{method}: {outcome:?}");
        assert_eq!(server.effects(NO_KEY), 1, "{method}");
        for request in server.seen() {
            for name in ["idempotency-key", "x-idempotency-key"] {
                assert_eq!(request.field(name), None, "{method}");
            }
        }
        assert_eq!(server.attempts(), ["1; manual", "2; auto", "3; auto"]);
    }
}

#[tokio::test]
async fn request_that_never_left_is_retried() {
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let client = build_client(quick(format!("http://{}", address.expect("a free port"))));
    let outcome = client.send(&unkeyed(Method::POST)).await;
    let Outcome::GaveUp { why, last: LastResult::Error { kind, .. }, effect, attempts } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (why, kind, effect, attempts),
        (GiveUpReason::TriesSpent, NetworkFault::ConnectRefused, Effect::NotDone, 3)
    );
}

#[tokio::test]
async fn one_unknown_attempt_ends_the_retries() {
    let busy = with("429 Too Many Requests", &[("Retry-After", "0")], "");
    let server = TestServer::with_actions(vec![
        ServerAction::Say(busy),
        ServerAction::WorkAndReset,
        ServerAction::Work,
    ])
    .await;
    assert_eq!(gave_up(server.client(), Method::POST).await, (GiveUpReason::NoKey, Effect::Unknown, 2));
    assert_eq!((server.seen().len(), server.effects(NO_KEY)), (2, 1));
}

/// An idle connection that had closed takes no request; one that breaks during a request may have.
#[tokio::test]
async fn closed_idle_connection_is_proof_and_broken_one_is_not() {
    let server = TestServer::with_actions(vec![ServerAction::SayAndClose(plain("201 Created"))]).await;
    let client = server.client();
    for nth in 1..=3 {
        let outcome = client.send(&unkeyed(Method::POST)).await;
        assert!(matches!(outcome, Outcome::Done { attempts: 1, .. }), "{outcome:?}");
        server.until_closed(nth).await;
    }
    assert_eq!(server.seen().len(), 3);

    let server =
        TestServer::with_actions(vec![ServerAction::Work, ServerAction::WorkAndReset, ServerAction::Work])
            .await;
    let client = server.client();
    assert!(matches!(client.send(&unkeyed(Method::POST)).await, Outcome::Done { attempts: 1, .. }));
    assert_eq!(gave_up(client, Method::POST).await, (GiveUpReason::NoKey, Effect::Unknown, 1));
    assert_eq!((server.seen().len(), server.effects(NO_KEY)), (2, 2), "two actions, each done once");
}

#[tokio::test]
async fn echoed_key_is_ignored_if_none_was_sent() {
    let server = TestServer::with_actions(vec![ServerAction::Say(with(
        "201 Created",
        &[("Idempotency-Key", "k")],
        "",
    ))])
    .await;
    let outcome = server.client().send(&unkeyed(Method::POST)).await;
    assert!(matches!(outcome, Outcome::Done { attempts: 1, .. }), "{outcome:?}");
}
