//! Two versions of the files: what loosens is reported; what tightens or only moves is not.

mod table;

use ichido_boundary::{Boundary, Finding, STARTING, loosened};
use proptest::prelude::*;
use serde_json::Value;

use super::dialect;
use super::guarantees::{pattern, pointers};
use super::set::Set;
use table::{ChangeEffect, Loosening, table};

const BROWSER: &str = "browser_to_bff.json";
const BFF: &str = "bff_to_gateway.json";
const GATEWAY: &str = "gateway_to_adapter.json";
const ADAPTER: &str = "adapter.json";

#[track_caller]
fn findings(old: &Set, new: &Set) -> Vec<Finding> {
    let read = |set: &Set| set.read().unwrap_or_else(|error| panic!("{error}"));
    loosened(&read(old), &read(new))
}

/// The rules that a change from one set to another loosens, in order, each once.
#[track_caller]
fn rules(old: &Set, new: &Set) -> Vec<&'static str> {
    let mut ids: Vec<&str> = findings(old, new).iter().map(|finding| finding.rule.id).collect();
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
fn each_member_has_a_loosening_change_or_a_reason() {
    let members: Vec<String> = dialect::members().into_iter().map(|(member, _)| member).collect();
    let listed: Vec<String> = table().map(|(member, _)| member).collect();
    assert_eq!(listed, members);
    for (member, effect) in table() {
        if let ChangeEffect::Free(reason) = effect {
            assert!(reason.ends_with('.'), "{member}: {reason}");
        }
    }
}

#[test]
fn each_change_of_the_table_shows_old_and_new_value() {
    let mut missed = Vec::new();
    for (member, effect) in table() {
        let ChangeEffect::Loosens(Loosening { rule, file, pointer, from, to, says }) = effect else {
            continue;
        };
        let pointer = pointer.unwrap_or(&member);
        assert_eq!(pattern(pointer), member, "the change is about another member");
        let starting = Set::starting();
        let old = from.map_or_else(|| starting.clone(), |text| starting.clone().with(file, pointer, text));
        let new = match to {
            Some(text) => starting.with(file, pointer, text),
            None => starting.without(file, pointer),
        };
        let found = findings(&old, &new);
        let texts: Vec<String> =
            found.iter().map(|finding| format!("{} {}", finding.rule.id, finding.what)).collect();
        let is_told = |finding: &Finding| finding.rule.id == rule && finding.what.contains(says);
        if !found.iter().any(is_told) {
            missed.push(format!("{member}: {rule} {says}, but: {texts:#?}"));
        }
        for Finding { rule, help, .. } in &found {
            assert!(
                help.ends_with(&format!("with a reason: --allow {}=REASON.", rule.id)),
                "{member}: {help}"
            );
        }
        assert_eq!(findings(&new, &new), [], "{member}: what is so already is no change");
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// What can be removed from some part of the starting set without loosening anything, and why that is right.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "Fewer attempts, or none, cannot repeat the work.",
        &[
            "/http/retry",
            "/http/retry/apply_to_methods",
            "/http/retry/max_attempts",
            "/http/retry/mode",
            "/http/retry/retry_on_network_error",
            "/http/retry/retry_on_status",
        ],
    ),
    (
        "Without the first wait, the second applies before every retry, and it is longer.",
        &["/http/retry/backoff_ms"],
    ),
    ("A method less passes.", &["/http/methods/allowed"]),
    ("Without a list it protects every state-changing method.", &["/operations/*/methods"]),
    ("More of the body is hashed.", &["/http/idempotency/enabled/fingerprint/body_hash/input/leave_out"]),
    ("Without it only the page's own origin calls.", &["/cors"]),
    (
        "A missing member has the value that was removed.",
        &[
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/unicode_normalization",
            "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/status",
            "/http/idempotency/enabled/inflight_lock/status_on_lock_conflict",
            "/observability/request_id",
            "/observability/traceparent",
        ],
    ),
    (
        "The status beside it says that it is refused, or in flight.",
        &[
            "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint/action",
            "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/action",
            "/http/idempotency/enabled/on_missing_key/action",
            "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout/action",
            "/http/idempotency/validate_only/on_missing_key/action",
        ],
    ),
    (
        "Clients depend on the status; the code is for people and logs.",
        &[
            "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint/error_code",
            "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/error_code",
            "/http/idempotency/enabled/on_missing_key/error_code",
            "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout/error_code",
            "/http/idempotency/validate_only/on_missing_key/error_code",
        ],
    ),
];

#[test]
fn each_removal_loosens_or_has_a_reason() {
    let mut unseen = Vec::new();
    for (file, value) in Set::starting().0 {
        for pointer in pointers(&value) {
            let fewer = Set::starting().without(&file, &pointer);
            // An unreadable file is refused before it is compared.
            let Ok(new) = fewer.read() else { continue };
            let old = Set::starting().read().unwrap_or_else(|error| panic!("{error}"));
            if loosened(&old, &new).is_empty() {
                unseen.push(pattern(&pointer));
            }
        }
    }
    unseen.sort();
    unseen.dedup();
    let mut listed: Vec<&str> = HARMLESS.iter().flat_map(|(_, removals)| *removals).copied().collect();
    listed.sort_unstable();
    assert_eq!(unseen, listed);
}

/// The same value with its lists reversed, where their order means nothing.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let turned = members.iter().map(|(name, value)| {
                let is_ordered = name == "backoff_ms";
                (name.clone(), if is_ordered { value.clone() } else { turned(value) })
            });
            Value::Object(turned.collect())
        }
        Value::Array(elements) => elements.iter().rev().map(turned).collect(),
        other => other.clone(),
    }
}

#[test]
fn order_of_members_and_files_does_not_matter() {
    // A set of values has its members sorted; the texts have them in reading order.
    let sorted = Set::starting().read().unwrap_or_else(|error| panic!("{error}"));
    let read = |(file, text): &(&str, &str)| {
        Boundary::read(file, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    };
    let written: Vec<Boundary> = STARTING.iter().rev().map(read).collect();
    assert_ne!(sorted[0].text().find("\"http\""), written[3].text().find("\"http\""));
    assert_eq!(loosened(&sorted, &written), []);
    assert_eq!(loosened(&written, &sorted), []);
}

proptest! {
    #[test]
    fn reordering_loosens_nothing_even_in_broken_files(
        file in 0_usize..4,
        at in any::<prop::sample::Index>(),
        again in any::<prop::sample::Index>(),
    ) {
        let mut set = Set::starting();
        for at in [at, again] {
            let (file, value) = set.0[file].clone();
            let all = pointers(&value);
            let fewer = set.clone().without(&file, at.get(&all).as_str());
            if fewer.read().is_ok() {
                set = fewer;
            }
        }
        let other = Set(set.0.iter().rev().map(|(file, value)| (file.clone(), turned(value))).collect());
        prop_assert_eq!(findings(&set, &other), []);
    }
}

#[test]
fn the_same_files_loosen_nothing() {
    assert_eq!(rules(&Set::starting(), &Set::starting()), [""; 0]);
}

#[test]
fn each_removed_guarantee_is_reported() {
    let changes = [
        (BFF, "/http/retry/retry_on_status", "[500, 502, 503, 504]", "ICH-B022"),
        (BFF, "/http/retry/apply_to_methods", r#"["POST", "PATCH"]"#, "ICH-B021"),
        (BROWSER, "/http/methods/state_changing", r#"["POST", "PUT", "PATCH"]"#, "ICH-B004"),
        (BFF, "/http/idempotency/mode", r#""disabled""#, "ICH-B001"),
        (BFF, "/http/idempotency/validate_only/require_header_when_state_changing", "false", "ICH-B002"),
        (BFF, "/http/idempotency/validate_only/on_missing_key", r#""generate""#, "ICH-B003"),
        (BFF, "/http/idempotency/echo_key", "false", "ICH-B073"),
        (BFF, "/http/retry/retry_gate", "{}", "ICH-B020"),
        (BROWSER, "/headers/inbound/drop", r#"["x-tenant-id", "x-user-id", "idempotency-key"]"#, "ICH-B010"),
        (BROWSER, "/headers/inbound/drop", r#"["x-tenant-id", "x-user-id", "Ichido-Hops"]"#, "ICH-B013"),
        (BROWSER, "/headers/inbound/drop", r#"["x-tenant-id", "x-user-id", "traceparent"]"#, "ICH-B014"),
        (GATEWAY, "/http/idempotency/enabled/storage/ttl", r#"{ "days": 2 }"#, "ICH-B052"),
        (
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/leave_out",
            r#"["/trace_id", "/amount"]"#,
            "ICH-B033",
        ),
        (
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/max_body_bytes_to_hash",
            "2097152",
            "ICH-B035",
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
        (ADAPTER, "/operations/profiles.update/keeps_keys_for", r#"{ "days": 30 }"#, "ICH-B082"),
        (BFF, "/observability/redaction", r#"["authorization", "headers"]"#, "ICH-B090"),
        (BFF, "/observability/redaction/never_redact", r#"["cookie"]"#, "ICH-B090"),
    ];
    for (file, pointer, text, rule) in changes {
        loosens(file, pointer, text, &[rule]);
    }
}

#[test]
fn a_change_can_loosen_more_than_one_guarantee() {
    // More attempts, and with them more time than the hop above has.
    loosens(BFF, "/http/retry/max_attempts", "3", &["ICH-B023", "ICH-B062"]);
    // The owner is gone, and the key is no longer required.
    loosens(
        GATEWAY,
        "/http/idempotency",
        r#"{ "mode": "validate_only", "echo_key": true }"#,
        &["ICH-B002", "ICH-B003", "ICH-B072"],
    );
    // The caller's identity differs; `identity` in the fingerprint follows it.
    loosens(ADAPTER, "/identity/name", r#""email""#, &["ICH-B080"]);
    // The call is repeated, and nothing says for how long the service knows the key.
    loosens(ADAPTER, "/operations/orders.create/guarantee", r#""keyed""#, &["ICH-B081"]);
    let fewer = Set::starting().without(ADAPTER, "/operations/profiles.update");
    assert_eq!(rules(&Set::starting(), &fewer), ["ICH-B081"]);
}

#[test]
fn removing_a_list_of_headers_loosens() {
    let open = Set::starting().without(BROWSER, "/headers/inbound");
    assert_eq!(rules(&Set::starting(), &open), ["ICH-B015", "ICH-B083"]);
    let answers =
        r#"{ "allow": ["content-type", "idempotency-key", "idempotency-replayed", "idempotency-status"] }"#;
    loosens(GATEWAY, "/headers/response", answers, &["ICH-B016"]);
}

#[test]
fn lists_of_headers_are_compared_by_their_effect() {
    let list = |allow: &str, drop: &str| format!(r#"{{ "allow": [{allow}], "drop": [{drop}] }}"#);
    let change = |was: &str, is: &str| {
        let old = Set::starting().with(BFF, "/headers/extra", was);
        let new = Set::starting().with(BFF, "/headers/extra", is);
        findings(&old, &new).into_iter().map(|finding| finding.what).collect::<Vec<_>>()
    };
    let common = r#""idempotency-key", "x-idempotency-key", "ichido-hops", "traceparent", "authorization""#;
    let with = |more: &str| format!("{common}{more}");
    let plain = list(common, "");
    // One more name, another case, a name that a wildcard covered: nothing is lost, and nothing is opened.
    assert_eq!(change(&plain, &list(&with(r#", "x-app-id""#), "")), [""; 0]);
    assert_eq!(change(&plain, &list(&common.to_uppercase(), "")), [""; 0]);
    assert_eq!(change(&plain, &list(common, r#""x-user-id""#)), [""; 0]);
    let wild = list(&with(r#", "x-app-*""#), "");
    assert_eq!(
        change(&plain, &wild),
        ["`x-app-*`: was not allowed, now is, with every header that has this prefix"]
    );
    assert_eq!(change(&wild, &list(&with(r#", "x-*""#), "")).len(), 1, "a wider wildcard is another");
    assert_eq!(
        change(&wild, &list(&with(r#", "x-app-a*""#), "")),
        ["`x-app-*`: was passed on, now not allowed"]
    );
    let dropping = list(common, r#""x-user-*""#);
    assert_eq!(change(&dropping, &list(common, r#""X-User-*""#)), [""; 0]);
    assert_eq!(change(&dropping, &list(common, r#""x-u*""#)), [""; 0], "more is dropped");
    assert_eq!(
        change(&dropping, &list(common, r#""x-user-id""#)),
        ["`x-user-*`: was dropped, now no longer listed in `drop`"]
    );
}

#[test]
fn renaming_a_direction_loosens_nothing() {
    let list = Set::starting().file(BROWSER)["headers"]["inbound"].to_string();
    let renamed =
        |name: &str| Set::starting().with(BROWSER, "/headers", &format!(r#"{{ "{name}": {list} }}"#));
    assert_eq!(rules(&Set::starting(), &renamed("bff_inbound")), [""; 0]);
    assert_eq!(rules(&renamed("bff_inbound"), &Set::starting()), [""; 0]);
    let elsewhere = rules(&Set::starting(), &renamed("bff_outbound"));
    assert!(elsewhere.contains(&"ICH-B083"), "what comes in is not looked at any more: {elsewhere:?}");
}

#[test]
fn ttl_of_an_operation_is_compared_with_the_default() {
    let ttl = "/operations/profiles.update/ttl";
    // Without its own member, 3 days apply.
    loosens(ADAPTER, ttl, r#"{ "days": 2 }"#, &["ICH-B052"]);
    loosens(ADAPTER, ttl, r#"{ "days": 3 }"#, &[]);
    let own = Set::starting().with(ADAPTER, ttl, r#"{ "days": 2 }"#);
    assert_eq!(rules(&own, &Set::starting()), [""; 0], "3 days are longer");
}

#[test]
fn same_violation_in_another_hop_chain_is_new() {
    let both = |orders: &str, search: &str| {
        let files = [("orders", orders), ("search", search)].map(|(folder, redaction)| {
            let set = Set::starting().with(BFF, "/observability/redaction", redaction);
            let text = serde_json::to_string(set.clone().file(BFF)).expect("a value has a text");
            Boundary::read(&format!("{folder}/{BFF}"), text.as_bytes())
                .unwrap_or_else(|error| panic!("{error}"))
        });
        files.to_vec()
    };
    let (good, less) = (r#"["authorization", "cookie"]"#, r#"["authorization"]"#);
    let found = loosened(&both("[]", good), &both("[]", less));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].place.file, format!("search/{BFF}"));
}

#[test]
fn removed_file_is_reported() {
    let fewer = Set::starting().with(BFF, "", "null");
    assert_eq!(rules(&Set::starting(), &fewer), ["ICH-B075"]);
}

#[test]
fn tightening_is_not_loosening() {
    let tight = Set::starting()
        .with(BFF, "/http/retry", r#"{ "mode": "disabled" }"#)
        .with(BROWSER, "/http/retry/max_attempts", "2")
        .with(BROWSER, "/http/retry/backoff_ms", "[1500, 2000]")
        .with(BROWSER, "/http/methods/allowed", r#"["GET", "POST"]"#)
        .with(BROWSER, "/headers/inbound/drop", r#"["x-t*", "x-u*"]"#)
        .with(
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/number_representation",
            r#""exact_no_exponent""#,
        )
        .with(GATEWAY, "/http/idempotency/enabled/storage/ttl", r#"{ "days": 30 }"#)
        .with(GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/input/leave_out", "[]")
        .with(ADAPTER, "/operations/profiles.update/class", r#""irreversible""#)
        .with(ADAPTER, "/operations/profiles.update/guarantee", r#""none""#);
    assert_eq!(rules(&Set::starting(), &tight), [""; 0]);
}

#[test]
fn old_violations_are_not_reported_as_loosened() {
    let wrong = Set::starting().with(BFF, "/http/retry/retry_on_status", "[429, 502]");
    let still_wrong = wrong.clone().with(BFF, "/http/retry/retry_on_status", "[502, 429]");
    assert_eq!(rules(&wrong, &still_wrong), [""; 0]);
}

#[test]
fn hop_chains_are_compared_with_their_own_old_files() {
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
