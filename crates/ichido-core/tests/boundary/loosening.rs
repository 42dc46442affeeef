//! Two versions of the files: what loosens is named, what tightens or moves nothing is not.

use ichido_core::boundary::{Boundary, loosened};

use super::set::Set;

const BROWSER: &str = "browser_to_bff.json";
const BFF: &str = "bff_to_gateway.json";
const GATEWAY: &str = "gateway_to_adapter.json";
const ADAPTER: &str = "adapter.json";

/// The rules that a change from one set to another loosens, in order, each once.
#[track_caller]
fn rules(old: &Set, new: &Set) -> Vec<&'static str> {
    let read = |set: &Set| set.read().unwrap_or_else(|error| panic!("{error}"));
    let mut ids: Vec<&str> = loosened(&read(old), &read(new)).iter().map(|finding| finding.rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[track_caller]
fn loosens(file: &str, pointer: &str, text: &str, expected: &[&str]) {
    let changed = Set::starting().with(file, pointer, text);
    assert_eq!(rules(&Set::starting(), &changed), expected, "{file}{pointer}: {text}");
}

#[test]
fn the_same_files_loosen_nothing() {
    assert_eq!(rules(&Set::starting(), &Set::starting()), [""; 0]);
}

#[test]
fn each_guarantee_that_is_cut_is_named() {
    let changes = [
        (BFF, "/http/retry/retry_on_status", "[500, 502, 503, 504]", "ICH-B022"),
        (BFF, "/http/retry/apply_to_methods", r#"["POST", "PATCH"]"#, "ICH-B021"),
        (BROWSER, "/http/methods/state_changing", r#"["POST", "PUT", "PATCH"]"#, "ICH-B004"),
        (BFF, "/http/idempotency/mode", r#""disabled""#, "ICH-B001"),
        (BFF, "/http/idempotency/validate_only/require_header_when_state_changing", "false", "ICH-B002"),
        (BFF, "/http/idempotency/validate_only/on_missing_key", r#""generate""#, "ICH-B003"),
        (BFF, "/http/idempotency/echo_key", "false", "ICH-B073"),
        (BFF, "/http/retry/retry_gate", "{}", "ICH-B020"),
        (BROWSER, "/headers/inbound/allow", r#"["content-type", "ichido-hops", "traceparent"]"#, "ICH-B010"),
        (
            BROWSER,
            "/headers/inbound/allow",
            r#"["content-type", "idempotency-key", "traceparent"]"#,
            "ICH-B013",
        ),
        (
            BROWSER,
            "/headers/inbound/allow",
            r#"["content-type", "idempotency-key", "ichido-hops"]"#,
            "ICH-B014",
        ),
        (GATEWAY, "/http/idempotency/enabled/storage/ttl", r#"{ "days": 2 }"#, "ICH-B052"),
        (
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/leave_out",
            r#"["/trace_id", "/amount"]"#,
            "ICH-B033",
        ),
        (
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding",
            r#"{ "type": "jcs" }"#,
            "ICH-B034",
        ),
        (
            GATEWAY,
            "/http/idempotency/enabled/response_replay/response_headers_subset_allowlist",
            r#"["content-type"]"#,
            "ICH-B044",
        ),
        (ADAPTER, "/operations/orders.create/ttl", r#"{ "days": 5 }"#, "ICH-B052"),
        (ADAPTER, "/operations/orders.create/class", r#""mutate""#, "ICH-B081"),
        (ADAPTER, "/operations/orders.create/path", r#""/v2/orders""#, "ICH-B081"),
        (ADAPTER, "/operations/profiles.update/methods", r#"["PUT"]"#, "ICH-B081"),
        (ADAPTER, "/operations/profiles.update/upstream_keeps_keys_for", r#"{ "days": 30 }"#, "ICH-B082"),
        (BFF, "/observability/redaction", r#"["authorization", "idempotency-key", "headers"]"#, "ICH-B090"),
    ];
    for (file, pointer, text, rule) in changes {
        loosens(file, pointer, text, &[rule]);
    }
}

#[test]
fn a_change_can_loosen_more_than_one_guarantee() {
    // More tries, and with them more time than the hop above has.
    loosens(BFF, "/http/retry/max_attempts", "3", &["ICH-B023", "ICH-B062"]);
    // The owner is gone, and the key is not required any more.
    loosens(
        GATEWAY,
        "/http/idempotency",
        r#"{ "mode": "validate_only", "echo_key": true }"#,
        &["ICH-B002", "ICH-B003", "ICH-B072"],
    );
    // Who asks is another, and not in the fingerprint.
    loosens(ADAPTER, "/identity/name", r#""email""#, &["ICH-B030", "ICH-B080"]);
    // The call is repeated, and nobody says for how long the service knows the key.
    loosens(ADAPTER, "/operations/orders.create/effect", r#""keyed""#, &["ICH-B081"]);
    let fewer = Set::starting().without(ADAPTER, "/operations/profiles.update");
    assert_eq!(rules(&Set::starting(), &fewer), ["ICH-B081"]);
}

#[test]
fn a_list_that_is_taken_away_lets_more_through() {
    let open = Set::starting().without(BROWSER, "/headers/inbound");
    assert_eq!(rules(&Set::starting(), &open), ["ICH-B015", "ICH-B083"]);
    let answers =
        r#"{ "allow": ["content-type", "idempotency-key", "idempotency-replayed", "idempotency-status"] }"#;
    loosens(GATEWAY, "/headers/response", answers, &["ICH-B016"]);
}

#[test]
fn a_file_that_is_gone_is_named() {
    let fewer = Set::starting().with(BFF, "", "null");
    assert_eq!(rules(&Set::starting(), &fewer), ["ICH-B075"]);
}

#[test]
fn tightening_is_not_loosening() {
    let tight = Set::starting()
        .with(BFF, "/http/retry", r#"{ "mode": "disabled" }"#)
        .with(BROWSER, "/http/retry/max_attempts", "2")
        .with(GATEWAY, "/http/idempotency/enabled/storage/ttl", r#"{ "days": 30 }"#)
        .with(GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/input/leave_out", "[]")
        .with(ADAPTER, "/operations/profiles.update/class", r#""irreversible""#)
        .with(ADAPTER, "/operations/profiles.update/effect", r#""opaque""#);
    assert_eq!(rules(&Set::starting(), &tight), [""; 0]);
}

#[test]
fn what_was_wrong_before_is_not_news() {
    let wrong = Set::starting().with(BFF, "/http/retry/retry_on_status", "[429, 502]");
    let still_wrong = wrong.clone().with(BFF, "/http/retry/retry_on_status", "[502, 429]");
    assert_eq!(rules(&wrong, &still_wrong), [""; 0]);
}

#[test]
fn files_of_several_ways_are_compared_with_their_own() {
    let text = |days: u32| {
        format!(
            "{{\"boundary\":\"gateway_to_adapter\",\"http\":{{\"idempotency\":{{\"mode\":\"enabled\",\"enabled\":{{\"storage\":{{\"ttl\":{{\"days\":{days}}}}}}}}}}}}}"
        )
    };
    let read = |file: &str, days| {
        Boundary::read(file, text(days).as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    };
    let old = [read("old/orders/g.json", 7), read("old/search/g.json", 3)];
    let new = [read("new/search/g.json", 3), read("new/orders/g.json", 4)];
    let found = loosened(&old, &new);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].rule.id, found[0].place.file.as_str()), ("ICH-B052", "new/orders/g.json"));
}
