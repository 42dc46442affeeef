//! The meaning of responses: codes, conflicts, echoed keys, digests, and the order of rules.
// Spec: D7 to D10, D18.

use std::time::Duration;

use ichido::destination::http::{DeliveryRule, HttpSettings, ResponseMeaning};
use ichido_core::digest::Digest;
use ichido_core::verdict::{Advice, Effect, ErrorCode, NextStep, PaceReport, Safety};
use ichido_store::message::Note;

use super::tried::{conflict, order, outcome, resolved, settings, tried};
use http_for_tests::{Receiver, ServerAction, json, with};

/// A broker with its own rules.
// Spec: D18.
fn broker(receiver: &Receiver) -> HttpSettings {
    HttpSettings {
        echoes_key: true,
        receipt_pointer: Some("/broker_order_id".to_owned()),
        rules: vec![
            conflict("already_processed", ResponseMeaning::Processed),
            conflict("in_progress", ResponseMeaning::InProgress),
        ],
        ..settings(receiver.url("/orders"))
    }
}

#[tokio::test]
async fn every_status_gets_the_code_of_the_specification() {
    use Advice::{Accept, GiveUp, Retry};
    use Effect::{Done, NotDone, Unknown};
    for (status, code, effect, advice) in [
        ("200 OK", None, Done, Accept),
        ("201 Created", None, Done, Accept),
        ("204 No Content", None, Done, Accept),
        ("400 Bad Request", Some("BAD_REQUEST"), NotDone, GiveUp),
        ("404 Not Found", Some("BAD_REQUEST"), NotDone, GiveUp),
        ("410 Gone", Some("GONE"), NotDone, GiveUp),
        ("422 Unprocessable", Some("BAD_REQUEST"), NotDone, GiveUp),
        ("401 Unauthorized", Some("UNAUTHORIZED"), NotDone, GiveUp),
        ("403 Forbidden", Some("UNAUTHORIZED"), NotDone, GiveUp),
        ("408 Request Timeout", Some("NETWORK_TIMEOUT"), Unknown, Retry),
        ("425 Too Early", Some("NETWORK_TIMEOUT"), NotDone, Retry),
        ("429 Too Many Requests", Some("RATE_LIMITED"), NotDone, Retry),
        ("500 Internal Server Error", Some("BROKER_5XX"), Unknown, Retry),
        ("503 Service Unavailable", Some("BROKER_5XX"), Unknown, Retry),
        ("777 Whatever", Some("UNKNOWN"), Unknown, Retry),
    ] {
        let body = if status.starts_with("204") { "" } else { "{}" };
        let answer = if body.is_empty() { format!("HTTP/1.1 {status}\r\n\r\n") } else { json(status, body) };
        let receiver = Receiver::answering(answer).await;
        let http = resolved(&settings(receiver.url("/")));
        assert_eq!(outcome(&http, &order("k")).await, (code, effect, advice), "{status}");
        assert_eq!(receiver.seen().len(), 1, "{status}");
    }
}

/// A response that cannot be read without its encoding keeps it; one that was cut off says that it has more.
#[tokio::test]
async fn a_kept_response_has_its_encoding_and_says_whether_it_is_whole() {
    let gzip = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    for (fields, body, content_type, bytes, is_whole) in [
        (&gzip[..], "zip", "application/json; content-encoding=gzip", 3, true),
        (&gzip[..1], "{}", "application/json", 2, true),
        (&[("Content-Encoding", "identity")], "ok", "", 2, true),
        (&[], "0123456789abcdef", "", 10, false),
    ] {
        let receiver = Receiver::answering(with("200 OK", fields, body)).await;
        let settings = HttpSettings { max_response_bytes: 10, ..settings(receiver.url("/")) };
        let (_, note) = tried(&resolved(&settings), &order("k")).await;
        let response = note.response.expect("a response");
        assert_eq!((response.content_type.as_str(), response.bytes), (content_type, bytes));
        assert_eq!((response.is_whole, response.body.is_some()), (is_whole, is_whole), "{body}");
    }
}

#[tokio::test]
async fn a_429_says_how_long_to_wait_and_slows_the_pace() {
    let receiver = Receiver::answering(with("429 Too Many Requests", &[("Retry-After", "30")], "")).await;
    let (verdict, _) = tried(&resolved(&settings(receiver.url("/"))), &order("k")).await;
    assert_eq!(verdict.hint, Some(Duration::from_secs(30)));
    assert_eq!(verdict.pace_report(), Some(PaceReport::Throttled));
}

#[tokio::test]
async fn conflict_rules_give_409_its_meaning() {
    use Effect::{Done, Unknown};
    for (body, code, effect, advice) in [
        (
            r#"{"error":"already_processed","idempotency_key":"k","broker_order_id":"b-1"}"#,
            Some("CONFLICT_PROCESSED"),
            Done,
            Advice::AcceptAsProcessed,
        ),
        // Processed, but not tied to our key, or tied to another: not a success.
        (r#"{"error":"already_processed"}"#, Some("KEY_NOT_ECHOED"), Unknown, Advice::GiveUp),
        (
            r#"{"error":"already_processed","idempotency_key":"another"}"#,
            Some("KEY_NOT_ECHOED"),
            Unknown,
            Advice::Reconcile,
        ),
        (r#"{"error":"in_progress","idempotency_key":"k"}"#, Some("IN_PROGRESS"), Unknown, Advice::Retry),
        (r#"{"error":"position_closed"}"#, Some("BAD_REQUEST"), Unknown, Advice::GiveUp),
        ("no JSON", Some("BAD_REQUEST"), Unknown, Advice::GiveUp),
    ] {
        let receiver = Receiver::answering(json("409 Conflict", body)).await;
        let http = resolved(&broker(&receiver));
        assert_eq!(outcome(&http, &order("k")).await, (code, effect, advice), "{body}");
    }
}

#[tokio::test]
async fn conflict_counted_as_sent_has_receipt_and_no_digest() {
    let body = r#"{"error":"already_processed","idempotency_key":"k","broker_order_id":"b-1"}"#;
    let receiver = Receiver::answering(json("409 Conflict", body)).await;
    let (_, note) = tried(&resolved(&broker(&receiver)), &order("k")).await;
    assert_eq!((note.result_digest, note.receipt.as_deref()), (None, Some("b-1")));
    assert_eq!(note.status, Some(409));
}

#[tokio::test]
async fn success_needs_echoed_key_where_promised() {
    const SENT: (Option<&str>, Effect, Advice) = (None, Effect::Done, Advice::Accept);
    const PARKED: (Option<&str>, Effect, Advice) =
        (Some("KEY_NOT_ECHOED"), Effect::Unknown, Advice::Reconcile);
    // The key may be in there.
    const UNREAD: (Option<&str>, Effect, Advice) = (Some("UNKNOWN"), Effect::Unknown, Advice::Retry);
    let ours = r#"{"idempotency_key":"k"}"#;
    let others = r#"{"idempotency_key":"another"}"#;
    let with_field = |value, body| with("200 OK", &[("Idempotency-Key", value)], body);
    for (answer, promised, not_promised) in [
        (json("200 OK", ours), SENT, SENT),
        (with_field("k", ""), SENT, SENT),
        (with_field("\"k\"", ours), SENT, SENT),
        (json("200 OK", "{}"), PARKED, SENT),
        (json("200 OK", r#"{"idempotency_key":null}"#), PARKED, SENT),
        (json("200 OK", "no JSON"), UNREAD, SENT),
        // A response with another key is not ours, whether or not an echo was promised.
        (json("200 OK", others), PARKED, PARKED),
        (json("200 OK", r#"{"idempotency_key":7}"#), PARKED, PARKED),
        (with_field("another", ""), PARKED, PARKED),
        (with_field("k", others), PARKED, PARKED),
        (with_field("another", ours), PARKED, PARKED),
    ] {
        let receiver = Receiver::answering(answer.clone()).await;
        for (echoes_key, expected) in [(true, promised), (false, not_promised)] {
            let http = resolved(&HttpSettings { echoes_key, ..settings(receiver.url("/")) });
            assert_eq!(outcome(&http, &order("k")).await, expected, "promised: {echoes_key}\n{answer}");
        }
    }
}

#[tokio::test]
async fn response_about_another_key_leaves_no_receipt() {
    let receiver =
        Receiver::answering(json("200 OK", r#"{"idempotency_key":"another","broker_order_id":"b-1"}"#)).await;
    let (_, note) = tried(&resolved(&broker(&receiver)), &order("k")).await;
    assert_eq!((note.receipt, note.result_digest), (None, None));
}

#[tokio::test]
async fn result_digest_is_canonical_and_receipt_is_stored() {
    let spellings = [
        r#"{"broker_order_id":"b-1","accepted_at":"2027-01-15T08:00:00Z","status":"accepted","fills":[],"idempotency_key":"k"}"#,
        r#"{ "idempotency_key": "k", "fills": [], "status": "accepted", "accepted_at": "2027-01-15T08:00:00Z", "broker_order_id": "b-1" }"#,
    ];
    let receiver =
        Receiver::start(move |before, _| ServerAction::Answer(json("200 OK", spellings[before]))).await;
    let http = resolved(&broker(&receiver));
    let (_, first) = tried(&http, &order("k")).await;
    let (_, second) = tried(&http, &order("k")).await;
    assert_eq!(first.receipt.as_deref(), Some("b-1"));
    assert_eq!((first.status, first.code), (Some(200), None));
    let body = |note: &Note| note.response.as_ref().and_then(|response| response.body.clone());
    assert_eq!(body(&first).as_deref(), Some(spellings[0].as_bytes()), "kept as it was sent");
    assert_ne!(body(&first), body(&second));
    assert_eq!(first.excerpt, None, "a success is not an error");
    assert!(first.result_digest.is_some());
    assert_eq!(first.result_digest, second.result_digest);
}

#[tokio::test]
async fn result_without_json_is_digested_as_bytes() {
    for (media_type, body) in
        [("text/plain", "done: 7"), ("application/json", "{broken"), ("text/plain", "{ }")]
    {
        let receiver = Receiver::answering(with("200 OK", &[("Content-Type", media_type)], body)).await;
        let (_, note) = tried(&resolved(&settings(receiver.url("/"))), &order("k")).await;
        assert_eq!(note.result_digest, Some(Digest::of_bytes(body.as_bytes())), "{body}");
    }
}

#[tokio::test]
async fn a_receipt_may_be_a_number() {
    let receiver = Receiver::answering(json("200 OK", r#"{"id":90071992547409931}"#)).await;
    let settings = HttpSettings { receipt_pointer: Some("/id".to_owned()), ..settings(receiver.url("/")) };
    let (_, note) = tried(&resolved(&settings), &order("k")).await;
    assert_eq!(note.receipt.as_deref(), Some("90071992547409931"));
}

#[tokio::test]
async fn start_of_long_response_is_stored() {
    let body = format!("\"{}\"", "ä".repeat(5_000));
    let receiver = Receiver::answering(json("400 Bad Request", &body)).await;
    let (_, note) = tried(&resolved(&settings(receiver.url("/"))), &order("k")).await;
    let excerpt = note.excerpt.expect("a reason");
    assert!(
        excerpt.starts_with("400 Bad Request: \"ää") && excerpt.chars().count() < 600,
        "{}",
        excerpt.len()
    );
}

#[tokio::test]
async fn oversized_response_is_judged_by_status() {
    for (status, expected) in [
        ("200 OK", (None, Effect::Done, Advice::Accept)),
        ("400 Bad Request", (Some("BAD_REQUEST"), Effect::NotDone, Advice::GiveUp)),
    ] {
        // It announces a terabyte and sends a part of it.
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 1000000000000\r\n\r\n");
        let receiver =
            Receiver::start(move |_, _| ServerAction::AnswerAndHold(format!("{head}{}", "x".repeat(5_000))))
                .await;
        let settings = HttpSettings { max_response_bytes: 4_096, ..settings(receiver.url("/")) };
        let http = resolved(&settings);
        let (verdict, note) = tried(&http, &order("k")).await;
        assert_eq!((verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice), expected);
        assert_eq!(note.result_digest, None, "a partial response has no digest");
        receiver.until_closed(1).await;
    }
    // Exactly at the limit, it is complete.
    let receiver = Receiver::answering(with("200 OK", &[], &"x".repeat(4_096))).await;
    let settings = HttpSettings { max_response_bytes: 4_096, ..settings(receiver.url("/")) };
    let (_, note) = tried(&resolved(&settings), &order("k")).await;
    assert!(note.result_digest.is_some());
}

/// A success whose response a setting must read and cannot: truncated, or another content.
// Spec: D9.
#[tokio::test]
async fn unreadable_success_is_retried_where_safe_and_else_parked() {
    let rules = || {
        vec![DeliveryRule {
            status: "200".to_owned(),
            at: Some(("/status".to_owned(), "rejected".to_owned())),
            means: ResponseMeaning::BadRequest,
        }]
    };
    let receipt = || Some("/broker_order_id".to_owned());
    let long = format!("{{\"broker_order_id\":\"{}\"}}", "b".repeat(5_000));
    for body in ["<html>Sign in</html>", r#"{"broker_order_id":"b-1"#, "", &long] {
        let receiver = Receiver::answering(json("200 OK", body)).await;
        let plain = HttpSettings { max_response_bytes: 4_096, ..settings(receiver.url("/")) };
        for (name, settings) in [
            ("echoes_key", HttpSettings { echoes_key: true, ..plain.clone() }),
            ("receipt_pointer", HttpSettings { receipt_pointer: receipt(), ..plain.clone() }),
            ("rules", HttpSettings { rules: rules(), ..plain.clone() }),
        ] {
            let (verdict, note) = tried(&resolved(&settings), &order("k")).await;
            assert_eq!(
                (verdict.code, verdict.effect),
                (Some(ErrorCode::Unknown), Effect::Unknown),
                "{name}: {body}"
            );
            for (safety, next) in [
                (Safety::Idempotent, NextStep::Retry),
                (Safety::Keyed, NextStep::Retry),
                (Safety::None, NextStep::Reconcile),
            ] {
                assert_eq!(verdict.next(safety, Effect::NotDone), next, "{name}: {body}");
            }
            assert!(note.excerpt.is_some_and(|why| why.contains(name)), "it says which setting");
            assert_eq!((note.response, note.receipt, note.result_digest), (None, None, None));
        }
        // Without a setting that reads it, the status is enough.
        let (verdict, _) = tried(&resolved(&plain), &order("k")).await;
        assert_eq!((verdict.code, verdict.advice), (None, Advice::Accept), "{body}");
    }
    let receiver = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n".to_owned()).await;
    let http = resolved(&HttpSettings { receipt_pointer: receipt(), ..settings(receiver.url("/")) });
    assert_eq!(
        outcome(&http, &order("k")).await,
        (None, Effect::Done, Advice::Accept),
        "it has no content to read"
    );
}

#[tokio::test]
async fn rules_of_destination_apply_first_in_order() {
    let receiver = Receiver::answering(json("503 Busy", r#"{"code":17,"final":true}"#)).await;
    let rule = |status: &str, at: Option<(&str, &str)>, means| DeliveryRule {
        status: status.to_owned(),
        at: at.map(|(pointer, text)| (pointer.to_owned(), text.to_owned())),
        means,
    };
    for (rules, code, effect) in [
        (vec![], "BROKER_5XX", Effect::Unknown),
        (vec![rule("503", None, ResponseMeaning::NotDone)], "BROKER_5XX", Effect::NotDone),
        (
            vec![rule("500-599", Some(("/code", "17")), ResponseMeaning::RateLimited)],
            "RATE_LIMITED",
            Effect::NotDone,
        ),
        (
            vec![rule("503", Some(("/final", "true")), ResponseMeaning::BadRequest)],
            "BAD_REQUEST",
            Effect::NotDone,
        ),
        (
            vec![rule("503", Some(("/final", "false")), ResponseMeaning::BadRequest)],
            "BROKER_5XX",
            Effect::Unknown,
        ),
        (
            vec![
                rule("503", None, ResponseMeaning::Unauthorized),
                rule("503", None, ResponseMeaning::NotDone),
            ],
            "UNAUTHORIZED",
            Effect::NotDone,
        ),
    ] {
        let http = resolved(&HttpSettings { rules, ..settings(receiver.url("/")) });
        let (verdict, _) = tried(&http, &order("k")).await;
        assert_eq!((verdict.code.map(ErrorCode::as_str), verdict.effect), (Some(code), effect));
    }
}

#[tokio::test]
async fn in_flight_response_is_never_an_outcome() {
    let answer = with("202 Accepted", &[("Idempotency-Status", "processing")], "");
    let receiver = Receiver::answering(answer).await;
    let rules = vec![DeliveryRule { status: "202".to_owned(), at: None, means: ResponseMeaning::Sent }];
    let http = resolved(&HttpSettings { rules, ..settings(receiver.url("/")) });
    assert_eq!(outcome(&http, &order("k")).await, (Some("IN_PROGRESS"), Effect::Unknown, Advice::Retry));
}
