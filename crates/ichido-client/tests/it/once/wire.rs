//! Tests that connections are reused and closed, and never cause an uncounted attempt.

use ichido_client::{ClientSettings, Outcome};
use ichido_core::verdict::Effect;

use crate::server::{ServerAction, TestServer, build_client, order, plain, with};

#[tokio::test]
async fn connection_is_reused_for_the_next_action() {
    let server = TestServer::with_actions(vec![ServerAction::Work]).await;
    let client = server.client();
    for key in ["k1", "k2", "k3"] {
        assert!(matches!(client.send(&order(key)).await, Outcome::Done { attempts: 1, .. }));
    }
    assert_eq!((server.seen().len(), server.connections()), (3, 1));
}

#[tokio::test]
async fn closed_idle_connection_costs_no_attempt() {
    let server = TestServer::with_actions(vec![ServerAction::SayAndClose(plain("201 Created"))]).await;
    let client = server.client();
    for (nth, key) in (1..).zip(["k1", "k2", "k3"]) {
        assert!(matches!(client.send(&order(key)).await, Outcome::Done { attempts: 1, .. }), "{key}");
        server.until_closed(nth).await;
    }
    assert_eq!(server.attempts(), ["1; manual"; 3], "each request that came is one that was counted");
}

/// HTTP libraries resend a request when an idle connection breaks; here every attempt is counted.
#[tokio::test]
async fn connection_that_breaks_during_a_request_costs_an_attempt() {
    let server = TestServer::start(|nth, request| match (request.key(), nth) {
        ("k2", 0) => ServerAction::WorkAndReset,
        _ => ServerAction::Work,
    })
    .await;
    let client = server.client();
    assert!(matches!(client.send(&order("k1")).await, Outcome::Done { attempts: 1, .. }));
    assert!(matches!(client.send(&order("k2")).await, Outcome::Done { attempts: 2, .. }));
    assert_eq!(server.attempts(), ["1; manual", "1; manual", "2; auto"]);
    assert_eq!((server.effects("k2"), server.connections()), (1, 2));
}

#[tokio::test]
async fn huge_response_is_read_up_to_the_limit() {
    let huge = with("201 Created", &[], &"x".repeat(1 << 20));
    let server = TestServer::with_actions(vec![ServerAction::Say(huge)]).await;
    let client = build_client(ClientSettings { max_response_bytes: 1_000, ..server.settings() });
    let Outcome::Done { answer, attempts } = client.send(&order("k1")).await else {
        panic!("the status says that it was done");
    };
    assert_eq!((answer.body.len(), answer.is_whole, attempts), (1_000, false, 1));
    assert_eq!(answer.text_at("/id"), None);
    assert!(matches!(client.send(&order("k2")).await, Outcome::Done { .. }));
    assert_eq!(server.connections(), 2, "one that was not read to its end is not used again");
}

#[tokio::test]
async fn huge_response_head_is_rejected() {
    let huge = with("201 Created", &[("X-Long", &"x".repeat(1 << 20))], "");
    let server = TestServer::with_actions(vec![ServerAction::SayAndClose(huge)]).await;
    let outcome = server.client().send(&order("k1")).await;
    assert!(matches!(outcome, Outcome::GaveUp { effect: Effect::Unknown, attempts: 3, .. }), "{outcome:?}");
}
