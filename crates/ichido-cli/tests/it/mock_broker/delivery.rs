//! The HTTP destination against the mock broker: the verdict on each fault, and the result of reconciliation.

use std::time::Duration;

use bytes::Bytes;
use ichido::destination::http::{
    DeliveryRule, Http, HttpSettings, ReconcileMeaning, ReconcileRule, ReconcileSettings, ResponseMeaning,
};
use ichido::destination::{DeliveryAttempt, DeliveryOutcome, ReconcileOutcome};
use ichido_core::fence::Fence;
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::{Advice, Effect, ErrorCode, Verdict};
use ichido_store::message::{Note, QueueName};
use uuid::Uuid;

use super::broker::{MockBroker, order};

/// How long a call waits for a response that never arrives. The broker has as long to read the request, also on a
/// slow machine.
const SHORT: Duration = Duration::from_secs(2);

/// Returns the settings as a user describes the broker.
fn broker_settings(mock: &MockBroker) -> HttpSettings {
    let conflict = |error: &str, means| DeliveryRule {
        status: "409".to_owned(),
        at: Some(("/error".to_owned(), error.to_owned())),
        means,
    };
    let found = |status: &str, at: Option<(&str, &str)>, means| ReconcileRule {
        status: status.to_owned(),
        at: at.map(|(pointer, text)| (pointer.to_owned(), text.to_owned())),
        means,
    };
    HttpSettings {
        echoes_key: true,
        receipt_pointer: Some("/broker_order_id".to_owned()),
        rules: vec![
            conflict("already_processed", ResponseMeaning::Processed),
            conflict("in_progress", ResponseMeaning::InProgress),
        ],
        reconcile: Some(ReconcileSettings {
            url: format!("http://{}/orders/by-key/{{key}}", mock.address),
            rules: vec![
                found("200", Some(("/status", "accepted")), ReconcileMeaning::Done),
                found("404", Some(("/error", "no_such_order")), ReconcileMeaning::NotDone),
            ],
        }),
        ..HttpSettings::new(
            format!("http://{}/orders", mock.address),
            Guarantee::Keyed { keeps_for: Duration::from_hours(24) },
        )
    }
}

fn destination(settings: &HttpSettings) -> Http {
    settings.resolve().unwrap_or_else(|problems| panic!("{problems}"))
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect("a key")
}

async fn tried(http: &Http, text: &str, fence: u64) -> (Verdict, Note) {
    let call = DeliveryAttempt {
        message: Uuid::now_v7(),
        queue: QueueName::parse("orders").expect("a name"),
        identity: "ann".to_owned(),
        key: key(text),
        fence: Fence::new(fence).expect("a fence"),
        attempt: 1,
        hops: Hops::default(),
        trace: None,
        content_type: "application/json".to_owned(),
        body: Bytes::from(order(text).body),
    };
    match http.call(&call).await {
        DeliveryOutcome::Judged { verdict, note } => (verdict, note),
        DeliveryOutcome::Snoozed { .. } => panic!("it was put off"),
    }
}

#[tokio::test]
async fn an_order_is_sent_with_its_receipt_and_its_fence() {
    let mock = MockBroker::start(&[]);
    let http = destination(&broker_settings(&mock));
    let (verdict, note) = tried(&http, "k", 7).await;
    assert_eq!((verdict.code, verdict.advice), (None, Advice::Accept));
    assert_eq!(note.receipt.as_deref(), Some("mock-1"));
    // A second attempt gets the same result, so its digest is the same.
    let (_, again) = tried(&http, "k", 9).await;
    assert_eq!((again.result_digest, again.receipt), (note.result_digest, note.receipt));
    let effects = mock.effects().await;
    assert_eq!(effects["keys"]["k"]["fences"], serde_json::json!([7, 9]));
    assert_eq!(effects["effects"], 1);
}

#[tokio::test]
async fn every_broker_fault_gets_the_specified_verdict() {
    use Advice::{Accept, AcceptAsProcessed, GiveUp, Reconcile, Retry};
    use Effect::{Done, NotDone, Unknown};
    use ErrorCode::{
        BadRequest, Broker5xx, ConflictProcessed, InProgress, KeyNotEchoed, NetworkTimeout, RateLimited,
        Unauthorized,
    };
    for (kind, code, effect, advice) in [
        ("server_error_before", Some(Broker5xx), Unknown, Retry),
        ("server_error_after", Some(Broker5xx), Unknown, Retry),
        ("reset_before", Some(NetworkTimeout), Unknown, Retry),
        ("reset_after", Some(NetworkTimeout), Unknown, Retry),
        ("silence_before", Some(NetworkTimeout), Unknown, Retry),
        ("silence_after", Some(NetworkTimeout), Unknown, Retry),
        ("cut_after", Some(NetworkTimeout), Unknown, Retry),
        ("rate_limited", Some(RateLimited), NotDone, Retry),
        ("slow", None, Done, Accept),
        ("conflict_processed", Some(ConflictProcessed), Done, AcceptAsProcessed),
        ("conflict_in_progress", Some(InProgress), Unknown, Retry),
        ("conflict_other", Some(BadRequest), Unknown, GiveUp),
        ("bad_request", Some(BadRequest), NotDone, GiveUp),
        ("unauthorized", Some(Unauthorized), NotDone, GiveUp),
        ("malformed", Some(ErrorCode::Unknown), Unknown, Retry),
        ("wrong_key", Some(KeyNotEchoed), Unknown, Reconcile),
        ("no_key", Some(KeyNotEchoed), Unknown, Reconcile),
    ] {
        let mock = MockBroker::start(&["--fault", &format!("{kind}=1"), "--slow", "1ms"]);
        let mut settings = broker_settings(&mock);
        if kind.starts_with("silence") {
            settings.response_timeout = SHORT;
        }
        let http = destination(&settings);
        let (verdict, _) = tried(&http, "k", 1).await;
        assert_eq!((verdict.code, verdict.effect, verdict.advice), (code, effect, advice), "{kind}");
        // One attempt is one call, whatever its outcome.
        let (done, calls) = mock.counts("k").await;
        assert_eq!(calls, 1, "{kind}");
        match effect {
            Done => assert_eq!(done, 1, "{kind}"),
            NotDone => assert_eq!(done, 0, "{kind}"),
            Unknown => {
                // Reconciliation finds out what the response did not say.
                let asked = http.reconcile(&key("k")).await;
                assert_eq!(matches!(asked, ReconcileOutcome::Done { .. }), done == 1, "{kind}: {asked:?}");
                assert_eq!(matches!(asked, ReconcileOutcome::NotDone { .. }), done == 0, "{kind}: {asked:?}");
            }
        }
    }
}

/// Each call fails in one of many ways; only this test retries, and with the same key.
#[tokio::test]
async fn key_takes_effect_once_through_every_fault() {
    const KEYS: usize = 40;
    const MAX_ATTEMPTS: u32 = 200;
    let kinds = [
        "server_error_before",
        "server_error_after",
        "reset_before",
        "reset_after",
        "cut_after",
        "rate_limited",
        "conflict_in_progress",
    ];
    let faults: Vec<String> = kinds.iter().map(|kind| format!("--fault={kind}=0.1")).collect();
    let flags: Vec<&str> = faults.iter().map(String::as_str).chain(["--seed", "1"]).collect();
    let mock = MockBroker::start(&flags);
    let http = destination(&broker_settings(&mock));
    for index in 0..KEYS {
        let name = format!("k{index}");
        let mut attempts = 0;
        while tried(&http, &name, u64::from(attempts)).await.0.advice == Advice::Retry {
            attempts += 1;
            assert!(attempts < MAX_ATTEMPTS, "{name}");
        }
    }
    let effects = mock.effects().await;
    assert_eq!((effects["effects"].as_u64(), effects["max_effects"].as_u64()), (Some(40), Some(1)));
    for kind in kinds {
        assert!(0 < effects["faults"][kind].as_u64().expect("a count"), "{kind} was never made");
    }
}
