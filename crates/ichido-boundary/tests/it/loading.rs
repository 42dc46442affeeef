//! What loads, and what it then says.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_boundary::{Crossing, Guarantee, IdentitySource, Mode, Name, Party, Reaction, Traffic};
use ichido_core::json::Numbers;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, Profile};
use ichido_core::verdict::{AttemptResponse, NetworkFault};

use super::{read, wild};

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn files_in_use_today_load_unchanged() {
    let [browser, bff, gateway] = wild();
    assert_eq!([browser.name(), bff.name(), gateway.name()], Name::ALL[..3]);

    assert!(browser.http.methods.changes_state("DELETE") && !browser.http.methods.changes_state("GET"));
    assert!(browser.http.methods.allows("OPTIONS") && !bff.http.methods.allows("OPTIONS"));
    assert!(browser.http.idempotency.requires_key());
    let missing = browser.http.idempotency.on_missing_key().expect("it says so");
    assert!(missing.refuses());
    assert_eq!(
        (missing.status, missing.error_code.as_deref()),
        (Some(400), Some("IDEMPOTENCY_KEY_REQUIRED"))
    );
    assert!(browser.cors.is_some());
    assert_eq!(browser.http.timeouts.attempt_timeout(), Some(millis(15_000)));
    assert_eq!(browser.http.timeouts.total_timeout(), Some(millis(60_000)));

    let plan = bff.http.retry.plan().expect("it retries");
    assert_eq!((plan.attempts.get(), plan.needs_key, plan.waits_in_all()), (2, true, millis(150)));
    assert!(plan.covers("POST", &AttemptResponse::Network(NetworkFault::Timeout)));
    assert!(!plan.covers("PATCH", &AttemptResponse::Network(NetworkFault::Timeout)));
    assert!(gateway.http.retry.plan().is_none());
}

#[test]
fn guarantees_of_the_owner_are_read() {
    let [_, _, gateway] = wild();
    let idempotency = &gateway.http.idempotency;
    assert_eq!(idempotency.mode, Some(Mode::Enabled));
    assert!(idempotency.requires_key());
    let guarantees = &idempotency.enabled;
    assert_eq!(guarantees.in_flight_wait(), Some(millis(2_000)));
    assert_eq!(guarantees.profile(), Some(Profile::Ichido), "409 for a conflict, 202 in flight");
    assert_eq!(guarantees.ttl(), Some(Duration::from_hours(7 * 24)));
    assert!(guarantees.response_replay.on_duplicate_after_success.as_ref().is_some_and(Reaction::replays));
    let error = guarantees.fingerprint.body_hash.body_rules().expect_err("an unknown word");
    assert!(error.to_string().contains("\"shortest_roundtrip\""), "{error}");
}

#[test]
fn unknown_members_are_kept_and_ignored() {
    let [browser, bff, _] = wild();
    assert_eq!(bff.unknown_members().len(), 4, "{:?}", bff.unknown_members());
    assert!(bff.unknown_members().contains(&"/http/retry/jitter".to_owned()));
    assert!(browser.unknown_members().contains(&"/$schema".to_owned()));
    assert!(browser.text().contains("#web-platform"));
    let bare = read(r#"{"boundary":"adapter"}"#);
    assert_eq!(bare.unknown_members(), [""; 0]);
}

#[test]
fn guarantees_may_be_next_to_the_mode() {
    let nested = read(
        r#"{"boundary":"gateway_to_adapter","http":{"idempotency":{"mode":"enabled",
            "enabled":{"owner":"adapter","storage":{"ttl":{"days":3},"engine":"x"}}}}}"#,
    );
    let flat = read(
        r#"{"boundary":"gateway_to_adapter","http":{"idempotency":{"mode":"enabled",
            "owner":"adapter","storage":{"ttl":{"days":3},"engine":"x"},"table":"t"}}}"#,
    );
    assert_eq!(flat.http.idempotency.enabled, nested.http.idempotency.enabled);
    assert_eq!(nested.http.idempotency.enabled_pointer(), "/http/idempotency/enabled");
    assert_eq!(flat.http.idempotency.enabled_pointer(), "/http/idempotency");
    assert_eq!(flat.unknown_members(), ["/http/idempotency/table", "/http/idempotency/storage/engine"]);
}

#[test]
fn header_must_pass_the_lists_of_the_handling_party() {
    let file = read(
        r#"{"boundary":"bff_to_gateway","headers":{
            "bff_outbound":{"allow":["x-*","Accept"],"drop":["x-user-id"]},
            "inbound":{"allow":["accept","x-a"]},
            "response":{"drop":["server"]}}}"#,
    );
    let leaves_bff = |header| file.passes(Party::Bff, Crossing::Leaving, Traffic::Requests, header);
    assert!(leaves_bff("accept") && leaves_bff("X-Idempotency-Key"));
    assert!(!leaves_bff("X-User-Id") && !leaves_bff("cookie"));
    let enters_gateway = |header| file.passes(Party::Gateway, Crossing::Arriving, Traffic::Requests, header);
    assert!(enters_gateway("X-A") && !enters_gateway("x-b"));
    assert!(
        file.passes(Party::Gateway, Crossing::Leaving, Traffic::Requests, "cookie"),
        "no list is about that"
    );
    assert!(!file.passes(Party::Bff, Crossing::Arriving, Traffic::Responses, "Server"));
    assert!(file.passes(Party::Bff, Crossing::Arriving, Traffic::Responses, "Date"));
}

#[test]
fn last_wait_between_attempts_repeats() {
    let file = read(
        r#"{"boundary":"bff_to_gateway","http":{"retry":{"mode":"enabled","max_attempts":4,"backoff_ms":[100,200]}}}"#,
    );
    let plan = file.http.retry.plan().expect("it retries");
    let waits: Vec<_> = (1..=4).map(|n| plan.wait_after(NonZeroU32::new(n).expect("from 1"))).collect();
    assert_eq!(waits, [Some(millis(100)), Some(millis(200)), Some(millis(200)), None]);
    assert_eq!(plan.waits_in_all(), millis(500));
}

#[test]
fn an_operation_becomes_a_policy() {
    let file = read(
        r#"{"boundary":"adapter","identity":{"source":"jwt_claim","name":"sub"},
            "http":{"idempotency":{"mode":"enabled","enabled":{"storage":{"ttl":{"days":3}},
                "fingerprint":{"body_hash":{"input":{"encoding":{"type":"canonical_json","rules":{
                    "object_member_order":"sorted","number_representation":"exact"}},"leave_out":["/trace_id"]}}}}}},
            "operations":{"orders.create":{"methods":["POST"],"path":"/v1/orders","class":"billing",
                "guarantee":"keyed","keeps_keys_for":{"days":1},"ttl":{"hours":1,"reason":"a demo"}}}}"#,
    );
    let guarantees = &file.http.idempotency.enabled;
    let operations = file.operations.as_ref().expect("it has some");
    let (name, operation) = operations.iter().next().expect("it has one");
    assert_eq!((name, operation.guarantee), ("orders.create", Some(Guarantee::Keyed)));
    assert_eq!(file.identity.as_ref().and_then(|identity| identity.source), Some(IdentitySource::JwtClaim));
    let policy = Policy::build(operation.draft(guarantees)).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((policy.class(), policy.guarantee()), (Class::ExternalEffect, OperationGuarantee::Keyed));
    assert_eq!(policy.ttl(), Duration::from_hours(1));
    let rules = guarantees.fingerprint.body_hash.body_rules().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(rules.form.numbers, Numbers::Exact);
}
