//! Tests other profiles: the IETF draft's and Stripe's.

use ichido_client::decision::{GiveUpReason, RefusalReason};
use ichido_client::{Client, ClientSettings, Outcome};
use ichido_core::ledger::Profile;
use ichido_core::verdict::Effect;

use crate::server::{ServerAction, TestServer, build_client, order, plain, with};

fn client(server: &TestServer, profile: Profile) -> Client {
    build_client(ClientSettings { profile, ..server.settings() })
}

async fn refused(client: &Client, key: &str) -> (RefusalReason, Effect, u32) {
    let outcome = client.send(&order(key)).await;
    let is_key_conflict = outcome.is_key_conflict();
    match outcome {
        Outcome::Refused { reason, effect, attempts, .. } => {
            assert_eq!(is_key_conflict, reason == RefusalReason::KeyConflict);
            (reason, effect, attempts)
        }
        other => panic!("it was not refused: {other:?}"),
    }
}

/// Starts a server that sends the same response a few times and then does the work.
async fn busy_server(answer: String) -> TestServer {
    let mut acts = vec![ServerAction::Say(answer); 5];
    acts.push(ServerAction::Work);
    TestServer::with_actions(acts).await
}

#[tokio::test]
async fn ietf_key_is_a_quoted_string_on_every_attempt() {
    let server = TestServer::with_actions(vec![ServerAction::WorkAndReset, ServerAction::Work]).await;
    let outcome = client(&server, Profile::Ietf).send(&order("k1")).await;
    assert!(matches!(&outcome, Outcome::Done { answer, attempts: 2 } if answer.is_replay()), "{outcome:?}");
    assert_eq!(server.effects(r#""k1""#), 1);
    for request in server.seen() {
        assert_eq!(request.key(), r#""k1""#);
    }
}

#[tokio::test]
async fn ietf_409_with_retry_after_is_in_flight() {
    let outstanding = r#"{"type":"https://api.example/idempotency","title":"A request is outstanding for this Idempotency-Key"}"#;
    for answer in [
        with("409 Conflict", &[("Retry-After", "0")], outstanding),
        with("409 Conflict", &[], r#"{"code":"key_in_flight"}"#),
    ] {
        let server = busy_server(answer).await;
        let outcome = client(&server, Profile::Ietf).send(&order("k1")).await;
        assert!(matches!(outcome, Outcome::Done { attempts: 6, .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn bare_ietf_409_is_retried_but_not_forever() {
    let server =
        TestServer::with_actions(vec![ServerAction::Say(plain("409 Conflict")), ServerAction::Work]).await;
    let outcome = client(&server, Profile::Ietf).send(&order("k1")).await;
    assert!(matches!(outcome, Outcome::Done { attempts: 2, .. }), "it was in flight: {outcome:?}");

    let server = TestServer::with_actions(vec![ServerAction::Say(plain("409 Conflict"))]).await;
    let outcome = client(&server, Profile::Ietf).send(&order("k1")).await;
    let Outcome::GaveUp { why, effect, attempts, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (why, effect, attempts),
        (GiveUpReason::TriesSpent, Effect::Unknown, 3),
        "it was none, or a long one"
    );
}

#[tokio::test]
async fn key_conflict_is_recognised_in_every_profile() {
    let stripe = r#"{"error":{"type":"idempotency_error","message":"Keys can only be used with the same parameters"}}"#;
    for (profile, status, body) in [
        (Profile::Ichido, "409 Conflict", r#"{"code":"key_conflict"}"#),
        (Profile::Ietf, "422 Unprocessable", ""),
        (Profile::Stripe, "400 Bad Request", stripe),
    ] {
        let server =
            TestServer::with_actions(vec![ServerAction::Say(with(status, &[], body)), ServerAction::Work])
                .await;
        let end = refused(&client(&server, profile), "k1").await;
        assert_eq!(end, (RefusalReason::KeyConflict, Effect::Unknown, 1), "{profile:?}");
        assert_eq!(server.seen().len(), 1);
    }
    for (profile, status, body, effect) in [
        (Profile::Ichido, "409 Conflict", r#"{"code":"action_refused"}"#, Effect::Unknown),
        (Profile::Ichido, "422 Odd", "", Effect::NotDone),
        (Profile::Ietf, "409 Conflict", r#"{"code":"outcome_unknown"}"#, Effect::Unknown),
        (Profile::Ietf, "400 Bad Request", "", Effect::NotDone),
        (Profile::Stripe, "400 Bad Request", r#"{"error":{"type":"card_error"}}"#, Effect::NotDone),
        (Profile::Stripe, "409 Conflict", "", Effect::Unknown),
    ] {
        let server =
            TestServer::with_actions(vec![ServerAction::Say(with(status, &[], body)), ServerAction::Work])
                .await;
        let end = refused(&client(&server, profile), "k1").await;
        assert_eq!(end, (RefusalReason::ByServer, effect, 1), "{profile:?} {status} {body}");
    }
}

#[tokio::test]
async fn a_stripe_key_in_use_is_in_flight() {
    let in_use = r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#;
    let server = busy_server(with("409 Conflict", &[], in_use)).await;
    let outcome = client(&server, Profile::Stripe).send(&order("k1")).await;
    assert!(matches!(outcome, Outcome::Done { attempts: 6, .. }), "{outcome:?}");
    assert_eq!((server.effects("k1"), server.seen()[0].key()), (1, "k1"));
}

/// Stripe stores a 500 under the key and repeats it for a day, so retries cannot help.
#[tokio::test]
async fn stored_failure_is_requested_once_more_and_then_accepted() {
    let kept = with("500 Broken", &[("Idempotent-Replayed", "true")], "");
    let server =
        TestServer::with_actions(vec![ServerAction::Say(plain("500 Broken")), ServerAction::Say(kept)]).await;
    let end = refused(&client(&server, Profile::Stripe), "k1").await;
    assert_eq!(end, (RefusalReason::KeptFailure, Effect::Unknown, 2));
    assert_eq!(server.seen().len(), 2);
}
