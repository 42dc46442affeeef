//! Tests that a refusal is final and not retried.

use ichido_client::{Outcome, ProblemDetails};
use ichido_core::verdict::Effect;

use crate::server::{ServerAction, TestServer, order, plain, with};

async fn refused(server: &TestServer) -> (u16, ProblemDetails, Effect, u32) {
    match server.client().send(&order("k1")).await {
        Outcome::Refused { answer, effect, attempts, .. } => {
            (answer.status, answer.problem(), effect, attempts)
        }
        other => panic!("it was not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_refusal_says_why_in_the_servers_words() {
    let problem = r#"{"code":"key_conflict","title":"Used","detail":"this key was used","status":409}"#;
    let server = TestServer::with_actions(vec![ServerAction::Say(with("409 Conflict", &[], problem))]).await;
    let (status, problem, effect, attempts) = refused(&server).await;
    assert_eq!((status, effect, attempts, server.seen().len()), (409, Effect::Unknown, 1, 1));
    assert_eq!(problem.code.as_deref(), Some("key_conflict"));
    assert_eq!(
        (problem.title.as_deref(), problem.detail.as_deref()),
        (Some("Used"), Some("this key was used"))
    );
}

#[tokio::test]
async fn other_4xx_are_not_retried() {
    for status in ["400 Bad", "401 Who", "403 No", "404 What", "413 Large", "422 Odd", "425 Early"] {
        let server =
            TestServer::with_actions(vec![ServerAction::Say(plain(status)), ServerAction::Work]).await;
        let (_, problem, effect, attempts) = refused(&server).await;
        assert_eq!((effect, attempts, server.seen().len()), (Effect::NotDone, 1, 1), "{status}");
        assert_eq!(problem, ProblemDetails::default(), "{status} has no words");
    }
}

#[tokio::test]
async fn refusal_after_a_lost_attempt_leaves_the_effect_unknown() {
    let server =
        TestServer::with_actions(vec![ServerAction::WorkAndReset, ServerAction::Say(plain("403 No"))]).await;
    let (status, _, effect, attempts) = refused(&server).await;
    assert_eq!((status, effect, attempts), (403, Effect::Unknown, 2));
    assert_eq!(server.effects("k1"), 1, "it was done, and nobody could tell");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = TestServer::with_actions(vec![ServerAction::Work]).await;
    for (status, effect) in [("307 Elsewhere", Effect::NotDone), ("302 Elsewhere", Effect::Unknown)] {
        let location = format!("http://{}/orders", elsewhere.address);
        let redirect = with(status, &[("Location", &location)], "");
        let server = TestServer::with_actions(vec![ServerAction::Say(redirect)]).await;
        assert_eq!(refused(&server).await.2, effect, "{status}");
        assert_eq!((server.seen().len(), elsewhere.connections()), (1, 0));
    }
}
