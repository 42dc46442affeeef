use super::*;

fn judged(payload: &str) -> (Verdict, Note) {
    match judge("ORDERS", PublishOutcome::Replied(Bytes::copy_from_slice(payload.as_bytes()))) {
        DeliveryOutcome::Judged { verdict, note } => (verdict, note),
        DeliveryOutcome::Snoozed { .. } => panic!("it was made"),
    }
}

fn outcome(payload: &str) -> (Option<ErrorCode>, Effect, Advice) {
    let (verdict, _) = judged(payload);
    (verdict.code, verdict.effect, verdict.advice)
}

#[test]
fn acknowledgement_is_done_and_duplicate_was_done_before() {
    let (verdict, note) = judged(r#"{"stream":"ORDERS","seq":7}"#);
    assert_eq!((verdict.code, verdict.effect, verdict.advice), (None, Effect::Done, Advice::Accept));
    assert_eq!((note.receipt.as_deref(), note.result_digest.is_some()), (Some("ORDERS:7"), true));
    let (verdict, note) = judged(r#"{"stream":"ORDERS","seq":7,"duplicate":true}"#);
    let processed = (Some(ErrorCode::ConflictProcessed), Effect::Done, Advice::AcceptAsProcessed);
    assert_eq!((verdict.code, verdict.effect, verdict.advice), processed);
    assert_eq!((note.receipt.as_deref(), note.result_digest), (Some("ORDERS:7"), None));
}

#[test]
fn foreign_acknowledgement_leaves_effect_unknown() {
    let unusable = (Some(ErrorCode::AnswerUnusable), Effect::Unknown, Advice::Retry);
    for payload in ["", "ok", "{}", r#"{"stream":"ORDERS"}"#, r#"{"stream":"OTHER","seq":7}"#] {
        assert_eq!(outcome(payload), unusable, "{payload}");
    }
    let in_progress = (Some(ErrorCode::InProgress), Effect::Unknown, Advice::Retry);
    assert_eq!(outcome(r#"{"stream":"ORDERS","seq":0,"duplicate":true}"#), in_progress);
}

#[test]
fn stream_errors_are_classified() {
    use Advice::{GiveUp, Retry};
    use Effect::{NotDone, Unknown};
    use ErrorCode::{BadRequest, Broker5xx, InProgress, RateLimited};
    for (code, description, expected) in [
        (10054, "message size exceeds maximum allowed", (Some(BadRequest), NotDone, GiveUp)),
        (10097, "header size exceeds maximum allowed of 64k", (Some(BadRequest), NotDone, GiveUp)),
        (10077, "maximum messages exceeded", (Some(Broker5xx), NotDone, Retry)),
        (10077, "maximum bytes exceeded", (Some(Broker5xx), NotDone, Retry)),
        (10077, "error opening msg block file", (Some(Broker5xx), Unknown, Retry)),
        (10023, "insufficient resources", (Some(Broker5xx), NotDone, Retry)),
        (10060, "expected stream does not match", (Some(Broker5xx), NotDone, Retry)),
        (10158, "duplicate message id is in process", (Some(InProgress), Unknown, Retry)),
        (10167, "too many requests", (Some(RateLimited), NotDone, Retry)),
        (10999, "a word that nobody knows yet", (Some(Broker5xx), Unknown, Retry)),
    ] {
        let payload = format!(
            r#"{{"error":{{"code":503,"err_code":{code},"description":"{description}"}},"stream":"ORDERS","seq":0}}"#
        );
        assert_eq!(outcome(&payload), expected, "{code} {description}");
        let (_, note) = judged(&payload);
        assert_eq!(note.status, Some(503));
        assert!(note.excerpt.expect("it says why").contains(description));
    }
}
