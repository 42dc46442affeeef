//! Looking up a call: done, not done, or still unknown, and never a guess.
// Spec: F2.

use ichido::destination::ReconcileOutcome;
use ichido::destination::http::{HttpSettings, ReconcileMeaning, ReconcileRule, ReconcileSettings};
use ichido_store::message::Note;

use super::tried::{SHORT, asked, resolved, settings};
use http_for_tests::{Receiver, ServerAction, json};

fn rule(status: &str, at: Option<(&str, &str)>, means: ReconcileMeaning) -> ReconcileRule {
    let at = at.map(|(pointer, text)| (pointer.to_owned(), text.to_owned()));
    ReconcileRule { status: status.to_owned(), at, means }
}

fn asking(url: String) -> HttpSettings {
    let rules = vec![
        rule("200", Some(("/status", "pending")), ReconcileMeaning::Unknown),
        rule("200", None, ReconcileMeaning::Done),
        rule("404", Some(("/error", "no_such_order")), ReconcileMeaning::NotDone),
    ];
    HttpSettings {
        receipt_pointer: Some("/broker_order_id".to_owned()),
        reconcile: Some(ReconcileSettings { url, rules }),
        ..settings("http://127.0.0.1:1/orders".to_owned())
    }
}

fn found_in(asked: ReconcileOutcome) -> (ReconcileMeaning, Note) {
    match asked {
        ReconcileOutcome::Done { note } => (ReconcileMeaning::Done, note),
        ReconcileOutcome::NotDone { note } => (ReconcileMeaning::NotDone, note),
        ReconcileOutcome::Unknown { note } => (ReconcileMeaning::Unknown, note),
    }
}

#[tokio::test]
async fn lookup_response_is_judged_only_by_rules() {
    for (status, body, found) in [
        ("200 OK", r#"{"status":"accepted","broker_order_id":"b-1"}"#, ReconcileMeaning::Done),
        (
            "200 OK",
            r#"{"status":"accepted","idempotency_key":"k","broker_order_id":"b-1"}"#,
            ReconcileMeaning::Done,
        ),
        ("200 OK", r#"{"status":"accepted","idempotency_key":"another"}"#, ReconcileMeaning::Unknown),
        ("200 OK", r#"{"status":"pending"}"#, ReconcileMeaning::Unknown),
        ("404 Not Found", r#"{"error":"no_such_order"}"#, ReconcileMeaning::NotDone),
        (
            "404 Not Found",
            r#"{"error":"no_such_order","idempotency_key":"another"}"#,
            ReconcileMeaning::Unknown,
        ),
        // A wrong path says nothing about the order.
        ("404 Not Found", "<h1>nginx</h1>", ReconcileMeaning::Unknown),
        ("500 Oops", "", ReconcileMeaning::Unknown),
        ("301 Moved", "", ReconcileMeaning::Unknown),
    ] {
        let receiver = Receiver::answering(json(status, body)).await;
        let http = resolved(&asking(receiver.url("/orders/by-key/{key}")));
        let (answer, note) = found_in(asked(&http, "k").await);
        assert_eq!(answer, found, "{status} {body}");
        assert_eq!(note.status.map(|number| number.to_string()).as_deref(), status.split(' ').next());
        let is_done = answer == ReconcileMeaning::Done;
        assert_eq!(note.receipt.as_deref() == Some("b-1"), is_done, "{status} {body}");
        assert_eq!(receiver.seen().len(), 1);
    }
}

#[tokio::test]
async fn lookup_response_is_noted_and_not_logged() {
    let receiver = Receiver::answering(json("200 OK", r#"{"account":"s3cret"}"#)).await;
    let answer = asked(&resolved(&asking(receiver.url("/{key}"))), "k").await;
    assert_eq!(format!("{answer:?}"), "Done { status: Some(200), .. }");
    let note = found_in(answer).1;
    let body = note.response.and_then(|response| response.body).expect("kept");
    assert_eq!((body.as_slice(), note.excerpt), (&br#"{"account":"s3cret"}"#[..], None));
}

#[tokio::test]
async fn promised_echo_is_required_only_for_done() {
    for (status, body, found) in [
        ("200 OK", r#"{"status":"accepted"}"#, ReconcileMeaning::Unknown),
        ("200 OK", r#"{"status":"accepted","idempotency_key":"k"}"#, ReconcileMeaning::Done),
        ("404 Not Found", r#"{"error":"no_such_order"}"#, ReconcileMeaning::NotDone),
    ] {
        let receiver = Receiver::answering(json(status, body)).await;
        let http = resolved(&HttpSettings { echoes_key: true, ..asking(receiver.url("/{key}")) });
        assert_eq!(found_in(asked(&http, "k").await).0, found, "{status} {body}");
    }
}

#[tokio::test]
async fn lookup_has_key_in_url_and_header() {
    let receiver = Receiver::answering(json("200 OK", "{}")).await;
    let mut settings = asking(receiver.url("/orders/by-key/{key}?full=1"));
    settings.headers = vec![("Authorization".to_owned(), "Bearer t0ken".to_owned())];
    asked(&resolved(&settings), "a/b?c#d").await;
    let request = receiver.seen().remove(0);
    assert_eq!(request.line, "GET /orders/by-key/a%2Fb%3Fc%23d?full=1 HTTP/1.1");
    assert_eq!(request.field("Idempotency-Key"), Some("a/b?c#d"));
    assert_eq!(request.field("Authorization"), Some("Bearer t0ken"));
    assert!(request.body.is_empty());
}

#[tokio::test]
async fn dot_key_is_not_looked_up() {
    let receiver = Receiver::answering(json("200 OK", "{}")).await;
    let http = resolved(&asking(receiver.url("/orders/{key}")));
    assert_eq!(found_in(asked(&http, "..").await).0, ReconcileMeaning::Unknown);
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn failed_lookup_is_unknown_and_ends_in_time() {
    let receiver = Receiver::start(|_, _| ServerAction::Silence).await;
    let mut settings = asking(receiver.url("/{key}"));
    settings.response_timeout = SHORT;
    let (found, note) = found_in(asked(&resolved(&settings), "k").await);
    assert_eq!(
        (found, note.excerpt.as_deref()),
        (ReconcileMeaning::Unknown, Some("no response arrived in time"))
    );

    let nowhere = asking("http://127.0.0.1:1/{key}".to_owned());
    assert_eq!(found_in(asked(&resolved(&nowhere), "k").await).0, ReconcileMeaning::Unknown);
}

#[tokio::test]
async fn destination_without_reconcile_has_no_lookup() {
    let http = resolved(&settings("http://127.0.0.1:1/".to_owned()));
    assert!(!http.can_reconcile());
    assert_eq!(found_in(asked(&http, "k").await).0, ReconcileMeaning::Unknown);
    assert!(resolved(&asking("http://127.0.0.1:1/{key}".to_owned())).can_reconcile());
}
