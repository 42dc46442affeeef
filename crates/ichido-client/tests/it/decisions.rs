//! Checks the decisions against the table of the browser client, `clients/js/test/decisions.json`.
//!
//! The two languages therefore cannot diverge.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_client::decision::{
    self, AttemptHistory, DecisionContext, GiveUpReason, NextStep, RefusalReason, RetryRules,
};
use ichido_core::ledger::Profile;
use ichido_core::retry::{Retry, Safety};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{AttemptResponse, Echo, Effect, HttpResponse, NetworkFault};
use serde_json::{Value, json};

const TABLE: &str = include_str!("../../../../clients/js/test/decisions.json");

/// Returns the table and its cases, completed with the defaults.
fn table() -> (Value, Vec<Value>) {
    let table: Value = serde_json::from_str(TABLE).expect("JSON");
    let cases = table["cases"].as_array().expect("cases").iter().map(|case| whole(&table, case));
    (table.clone(), cases.collect())
}

fn whole(table: &Value, case: &Value) -> Value {
    let mut whole = table["usual"].clone();
    whole.as_object_mut().expect("an object").extend(case.as_object().expect("an object").clone());
    whole
}

fn effect(name: &Value) -> Effect {
    match name.as_str() {
        Some("not_done") => Effect::NotDone,
        Some("done") => Effect::Done,
        Some("unknown") => Effect::Unknown,
        other => panic!("no effect: {other:?}"),
    }
}

fn profile(name: &Value) -> Profile {
    match name.as_str() {
        Some("ichido") => Profile::Ichido,
        Some("ietf") => Profile::Ietf,
        Some("stripe") => Profile::Stripe,
        other => panic!("no profile: {other:?}"),
    }
}

fn safety(name: &Value) -> Safety {
    match name.as_str() {
        Some("keyed") => Safety::Keyed,
        Some("idempotent") => Safety::Idempotent,
        Some("none") => Safety::None,
        other => panic!("no safety: {other:?}"),
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn count(value: &Value) -> u32 {
    u32::try_from(number(value)).expect("a count")
}

/// Decides one case and renders the decision in the table's format.
fn decided(table: &Value, case: &Value) -> Value {
    let attempts = NonZeroU32::new(count(&case["attempts"])).expect("a try");
    let rules = RetryRules {
        retry: Retry { max_attempts: attempts, ..Retry::CLIENT },
        max_retry_after: Duration::from_millis(number(&case["retry_after_max_ms"])),
        profile: profile(&case["profile"]),
    };
    let before = &case["before"];
    let before = AttemptHistory {
        sent: count(&before["sent"]),
        failed: count(&before["failed"]),
        effect: effect(&before["effect"]),
    };
    let now = Timestamp::from_millis(i64::try_from(number(&table["now_ms"])).expect("a moment"));
    let context =
        DecisionContext { now, left: Duration::from_millis(number(&case["left_ms"])), budget: None };
    let dice = case["dice"].as_f64().expect("a number");
    let headers = fields(&case["seen"]);
    let seen = seen(&case["seen"], &headers);
    let decided = decision::decide(&rules, safety(&case["safety"]), before, &seen, context, dice);
    step_json(&decided.next, now)
}

fn fields(seen: &Value) -> Vec<(&str, &[u8])> {
    let pairs = seen["headers"].as_array().into_iter().flatten();
    pairs
        .map(|pair| (pair[0].as_str().expect("a name"), pair[1].as_str().expect("a value").as_bytes()))
        .collect()
}

fn seen<'a>(seen: &'a Value, headers: &'a [(&'a str, &'a [u8])]) -> AttemptResponse<'a> {
    if let Some(fault) = seen["fault"].as_str() {
        return AttemptResponse::Network(match fault {
            "never_sent" => NetworkFault::ConnectRefused,
            "lost" => NetworkFault::Broken,
            "timeout" => NetworkFault::Timeout,
            "answer_cut" => NetworkFault::ResponseCut,
            other => panic!("no fault: {other}"),
        });
    }
    let echo = match seen["echo"].as_str() {
        None => Echo::Absent,
        Some("same") => Echo::Same,
        Some("other") => Echo::Other,
        Some(other) => panic!("no echo: {other}"),
    };
    let status = u16::try_from(number(&seen["status"])).expect("a status");
    let body = seen["body"].as_str().unwrap_or_default().as_bytes();
    AttemptResponse::Http(HttpResponse { status, headers, body, echo })
}

fn step_json(next: &NextStep, now: Timestamp) -> Value {
    let name = |effect: Effect| match effect {
        Effect::NotDone => "not_done",
        Effect::Done => "done",
        Effect::Unknown => "unknown",
    };
    match *next {
        NextStep::Done => json!({ "done": {} }),
        NextStep::Refused { effect, reason } => {
            let reason = match reason {
                RefusalReason::KeyConflict => "key_conflict",
                RefusalReason::KeptFailure => "kept_failure",
                RefusalReason::ByServer => "by_server",
            };
            json!({ "refused": { "effect": name(effect), "reason": reason } })
        }
        NextStep::Retry { wait, attempts: AttemptHistory { sent, failed, effect } } => {
            let wait_ms = u64::try_from(wait.as_millis()).expect("a wait");
            json!({ "again": { "wait_ms": wait_ms, "sent": sent, "failed": failed, "effect": name(effect) } })
        }
        NextStep::GiveUp { why, effect } => {
            let since = |at: Timestamp| u64::try_from(at.since(now).as_millis()).expect("a wait");
            let (why, come_back) = match why {
                GiveUpReason::TriesSpent => ("attempts_spent", None),
                GiveUpReason::AskedToWait { come_back_at } => ("asked_to_wait", Some(since(come_back_at))),
                GiveUpReason::OutOfTime { come_back_at } => ("out_of_time", Some(since(come_back_at))),
                GiveUpReason::AnotherKey => ("another_key", None),
                GiveUpReason::NoKey => ("no_key", None),
                GiveUpReason::BudgetSpent => ("budget_spent", None),
            };
            let mut step_json = json!({ "give_up": { "why": why, "effect": name(effect) } });
            if let Some(millis) = come_back {
                step_json["give_up"]["come_back_in_ms"] = millis.into();
            }
            step_json
        }
    }
}

#[test]
fn every_decision_matches_the_table_shared_with_javascript() {
    let (table, cases) = table();
    assert!(50 < cases.len(), "{} cases", cases.len());
    for case in &cases {
        let found = decided(&table, case);
        let (kind, wanted) = found.as_object().and_then(|found| found.iter().next()).expect("one decision");
        assert_eq!(case[kind], *wanted, "{}: {found}", case["name"]);
    }
}

#[test]
fn every_status_is_judged_as_in_the_table() {
    let (table, _) = table();
    let mut next_status = 200;
    for row in table["statuses"].as_array().expect("statuses") {
        assert_eq!(number(&row["from"]), next_status, "each status once, in order");
        for status in number(&row["from"])..=number(&row["to"]) {
            let found = decided(&table, &whole(&table, &json!({ "seen": { "status": status } })));
            let (kind, step_json) =
                found.as_object().and_then(|found| found.iter().next()).expect("one decision");
            assert_eq!(row["next"], kind.as_str(), "{status}");
            if kind != "done" {
                assert_eq!(row["effect"], step_json["effect"], "{status}");
            }
        }
        next_status = number(&row["to"]) + 1;
    }
    assert_eq!(next_status, 1000);
}
