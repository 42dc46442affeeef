//! Words and statuses that sound like a refusal, a replay or a wait, and are not.

use crate::set::{BFF, BROWSER, ENABLED, GATEWAY, finds};

/// Puts each text into a member of the owner's guarantees, and expects the rule, or nothing for `""`.
#[track_caller]
fn each(member: &str, cases: &[(&str, &str)]) {
    for (text, rule) in cases {
        let rules: &[&str] = if rule.is_empty() { &[] } else { &[rule] };
        finds(GATEWAY, &format!("{ENABLED}/{member}"), text, rules);
    }
}

#[test]
fn whoever_waited_in_vain_is_told_so_and_nothing_is_run() {
    each(
        "response_replay/on_duplicate_while_inflight/on_timeout",
        &[
            (r#"{ "action": "execute", "status": 202 }"#, "ICH-B042"),
            (r#"{ "action": "take_over", "status": 202 }"#, "ICH-B042"),
            (r#"{ "action": "processing_then_execute", "status": 202 }"#, "ICH-B042"),
            (r#"{ "action": "retry", "status": 202 }"#, "ICH-B042"),
            (r#"{ "action": "", "status": 202 }"#, "ICH-B042"),
            (r#"{ "action": "return_409", "status": 202 }"#, "ICH-B042"),
            (r#""execute_202""#, "ICH-B042"),
            (r#"{ "action": "processing" }"#, "ICH-B042"),
            (r#"{ "action": "In-Progress", "status": 202 }"#, ""),
            (r#""return_202_retry_later""#, ""),
            ("202", ""),
        ],
    );
}

#[test]
fn a_lock_that_is_switched_off_holds_nothing() {
    each(
        "inflight_lock",
        &[
            (r#"{ "enabled": false, "status_on_lock_conflict": 202 }"#, "ICH-B042"),
            (r#"{ "enabled": true, "status_on_lock_conflict": 202 }"#, ""),
        ],
    );
}

#[test]
fn whoever_meets_the_lock_is_answered_like_whoever_waited() {
    each(
        "inflight_lock/status_on_lock_conflict",
        &[("200", "ICH-B043"), ("201", "ICH-B043"), ("409", "ICH-B043"), ("503", "ICH-B043"), ("202", "")],
    );
}

#[test]
fn a_replay_has_the_first_answers_status() {
    each(
        "response_replay/on_duplicate_after_success",
        &[
            (r#"{ "action": "replay", "status": 200 }"#, "ICH-B041"),
            (r#""replay_with_status_200""#, "ICH-B041"),
            (r#""replay_or_execute""#, "ICH-B041"),
            (r#""return_current_response""#, "ICH-B041"),
            ("200", "ICH-B041"),
            (r#""Replay-Stored-Response""#, ""),
            (r#""return_original_status_and_body""#, ""),
        ],
    );
}

#[test]
fn a_conflict_is_refused_by_its_words_and_by_its_status() {
    each(
        "conflict_rule/same_key_different_fingerprint",
        &[
            (r#"{ "action": "fail_open", "status": 409 }"#, "ICH-B040"),
            (r#"{ "action": "reject_or_execute", "status": 409 }"#, "ICH-B040"),
            (r#"{ "action": "reject_with_422", "status": 409 }"#, "ICH-B040"),
            (r#"{ "error_code": "conflict" }"#, "ICH-B040"),
            (r#"{ "action": "REJECT_REQUEST", "status": 409 }"#, ""),
            (r#""reject_409_conflict""#, ""),
        ],
    );
    // A success is not a refusal, and no profile's status for one either.
    let status = format!("{ENABLED}/conflict_rule/same_key_different_fingerprint/status");
    finds(GATEWAY, &status, "200", &["ICH-B040", "ICH-B043"]);
}

#[test]
fn a_body_too_large_is_refused_for_good() {
    each(
        "fingerprint/body_hash/on_body_too_large",
        &[
            (r#"{ "action": "reject", "status": 200 }"#, "ICH-B035"),
            (r#"{ "action": "reject", "status": 202 }"#, "ICH-B035"),
            (r#"{ "action": "reject", "status": 503 }"#, "ICH-B035"),
            (r#"{ "action": "reject", "status": 429 }"#, "ICH-B035"),
            (r#"{ "action": "fail_open", "status": 413 }"#, "ICH-B035"),
            ("500", "ICH-B035"),
            ("{}", "ICH-B035"),
            (r#"{ "action": "reject", "status": 422 }"#, ""),
            (r#""reject_413_payload_too_large""#, ""),
        ],
    );
}

#[test]
fn a_missing_key_is_refused_and_not_let_through() {
    for file in [BROWSER, BFF] {
        let pointer = "/http/idempotency/validate_only/on_missing_key";
        finds(file, pointer, r#"{ "action": "fail_open", "status": 400 }"#, &["ICH-B003"]);
        finds(file, pointer, r#"{ "action": "reject", "status": 200 }"#, &["ICH-B003"]);
        finds(file, pointer, r#"{ "action": "reject_with_428", "status": 400 }"#, &["ICH-B003"]);
        finds(file, pointer, r#""reject_400_missing_key""#, &[]);
    }
    each("on_missing_key", &[(r#"{ "action": "reject", "status": 200 }"#, "ICH-B003")]);
}
