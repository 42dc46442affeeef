//! A team's own files: their shapes are understood, and what they say applies.
// SPEC C3, C8.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_boundary::{
    Boundary, Crossing, Finding, Mode, Name, Party, RequestId, Severity, Traffic, check, owner,
};
use ichido_core::json::Numbers;

use super::read;
use super::set::{BFF, BROWSER, ENABLED, GATEWAY, Set, finds};

fn team() -> [Boundary; 4] {
    [
        read(include_str!("team/browser_to_bff.json")),
        read(include_str!("team/bff_to_gateway.json")),
        read(include_str!("team/gateway_to_adapter.json")),
        read(include_str!("team/adapter_to_external.json")),
    ]
}

#[test]
fn a_teams_own_files_have_no_errors() {
    let findings = check(&team());
    let errors: Vec<&Finding> = findings.iter().filter(|one| one.rule.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    // The wait that is never used, and nothing else about retries or headers.
    let mut warnings: Vec<&str> =
        findings.iter().map(|one| one.rule.id).filter(|id| *id != "ICH-B090").collect();
    warnings.dedup();
    assert_eq!(warnings, ["ICH-B025"], "{findings:#?}");
}

#[test]
fn file_named_adapter_to_external_is_the_adapters_own() {
    let [.., adapter] = team();
    assert_eq!((adapter.name(), adapter.name().sender()), (Name::Adapter, Party::Adapter));
    assert!(adapter.operations.is_some());
}

#[test]
fn required_key_in_detail_is_the_key_rule_of_the_hop() {
    let [browser, bff, gateway, _] = team();
    for file in [&browser, &bff, &gateway] {
        let idempotency = &file.http.idempotency;
        assert!(idempotency.requires_key(), "{}", file.name());
        let reaction = idempotency.on_missing_key().expect("it is declared");
        assert_eq!(
            (reaction.status, reaction.error_code.as_deref()),
            (Some(400), Some("IDEMPOTENCY_KEY_REQUIRED"))
        );
        // Two of the files list the methods only in the requirement.
        assert!(file.http.methods.changes_state("DELETE") && !file.http.methods.changes_state("GET"));
    }
    assert_eq!(browser.http.idempotency.mode, Some(Mode::ValidateOnly));
    assert_eq!(owner(&team()).map(Boundary::name), Some(Name::GatewayToAdapter));
}

#[test]
fn mode_that_requires_the_key_needs_no_further_member_but_can_be_contradicted() {
    let text = |more: &str| {
        format!(
            r#"{{"boundary":"bff_to_gateway","http":{{"idempotency":{{"mode":"require_key_for_state_changing"{more}}}}}}}"#
        )
    };
    assert!(read(&text("")).http.idempotency.requires_key());
    let off = r#","validate_only":{"require_header_when_state_changing":false}"#;
    assert!(!read(&text(off)).http.idempotency.requires_key());
    let plain =
        r#"{"boundary":"bff_to_gateway","http":{"idempotency":{"mode":"validate_only","require_key":true}}}"#;
    assert!(read(plain).http.idempotency.requires_key());
    for none in [r"false", r"[]"] {
        let object = format!(r#"{{ "require_header_on_route_operations": {none} }}"#);
        finds(GATEWAY, &format!("{ENABLED}/require_key"), &object, &["ICH-B002"]);
    }
}

#[test]
fn requirement_must_cover_the_state_changing_methods_and_known_operations() {
    let required = |members: &str| {
        let at = format!("{ENABLED}/require_key");
        let set = Set::starting().with(GATEWAY, &at, &format!("{{ {members} }}"));
        set.findings().into_iter().map(|one| (one.rule.id, one.place.pointer, one.what)).collect::<Vec<_>>()
    };
    let all = r#"["POST", "PUT", "PATCH", "DELETE"]"#;
    assert_eq!(required(&format!(r#""apply_to_methods": {all}"#)), []);
    let found = required(r#""apply_to_methods": ["POST", "PUT", "PATCH", "GET"]"#);
    let texts: Vec<&str> = found.iter().map(|(_, _, what)| what.as_str()).collect();
    assert_eq!(texts.len(), 2, "{found:?}");
    assert!(texts.contains(&"DELETE changes state, but is not listed"), "{found:?}");
    assert!(found.iter().all(|(rule, ..)| *rule == "ICH-B007"), "{found:?}");
    let found = required(r#""require_header_on_route_operations": ["orders.create", "orders.refund"]"#);
    let pointer = format!("{ENABLED}/require_key/require_header_on_route_operations/1");
    assert_eq!(found, [("ICH-B007", pointer, "the adapter has no operation `orders.refund`".to_owned())]);
    let other = r#""missing_key": { "action": "reject", "status": 400, "error_code": "other" }"#;
    assert_eq!(required(other).iter().map(|one| one.0).collect::<Vec<_>>(), ["ICH-B078"], "two responses");
}

#[test]
fn hop_by_hop_list_is_dropped_from_requests_and_responses_at_both_ends() {
    let [browser, bff, ..] = team();
    for (file, party) in [(&browser, Party::Bff), (&bff, Party::Bff), (&bff, Party::Gateway)] {
        for traffic in [Traffic::Requests, Traffic::Responses] {
            for crossing in [Crossing::Arriving, Crossing::Leaving] {
                assert!(
                    !file.passes(party, crossing, traffic, "X-Debug-Token"),
                    "{} {traffic:?}",
                    file.name()
                );
            }
        }
    }
    finds(BFF, "/headers/drop_hop_by_hop", r#"["connection", "Traceparent"]"#, &["ICH-B014"]);
    finds(BFF, "/headers/drop_hop_by_hop", r#"["Retry-After"]"#, &["ICH-B016"]);
    finds(BFF, "/headers/drop_hop_by_hop", r#"["keep alive"]"#, &["ICH-B000"]);
}

#[test]
fn pipeline_order_is_that_of_proxies_or_refused() {
    for kept in [
        r"[]",
        r#"["normalize_names", "drop_hop_by_hop", "allowlist", "denylist", "validate_key", "inject"]"#,
        r#"["allow", "drop", "strip-hop-by-hop", "set_request_id", "propagate_trace"]"#,
    ] {
        finds(BFF, "/headers/pipeline_order", kept, &[]);
    }
    for other in
        [r#"["inject", "allow"]"#, r#"["encrypt"]"#, r#"["drop", "set", "verify", "Drop_Hop_By_Hop"]"#]
    {
        finds(BFF, "/headers/pipeline_order", other, &["ICH-B019"]);
    }
}

#[test]
fn outbound_at_the_browser_is_what_the_bff_answers_with() {
    let [browser, ..] = team();
    let answers = |header| browser.passes(Party::Bff, Crossing::Leaving, Traffic::Responses, header);
    assert!(answers("Location") && !answers("Server"));
    let sends = |header| browser.passes(Party::Bff, Crossing::Leaving, Traffic::Requests, header);
    assert!(sends("x-anything"), "the list is not about requests");
    finds(BROWSER, "/headers/outbound", r#"{ "allow": ["content-type", "location"] }"#, &["ICH-B016"]);
    let other = r#"{ "allow": ["accept", "content-type"] }"#;
    let broken = Set::starting().with(BFF, "/headers/outbound", other).broken();
    assert!(broken.contains(&"ICH-B010"), "elsewhere it is what the sender sends: {broken:?}");
}

#[test]
fn browsers_request_id_is_new_unless_the_file_trusts_it() {
    let handled = |boundary: &str, request_id: &str| {
        let text = format!(r#"{{"boundary":"{boundary}","observability":{{{request_id}}}}}"#);
        let file = read(&text);
        file.observability.request_id_at(file.name())
    };
    for (request_id, at_browser, elsewhere) in [
        ("", RequestId::New, RequestId::Keep),
        (r#""request_id":{}"#, RequestId::New, RequestId::Keep),
        (
            r#""request_id":{"header":"x-request-id","generate_if_missing":true}"#,
            RequestId::New,
            RequestId::Keep,
        ),
        (r#""request_id":{"trust_inbound":true}"#, RequestId::Keep, RequestId::Keep),
        (r#""request_id":"keep""#, RequestId::Keep, RequestId::Keep),
        (r#""request_id":{"trust_inbound":false}"#, RequestId::New, RequestId::New),
        (r#""request_id":"new""#, RequestId::New, RequestId::New),
    ] {
        assert_eq!(handled("browser_to_bff", request_id), at_browser, "{request_id}");
        assert_eq!(handled("bff_to_gateway", request_id), elsewhere, "{request_id}");
    }
    for other in [r#"{ "header": "x-trace" }"#, r#"{ "generate_if_missing": false }"#] {
        finds(BFF, "/observability/request_id", other, &["ICH-B091"]);
    }
}

#[test]
fn every_wait_counts_towards_the_time_and_an_unused_one_is_found() {
    let [_, bff, ..] = team();
    let plan = bff.http.retry.plan().expect("it retries");
    assert_eq!(plan.wait_after(NonZeroU32::MIN), Some(Duration::ZERO));
    assert_eq!(plan.waits_in_all(), Duration::from_millis(200));
    let found = Set::starting().with(BFF, "/http/retry/backoff_ms", "[0, 200, 300]").findings();
    let told: Vec<(&str, &str)> = found.iter().map(|one| (one.rule.id, one.place.pointer.as_str())).collect();
    assert_eq!(told, [("ICH-B025", "/http/retry/backoff_ms/1"), ("ICH-B025", "/http/retry/backoff_ms/2")]);
    assert_eq!(found[0].what, "2 attempts need only 1 wait, so the wait of 200 ms is never used");
    // 2 × 7 s and 1.1 s do not fit into the 15 s of the browser, whether the second wait is used or not.
    finds(BFF, "/http/retry/backoff_ms", "[0, 1100]", &["ICH-B025", "ICH-B062"]);
}

#[test]
fn words_of_other_libraries_mean_the_same_canonical_form() {
    let file = team().into_iter().nth(2).expect("the gateway's");
    let rules = file.http.idempotency.enabled.fingerprint.body_hash.body_rules().expect("all are known");
    assert_eq!(rules.form.numbers, Numbers::ExactNoExponent);
}

#[test]
fn rules_that_change_what_is_equal_are_refused_all_at_once() {
    let at = format!("{ENABLED}/fingerprint/body_hash/input/encoding/rules");
    let rules = r#"{
        "object_member_order": "insertion", "number_representation": "float32", "array_order": "sorted",
        "string_encoding": "utf-16", "trim_strings": true, "case_insensitive_keys": true, "null_members": "dropped"
    }"#;
    let findings = Set::starting().with(GATEWAY, &at, rules).findings();
    assert_eq!(findings.len(), 7, "{findings:#?}");
    assert!(findings.iter().all(|one| one.rule.id == "ICH-B033"), "{findings:#?}");
    for kept in [r#""preserve""#, r#""as_written""#] {
        finds(GATEWAY, &format!("{at}/array_order"), kept, &[]);
    }
    finds(GATEWAY, &format!("{at}/string_encoding"), r#""UTF-8""#, &[]);
    finds(GATEWAY, &format!("{at}/trim_strings"), "false", &[]);
    finds(GATEWAY, &format!("{at}/anything"), "false", &["ICH-B033"]);
}
