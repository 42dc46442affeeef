//! Guarantees in the wrong member, and hop chains that nobody owns.

use crate::set::{ADAPTER, BFF, BROWSER, GATEWAY, Set, finds};

#[test]
fn members_next_to_enabled_must_agree() {
    let beside = |member: &str| format!("/http/idempotency/{member}");
    for (member, text) in [
        ("require_key", "false"),
        ("owner", r#""gateway""#),
        ("on_missing_key", r#"{ "action": "generate" }"#),
        ("fingerprint", r#"{ "include": ["body_hash"] }"#),
        ("inflight_lock", "{}"),
        ("response_replay", r#"{ "on_duplicate_after_success": "execute" }"#),
        ("storage", r#"{ "ttl": { "minutes": 5 } }"#),
        ("storage", r#""none""#),
        ("validate_only", r#"{ "require_header_when_state_changing": false }"#),
        ("validate_only", r#"{ "on_missing_key": "generate" }"#),
    ] {
        finds(GATEWAY, &beside(member), text, &["ICH-B078"]);
    }
    for (member, text) in [
        ("require_key", "true"),
        ("owner", r#""adapter""#),
        ("storage", r#"{ "ttl": { "days": 3 } }"#),
        ("validate_only", r#"{ "require_header_when_state_changing": true }"#),
    ] {
        finds(GATEWAY, &beside(member), text, &[]);
    }
}

#[test]
fn validating_hop_declares_no_guarantees() {
    for (member, text) in [
        ("owner", r#""bff""#),
        ("storage", r#"{ "ttl": { "days": 1 } }"#),
        ("storage", r#""redis""#),
        ("response_replay", r#"{ "on_duplicate_after_success": "replay" }"#),
        ("require_key", "false"),
        ("on_missing_key", r#""generate""#),
        ("inflight_lock", "true"),
        ("enabled", r#"{ "storage": { "ttl": { "days": 1 } } }"#),
    ] {
        finds(BFF, &format!("/http/idempotency/{member}"), text, &["ICH-B078"]);
    }
    for (member, text) in [
        ("owner", r#""adapter""#),
        ("storage", r#""none""#),
        ("storage", "{}"),
        ("response_replay", "false"),
        ("require_key", "true"),
        ("enabled", r#"{ "owner": "adapter" }"#),
    ] {
        finds(BFF, &format!("/http/idempotency/{member}"), text, &[]);
    }
    // The same guarantee where nothing else is said about idempotency.
    finds(ADAPTER, "/http/idempotency", r#"{ "storage": { "ttl": { "days": 1 } } }"#, &["ICH-B078"]);
}

#[test]
fn hop_chain_without_an_owner_is_reported() {
    let hops = Set::starting().with(GATEWAY, "", "null").with(ADAPTER, "", "null");
    let found = hops.findings();
    let summary: Vec<_> =
        found.iter().map(|one| (one.rule.id, one.place.file.as_str(), one.what.as_str())).collect();
    let what = "only browser_to_bff and bff_to_gateway were checked, and none of them owns the outcome";
    assert_eq!(summary, [("ICH-B079", BFF, what)]);
    // One file alone is not a hop chain, and two about one boundary are not either.
    let alone = hops.clone().with(BROWSER, "", "null");
    assert_eq!(alone.broken(), [""; 0]);
    // If the adapter's file exists, it is an error that nobody owns.
    let unowned = Set::starting().with(GATEWAY, "", "null");
    assert_eq!(unowned.broken(), ["ICH-B072", "ICH-B075"]);
}
