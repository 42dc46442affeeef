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
fn timed_out_duplicate_is_reported_as_in_flight() {
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
fn disabled_lock_is_found() {
    each(
        "inflight_lock",
        &[
            (r#"{ "enabled": false, "status_on_lock_conflict": 202 }"#, "ICH-B042"),
            (r#"{ "enabled": true, "status_on_lock_conflict": 202 }"#, ""),
        ],
    );
}

#[test]
fn lock_conflict_has_the_status_of_a_timed_out_wait() {
    each(
        "inflight_lock/status_on_lock_conflict",
        &[("200", "ICH-B043"), ("201", "ICH-B043"), ("409", "ICH-B043"), ("503", "ICH-B043"), ("202", "")],
    );
}

#[test]
fn replay_has_the_status_of_the_first_response() {
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
fn conflict_needs_a_refusing_action_and_status() {
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
fn too_large_body_gets_a_final_refusal() {
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
fn missing_key_must_be_refused() {
    for file in [BROWSER, BFF] {
        let pointer = "/http/idempotency/validate_only/on_missing_key";
        finds(file, pointer, r#"{ "action": "fail_open", "status": 400 }"#, &["ICH-B003"]);
        finds(file, pointer, r#"{ "action": "reject", "status": 200 }"#, &["ICH-B003"]);
        finds(file, pointer, r#"{ "action": "reject_with_428", "status": 400 }"#, &["ICH-B003"]);
        finds(file, pointer, r#""reject_400_missing_key""#, &[]);
    }
    each("on_missing_key", &[(r#"{ "action": "reject", "status": 200 }"#, "ICH-B003")]);
}
