//! What is said of an operation follows from what is known of it.

use serde_json::{Value, json};

use super::super::language::Language;
use super::*;

/// Returns an operation as the API shows it.
fn operation(state: &str, more: &Value) -> Operation {
    let mut operation = json!({
        "id": Uuid::from_u128(7), "action": "requeue_canary", "by": "ann", "state": state, "detail": "",
        "started_at": "2026-11-18T00:00:00Z", "updated_at": "2026-11-18T00:00:00Z", "progress": null, "result": null,
        "start": {
            "filter": {"state": "dead", "queue": "orders", "since_before": "2026-11-18T00:00:00Z"},
            "matched": 5_002, "eligible": 5_000, "reason": "fixed",
        },
    });
    for (name, value) in more.as_object().unwrap() {
        operation[name] = value.clone();
    }
    serde_json::from_value(operation).unwrap()
}

fn result(moved: u64, canary: &Value) -> Value {
    json!({ "result": {
        "moved": moved, "gone": 0, "refused": [], "stopped_by": null, "canary": canary, "error": null,
    } })
}

#[test]
fn an_operation_is_said_as_it_is() {
    let progress = json!({ "progress": { "moved": 1_250, "total": 5_000, "canary": null } });
    let canary = |pending: u64, succeeded: u64, failed: u64| json!({ "pending": pending, "succeeded": succeeded, "failed": failed });
    let mut stopped = result(1_250, &Value::Null);
    stopped["result"]["stopped_by"] = json!("bob");
    for (state, more, fate_is, sentence) in [
        ("started", progress.clone(), Fate::Running, "1,250 of 5,000 requeued."),
        ("started", json!({}), Fate::Silent, "Nothing is known here of its progress."),
        (
            "stopping",
            progress,
            Fate::Stopping,
            "It stops before its next batch. So far 1,250 of 5,000 requeued.",
        ),
        ("stopping", json!({}), Fate::Stopping, "Nothing is known here of its progress."),
        ("ended", result(4_998, &Value::Null), Fate::Ended, "4,998 requeued."),
        ("ended", json!({}), Fate::Ended, "It has ended."),
        ("stopped", stopped, Fate::Stopped, "Stopped by bob: 1,250 requeued."),
        ("stopped", result(1_250, &Value::Null), Fate::Stopped, "Its server was stopped: 1,250 requeued."),
        ("stopped", json!({}), Fate::Stopped, "It was asked to stop, and its process is gone."),
        (
            "halted",
            result(50, &canary(10, 28, 12)),
            Fate::Halted,
            "The canary halted it: 12 of 50 failed again.",
        ),
        (
            "halted",
            result(50, &canary(46, 0, 4)),
            Fate::Halted,
            "The canary halted it: 46 of 50 did not end within 5 minutes.",
        ),
        ("halted", result(50, &canary(0, 0, 0)), Fate::Halted, "The canary halted it."),
        ("failed", result(700, &Value::Null), Fate::Failed, "It could not continue after 700."),
        (
            "abandoned",
            json!({}),
            Fate::Abandoned,
            "Its server was killed, or lost the store, before it had finished.",
        ),
    ] {
        let operation = operation(state, &more);
        assert_eq!(fate(&operation), fate_is, "{state} {more}");
        let said = shown(BulkTexts::of(Language::English), &operation);
        assert_eq!(said.sentence, sentence, "{state} {more}");
        let missing = |text: &str| text.contains('?') || text.contains('{');
        assert!(
            !missing(&said.sentence) && !said.then.as_deref().is_some_and(missing),
            "{state} {:?}",
            said.then
        );
    }
}

/// Its total is not known, so there is neither a share nor a bar.
#[test]
fn an_operation_on_more_than_were_counted_shows_no_share() {
    for (state, sentence) in [
        ("started", "45,000 requeued so far, of more than 30,000."),
        ("stopping", "It stops before its next batch. 45,000 requeued so far, of more than 30,000."),
    ] {
        let mut partial = operation(state, &json!({}));
        partial.progress = serde_json::from_value(
            json!({ "moved": 45_000, "total": 30_000, "has_more": true, "canary": null }),
        )
        .unwrap();
        let start = partial.start.as_mut().unwrap();
        (start.matched, start.eligible, start.has_more) = (30_000, 30_000, true);
        let said = shown(BulkTexts::of(Language::English), &partial);
        assert_eq!((said.sentence.as_str(), said.bar.is_none()), (sentence, true));
        // The record was cut off.
        partial.start = None;
        let said = shown(BulkTexts::of(Language::English), &partial);
        assert_eq!((said.sentence.as_str(), said.bar.is_none()), (sentence, true));
    }
    let mut ended = operation("ended", &result(45_000, &Value::Null));
    ended.start.as_mut().unwrap().has_more = true;
    assert!(shown(BulkTexts::of(Language::English), &ended).bar.is_none());
}

/// Nobody may believe that it still runs, or that nothing was done.
#[test]
fn an_interrupted_operation_does_not_look_like_a_running_one() {
    let b = BulkTexts::of(Language::English);
    let silent = shown(b, &operation("started", &json!({})));
    let abandoned = shown(b, &operation("abandoned", &json!({})));
    assert!(silent.is_running, "its page looks again");
    assert!(silent.then.unwrap().contains("15 s after its last sign of life"));
    assert!(!abandoned.is_running && abandoned.bar.is_none(), "its progress is not known");
    let then = abandoned.then.unwrap();
    assert!(then.contains("What was requeued stays so") && then.contains("count the rest"), "{then}");
    assert!(Fate::Abandoned.leaves_rest() && !Fate::Ended.leaves_rest() && !Fate::Silent.leaves_rest());
}

#[test]
fn fates_differ_by_shape_and_word() {
    use std::collections::BTreeSet;
    let all = [
        Fate::Running,
        Fate::Stopping,
        Fate::Silent,
        Fate::Ended,
        Fate::Stopped,
        Fate::Halted,
        Fate::Failed,
        Fate::Abandoned,
    ];
    let symbols = include_str!("../../../../templates/marks.html");
    let marks: BTreeSet<&str> = all.iter().map(|fate| fate.mark().mark).collect();
    let names: BTreeSet<&str> = all.iter().map(|fate| fate.name(BulkTexts::of(Language::English))).collect();
    assert_eq!((marks.len(), names.len()), (all.len(), all.len()));
    assert!(marks.iter().all(|mark| symbols.contains(&format!("id=\"m-{mark}\""))), "{marks:?}");
}
