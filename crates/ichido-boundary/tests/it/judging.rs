//! What the rules find, and what they ignore, beyond each rule's example.

use ichido_boundary::{Boundary, check, hop_chains};

use super::set::{ADAPTER, BFF, BROWSER, ENABLED, GATEWAY, Set, finds};
use super::{read, wild};

/// The findings of a set as `rule file pointer`.
fn summaries(set: &Set) -> Vec<String> {
    let all = set.findings();
    all.iter().map(|one| format!("{} {}{}", one.rule.id, one.place.file, one.place.pointer)).collect()
}

#[test]
fn known_failure_modes_are_found() {
    // SPEC C12: completed upstream, retry without a key, weak fingerprint, differing replays, TTL too short.
    let owner = r#"{ "mode": "enabled", "enabled": { "require_key": true } }"#;
    assert!(Set::starting().with(BFF, "/http/idempotency", owner).broken().contains(&"ICH-B070"));
    finds(BROWSER, "/http/retry/retry_gate", "{}", &["ICH-B020"]);
    finds(GATEWAY, &format!("{ENABLED}/fingerprint/include"), r#"["idempotency-key"]"#, &["ICH-B030"]);
    let replay = format!("{ENABLED}/response_replay/on_duplicate_after_success");
    finds(GATEWAY, &replay, r#""return_current_state""#, &["ICH-B041"]);
    finds(GATEWAY, &format!("{ENABLED}/storage/ttl"), r#"{ "hours": 23 }"#, &["ICH-B051"]);
}

#[test]
fn files_in_use_today_are_checked() {
    let files = wild();
    let findings = check(&files);
    let ids: Vec<String> =
        findings.iter().map(|one| format!("{} {}", one.rule.id, one.place.pointer)).collect();
    let expected = [
        "ICH-B043 /http/idempotency/enabled/inflight_lock/status_on_lock_conflict",
        "ICH-B033 /http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/number_representation",
        "ICH-B017 /cors/exposed_headers/items",
        "ICH-B076 /http/methods/allowed",
        "ICH-B013 /headers/inbound/allow",
        "ICH-B013 /headers/bff_outbound/allow",
        "ICH-B013 /headers/bff_outbound/allow",
        "ICH-B013 /headers/gateway_inbound/allow",
        "ICH-B013 /headers/gateway_outbound/allow",
        "ICH-B013 /headers/adapter_inbound/allow",
        // They lose the key, or do not redact cookies.
        "ICH-B090 /observability/redaction",
        "ICH-B090 /observability/redaction",
        "ICH-B090 /observability/redaction",
    ];
    let mut found = ids.clone();
    let mut expected = expected.map(str::to_owned).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn browser_may_retry_more_statuses_than_a_hop() {
    finds(BROWSER, "/http/retry/retry_on_status", "[408, 429, 500, 501, 599]", &[]);
    finds(BROWSER, "/http/retry/retry_on_status", "[409]", &["ICH-B022"]);
    finds(BROWSER, "/http/retry/retry_on_status", "[202]", &["ICH-B022"]);
    for status in ["408", "429", "500", "501", "505"] {
        finds(BFF, "/http/retry/retry_on_status", &format!("[{status}]"), &["ICH-B022"]);
    }
    finds(BFF, "/http/retry/apply_to_methods", r#"["GET", "POST"]"#, &["ICH-B021"]);
}

#[test]
fn disabled_retry_is_not_checked() {
    let off =
        r#"{ "mode": "none", "max_attempts": 99, "apply_to_methods": ["PUT"], "retry_on_status": [400] }"#;
    finds(BFF, "/http/retry", off, &[]);
    finds(BFF, "/http/retry", "{}", &[]);
    finds(BFF, "/http/retry/max_attempts", "0", &["ICH-B023"]);
    finds(BFF, "/http/retry/max_attempts", "11", &["ICH-B023", "ICH-B062"]);
}

#[test]
fn invalid_retry_methods_count_as_state_changing() {
    let methods = "/http/retry/apply_to_methods";
    for text in [r#"["*"]"#, r#"["post"]"#, r#"["GET", ""]"#] {
        finds(BROWSER, methods, text, &["ICH-B023"]);
        let ungated =
            Set::starting().with(BROWSER, methods, text).with(BROWSER, "/http/retry/retry_gate", "{}");
        assert_eq!(ungated.broken(), ["ICH-B020", "ICH-B023"], "{text}");
    }
    let reads = Set::starting().with(BROWSER, methods, r#"["GET", "HEAD"]"#);
    assert_eq!(reads.with(BROWSER, "/http/retry/retry_gate", "{}").broken(), [""; 0]);
}

#[test]
fn either_spelling_of_the_key_is_accepted_if_consistent() {
    let mut set = Set::starting();
    let spell = |text: String| text.replace("idempotency-key", "x-idempotency-key");
    for (_, value) in &mut set.0 {
        *value = super::set::value(&spell(value.to_string()));
    }
    assert_eq!(summaries(&set), [""; 0]);
    // Only one list names the other spelling: nothing arrives.
    let allow = r#"["authorization", "content-type", "ichido-hops", "traceparent", "Idempotency-Key"]"#;
    let lost = set.with(GATEWAY, "/headers/adapter_inbound/allow", allow);
    assert_eq!(summaries(&lost), ["ICH-B012 gateway_to_adapter.json/headers/adapter_inbound/allow"]);
}

#[test]
fn prefix_with_a_star_matches_every_header_with_it() {
    let allow = r#"["authorization", "content-*", "I*", "trace*"]"#;
    finds(BFF, "/headers/bff_outbound/allow", allow, &[]);
    finds(BFF, "/headers/bff_outbound/drop", r#"["idem*"]"#, &["ICH-B010"]);
    finds(BROWSER, "/cors/allowed_headers/items", r#"["*"]"#, &["ICH-B011"]);
}

#[test]
fn a_list_that_drops_the_key_is_found_whatever_it_allows() {
    let set = Set::starting().with(BFF, "/headers/gateway_inbound/drop", r#"["IDEMPOTENCY-KEY"]"#);
    assert_eq!(summaries(&set), ["ICH-B010 bff_to_gateway.json/headers/gateway_inbound/drop"]);
}

#[test]
fn ietf_and_stripe_profiles_are_accepted() {
    let profile = |conflict: u16, running: u16| {
        let mut set = Set::starting()
            .with(
                GATEWAY,
                &format!("{ENABLED}/conflict_rule/same_key_different_fingerprint/status"),
                &conflict.to_string(),
            )
            .with(GATEWAY, &format!("{ENABLED}/inflight_lock/status_on_lock_conflict"), &running.to_string());
        let pointer = format!("{ENABLED}/response_replay/on_duplicate_while_inflight/on_timeout/status");
        set = set.with(GATEWAY, &pointer, &running.to_string());
        set.broken()
    };
    assert_eq!(profile(409, 202), [""; 0]);
    assert_eq!(profile(422, 409), [""; 0]);
    assert_eq!(profile(409, 409), ["ICH-B043"]);
    assert_eq!(profile(422, 202), ["ICH-B043"]);
    // Stripe marks replays differently, so a page must be able to read that mark.
    assert_eq!(profile(400, 409), ["ICH-B017"]);
}

#[test]
fn timeouts_must_cover_the_next_hop() {
    // 2 × 7450 + 100 is all that one attempt of the browser has.
    finds(BFF, "/http/timeouts/upstream_timeout_ms", "7450", &[]);
    finds(BFF, "/http/timeouts/upstream_timeout_ms", "7451", &["ICH-B062"]);
    finds(GATEWAY, "/http/timeouts/upstream_timeout_ms", "7000", &[]);
    finds(GATEWAY, "/http/timeouts/upstream_timeout_ms", "7001", &["ICH-B062"]);
    // The wait of 2000 and the call of 4000 must leave something.
    finds(GATEWAY, "/http/timeouts/upstream_timeout_ms", "6001", &[]);
    finds(GATEWAY, "/http/timeouts/upstream_timeout_ms", "6000", &["ICH-B063"]);
    finds(ADAPTER, "/http/timeouts/upstream_timeout_ms", "4500", &["ICH-B063"]);
    let wait = format!("{ENABLED}/response_replay/on_duplicate_while_inflight/wait_up_to_ms");
    finds(GATEWAY, &wait, "2500", &["ICH-B063"]);
    finds(GATEWAY, &wait, "60001", &["ICH-B042", "ICH-B063"]);
    // Without a time for each attempt, the first may use all of it; a single attempt may.
    finds(BROWSER, "/http/timeouts", r#"{ "client_timeout_ms": 60000 }"#, &["ICH-B060"]);
    finds(GATEWAY, "/http/timeouts", r#"{ "client_timeout_ms": 6500 }"#, &[]);
    // 3 × 15000 + 1000 + 2000 in total.
    finds(BROWSER, "/http/timeouts/client_timeout_ms", "48000", &[]);
    finds(BROWSER, "/http/timeouts/client_timeout_ms", "47999", &["ICH-B061"]);
}

#[test]
fn a_finding_about_two_boundaries_names_both() {
    let set = Set::starting().with(BFF, "/http/timeouts/upstream_timeout_ms", "7451");
    let what =
        "all attempts of bff_to_gateway take up to 15002 ms, but one attempt of browser_to_bff has 15000 ms";
    assert_eq!(set.findings().iter().map(|one| one.what.as_str()).collect::<Vec<_>>(), [what]);
    let forged = Set::starting().with(ADAPTER, "/identity", r#"{ "source": "header", "name": "accept" }"#);
    let what = "browser_to_bff lets a browser send `accept`, with which adapter identifies the caller";
    assert_eq!(forged.findings().iter().map(|one| one.what.as_str()).collect::<Vec<_>>(), [what]);
}

#[test]
fn errors_come_before_warnings() {
    let set = Set::starting()
        .with(ADAPTER, "/observability", "{}")
        .with(GATEWAY, "/http/timeouts", "{}")
        .with(BFF, "/headers/bff_outbound/drop", r#"["ichido-hops", "idempotency-key"]"#);
    let found: Vec<String> = summaries(&set).iter().map(|one| one.replace(".json/", " /")).collect();
    let expected = [
        "ICH-B010 bff_to_gateway /headers/bff_outbound/drop",
        "ICH-B060 gateway_to_adapter /http/timeouts/upstream_timeout_ms",
        "ICH-B090 adapter /observability/redaction",
        "ICH-B013 bff_to_gateway /headers/bff_outbound/drop",
    ];
    assert_eq!(found, expected);
}

#[test]
fn timeouts_fit_across_a_missing_file() {
    let far =
        Set::starting().with(BFF, "", "null").with(GATEWAY, "/http/timeouts/upstream_timeout_ms", "15001");
    assert_eq!(far.broken(), ["ICH-B062", "ICH-B075"]);
}

#[test]
fn numbers_of_any_size_are_added_without_overflow() {
    let greatest = "9007199254740991";
    finds(BFF, "/http/timeouts/upstream_timeout_ms", greatest, &["ICH-B062"]);
    let set = Set::starting()
        .with(BFF, "/http/retry/max_attempts", greatest)
        .with(BFF, "/http/retry/backoff_ms", greatest)
        .with(BFF, "/http/timeouts/upstream_timeout_ms", greatest)
        .with(
            GATEWAY,
            &format!("{ENABLED}/storage/ttl"),
            &format!(r#"{{ "days": {greatest}, "hours": {greatest} }}"#),
        );
    assert_eq!(set.broken(), ["ICH-B023", "ICH-B050", "ICH-B062"]);
}

#[test]
fn minimum_ttl_depends_on_the_class() {
    let pointer = "/operations/profiles.update/ttl";
    finds(ADAPTER, pointer, r#"{ "hours": 1 }"#, &[]);
    let pointer = "/operations/orders.create/ttl";
    finds(ADAPTER, pointer, r#"{ "hours": 1 }"#, &["ICH-B051"]);
    finds(ADAPTER, pointer, r#"{ "hours": 1, "reason": "  " }"#, &["ICH-B051"]);
    finds(ADAPTER, pointer, r#"{ "hours": 1, "reason": "void at the close" }"#, &[]);
    finds(ADAPTER, pointer, r#"{ "minutes": 5, "reason": "void at the close" }"#, &["ICH-B052"]);
    // A browser that retries for two days outlives a key that is kept for one.
    let patient = Set::starting().with(BROWSER, "/http/timeouts/client_timeout_ms", "172800000").with(
        GATEWAY,
        &format!("{ENABLED}/storage/ttl"),
        r#"{ "days": 1 }"#,
    );
    assert_eq!(patient.broken(), ["ICH-B052"]);
}

#[test]
fn browser_cannot_set_the_identity_header() {
    let header = r#"{ "source": "header", "name": "X-User-Id" }"#;
    let set = Set::starting().with(ADAPTER, "/identity", header);
    let lists = [
        (BFF, "bff_outbound"),
        (BFF, "gateway_inbound"),
        (GATEWAY, "gateway_outbound"),
        (GATEWAY, "adapter_inbound"),
    ];
    assert_eq!(set.broken(), ["ICH-B084"], "it is dropped on the way");
    assert_eq!(set.findings().len(), lists.len());
    let allow =
        r#"["authorization", "content-type", "idempotency-key", "ichido-hops", "traceparent", "x-user-id"]"#;
    let set =
        lists.iter().fold(set, |set, (file, list)| set.with(file, &format!("/headers/{list}/allow"), allow));
    assert_eq!(set.broken(), [""; 0], "the BFF drops what the browser sends, and sets its own");
    let forged = set.clone().without(BROWSER, "/headers");
    assert_eq!(summaries(&forged), ["ICH-B083 adapter.json/identity/name"]);
    let of_one = set.with(ADAPTER, "/identity", r#"{ "source": "single", "name": "the shop" }"#);
    assert_eq!(of_one.broken(), [""; 0]);
}

#[test]
fn guarantees_next_to_the_mode_are_checked_there() {
    let mut set = Set::starting();
    let idempotency = &mut set.file(GATEWAY)["http"]["idempotency"];
    let guarantees = idempotency["enabled"].take();
    let members = idempotency.as_object_mut().expect("an object");
    members.remove("enabled");
    members.extend(guarantees.as_object().expect("an object").clone());
    assert_eq!(summaries(&set), [""; 0]);
    let fewer = set.without(GATEWAY, "/http/idempotency/owner").without(GATEWAY, "/http/idempotency/storage");
    let mut found = summaries(&fewer);
    found.sort();
    let file = "gateway_to_adapter.json/http/idempotency";
    assert_eq!(found, [format!("ICH-B050 {file}/storage/ttl"), format!("ICH-B071 {file}/owner")]);
}

#[test]
fn read_needs_no_guarantees() {
    let read = r#"{ "methods": ["GET"], "path": "/v1/orders", "class": "read" }"#;
    finds(ADAPTER, "/operations/orders.list", read, &[]);
}

#[test]
fn single_file_is_checked_alone() {
    for (index, (file, value)) in Set::starting().0.into_iter().enumerate() {
        let alone = Set(vec![(file, value)]);
        // The adapter's file alone has nobody that completes idempotency; the one before it says who does.
        let expected: &[&str] = if index == 3 { &["ICH-B072"] } else { &[] };
        assert_eq!(alone.broken(), expected, "{:#?}", alone.findings());
    }
    let empty = ["browser_to_bff", "bff_to_gateway", "gateway_to_adapter", "adapter"]
        .map(|name| check(&[read(&format!("{{\"boundary\":\"{name}\"}}"))]).len());
    assert_eq!(empty, [4, 4, 4, 5], "mode, methods, time, logs; for the adapter owner, identity, operations");
}

#[test]
fn hop_chains_are_grouped_by_folder() {
    let ours = Set::starting().read().expect("they are readable");
    let placed = |folder: &str| {
        let texts = ours.iter().map(|file| (format!("{folder}/{}", file.file()), file.text()));
        texts
            .map(|(file, text)| Boundary::read(&file, text.as_bytes()).expect("it is readable"))
            .collect::<Vec<_>>()
    };
    let mut all = placed("a");
    all.extend(placed("b"));
    assert_eq!(hop_chains(&all).len(), 2);
    assert_eq!(check(&all), []);
    // In one folder, two files about one boundary are one too many.
    all.extend(
        placed("b")
            .into_iter()
            .take(1)
            .map(|file| Boundary::read("b/z.json", file.text().as_bytes()).expect("it is readable")),
    );
    let found: Vec<_> = check(&all).into_iter().map(|one| (one.rule.id, one.place.file, one.what)).collect();
    let what = "b/browser_to_bff.json is about the same boundary".to_owned();
    assert_eq!(found, [("ICH-B074", "b/z.json".to_owned(), what)]);
    // Files from anywhere form one hop chain, as long as each boundary appears once.
    let spread: Vec<Boundary> = ours
        .iter()
        .enumerate()
        .map(|(index, file)| {
            Boundary::read(&format!("{index}/x.json"), file.text().as_bytes()).expect("it is readable")
        })
        .collect();
    assert_eq!(hop_chains(&spread).len(), 1);
}
