//! Tests reads, which have no key and are retried like actions.
// Spec: A8.

use ichido_client::{ActionError, ClientSettings, Outcome, Token};

use crate::server::{ServerAction, TestServer, build_client, plain, with};

#[tokio::test]
async fn failed_read_is_retried_without_a_key() {
    let server = TestServer::with_actions(vec![
        ServerAction::Say(plain("503 Later")),
        ServerAction::Say(with("200 OK", &[], r#"{"id":"m-1"}"#)),
    ])
    .await;
    let client = build_client(ClientSettings { token: Token::parse("t").ok(), ..server.settings() });
    let outcome = client.read("/v1/messages?limit=2").await;
    let Ok(Outcome::Done { answer, attempts: 2 }) = outcome else { panic!("it was not read: {outcome:?}") };
    assert_eq!(answer.text_at("/id").as_deref(), Some("m-1"));
    for request in server.seen() {
        assert_eq!((request.line.as_str(), request.body.len()), ("GET /v1/messages?limit=2 HTTP/1.1", 0));
        assert_eq!(request.field("authorization"), Some("Bearer t"));
        for name in ["idempotency-key", "ichido-attempt", "content-type"] {
            assert_eq!(request.field(name), None, "{name}");
        }
    }
}

#[tokio::test]
async fn refused_reads_are_not_retried_invalid_paths_not_sent() {
    let server = TestServer::with_actions(vec![ServerAction::Say(plain("404 Not Found"))]).await;
    let outcome = server.client().read("/v1/messages/x").await;
    assert!(matches!(outcome, Ok(Outcome::Refused { attempts: 1, .. })), "{outcome:?}");
    assert_eq!(server.client().read("http://elsewhere.example/").await.err(), Some(ActionError::Path));
    assert_eq!(server.seen().len(), 1);
}

/// A key in the response says nothing about a read, because none was sent.
#[tokio::test]
async fn key_in_the_response_to_a_read_is_ignored() {
    let answer = with("200 OK", &[("Idempotency-Key", "of-another")], "{}");
    let server = TestServer::with_actions(vec![ServerAction::Say(answer)]).await;
    let outcome = server.client().read("/").await;
    assert!(matches!(outcome, Ok(Outcome::Done { attempts: 1, .. })), "{outcome:?}");
}
