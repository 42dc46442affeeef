//! Failures are retried, or marked as a fallback with a reason.
// Spec: B1, B6, B12.

use serde_json::{Value, json};

use super::program::JudgeFixture;

#[test]
fn retryable_errors_are_retried_until_all_are_judged() {
    let script = json!({ "rules": [
        { "do": { "fail": "throttle" }, "item": "0", "first": 2 },
        { "do": { "fail": "unavailable" }, "item": "1", "first": 1 },
        { "do": { "fail": "overloaded" }, "item": "2", "first": 1 },
        { "do": "drop", "item": "3", "first": 1 },
        { "do": "drop_completed", "item": "4", "first": 1 },
        { "do": { "answer": "cut_off" }, "item": "5", "first": 1 },
        { "do": { "answer": "prose" }, "item": "6" },
        { "do": { "answer": "fence" }, "item": "7" },
        { "do": { "answer": "schema_miss" }, "item": "8", "first": 1 },
        { "do": { "say": "I cannot say" }, "item": "9", "first": 2 },
    ] });
    for llm in ["openai:gpt-test", "anthropic:claude-test"] {
        let fixture = JudgeFixture { llm, ..JudgeFixture::new(10, &script) };
        let ran = fixture.judge(&["--json"]);
        let summary = ran.ended_with(0).json()["summary"].clone();
        fixture.no_format_faults();
        assert_eq!(summary["judged"], 10);
        assert_eq!(
            summary["repaired_answers"], 2,
            "prose and fence are repaired without another call: {summary}"
        );
        assert_eq!(summary["unusable_answers"], 4, "{summary}");
        let lost = summary["possibly_billed"].as_u64().unwrap();
        assert!((2..=4).contains(&lost), "two were dropped, and an overload may have been billed: {summary}");
        let billed = fixture.billed();
        let judgements = fixture.judgements();
        for (number, judgement) in judgements.iter().enumerate() {
            let possibly = judgement["possibly_billed"].as_u64().unwrap();
            let unusable = match number {
                5 | 8 => 1,
                9 => 2,
                _ => 0,
            };
            assert!(
                billed[&number.to_string()] <= 1 + unusable + possibly,
                "item {number}: {judgement} {billed:?}"
            );
        }
        assert_eq!(judgements[4]["possibly_billed"], 1);
    }
}

#[test]
fn permanent_error_is_a_fallback_and_batch_continues() {
    let script = json!({ "rules": [
        { "do": { "fail": "invalid" }, "item": "1" },
        { "do": { "fail": "unknown" }, "item": "2" },
        { "do": { "fail": "throttle" }, "item": "3" },
        { "do": { "say": "never JSON" }, "item": "4" },
    ] });
    let fixture = JudgeFixture::new(8, &script);
    fixture.judge(&[]).ended_with(1).says("4 judged (0 already known), 4 fallbacks");
    let judgements = fixture.judgements();
    let of = |number: usize, member: &str| judgements[number][member].clone();
    for (number, reason) in [(1, "refused"), (2, "refused"), (3, "retries_spent"), (4, "unusable_answer")] {
        assert_eq!(of(number, "label"), "IGNORE");
        assert_eq!(of(number, "fallback"), true);
        assert_eq!(of(number, "fallback_reason"), reason, "{number}");
        assert_eq!(of(number, "at"), Value::Null);
    }
    let requests = |item: &str| fixture.fake.seen().items[item].counts.requests;
    assert_eq!((requests("1"), requests("2"), requests("3"), requests("4")), (1, 1, 5, 3));
    // Fallbacks count as missing: once the provider works, only they are asked.
    fixture.fake.script(fake_llm::Script::parse(b"{}").unwrap());
    let before = fixture.requests();
    fixture.judge(&[]).ended_with(0).says("8 judged (4 already known)");
    assert_eq!(fixture.requests(), before + 4);
}

#[test]
fn denied_access_is_reported_as_setup_error() {
    for (fault, word) in [("denied", "UNAUTHORIZED"), ("spend_limit", "QUOTA_SPENT")] {
        let fixture = JudgeFixture::new(100, &json!({ "rules": [{ "do": { "fail": fault } }] }));
        let ran = fixture.judge(&[]);
        ran.ended_with(1).says("cannot call the model").says(word);
        assert!(fixture.requests() < 20, "it is not asked a hundred times: {}", fixture.requests());
        let judgements = fixture.judgements();
        assert_eq!(judgements.len(), 100, "one result for each");
        assert!(judgements.iter().all(|judgement| judgement["fallback"] == true));
    }
}
