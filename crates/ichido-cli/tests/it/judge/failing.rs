//! Failures are retried, or marked as a fallback with a reason.
// Spec: B1, B6, B12.

use serde_json::{Value, json};

use super::program::{JudgeFixture, JudgeOutput};

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
    let ran = fixture.judge(&[]);
    ran.ended_with(1).counts("judged", 4).counts("fallbacks", 4).says("labelled IGNORE");
    ran.counts("refused", 2).counts("retries_spent", 1).counts("unusable_answer", 1);
    ran.says("the first: no retry can help").says("one line per article, in out.jsonl");
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
    fixture.judge(&[]).ended_with(0).counts("judged", 8).says("4 of them known before");
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

/// A wrong port ends the run with its first calls, also with the default settings.
#[test]
fn run_ends_with_its_first_calls_if_nothing_listens_at_the_endpoint() {
    let fixture = JudgeFixture::new(20, &json!({}));
    fixture.folder.write("out.jsonl", "yesterday\n");
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = fixture.command(&["articles.jsonl", "--out", "out.jsonl", "--llm", fixture.llm]);
    let output = command.args(["--endpoint", &format!("http://127.0.0.1:{port}/v1")]).output().unwrap();
    let ran = JudgeOutput::new(output);
    ran.ended_with(1).says("cannot call the model: CONNECT_FAILED");
    ran.says("check the scheme, host and port of --endpoint");
    ran.counts("judged", 0).counts("fallbacks", 20).says("unreached").says("set_up");
    assert!(!ran.err.contains("NETWORK_TIMEOUT"), "{}", ran.err);
    // Nothing was judged, so the results of an earlier run stay.
    ran.counts("results", 0).says("nothing was judged, so out.jsonl is unchanged");
    assert_eq!(std::fs::read_to_string(fixture.out()).unwrap(), "yesterday\n");
}

/// A reasoning model gets enough tokens by default, and is asked to reason little.
// Spec: B1.
#[test]
fn the_documented_command_works_with_a_reasoning_model() {
    let guide = include_str!("../../../../../docs/guides/judge.md");
    assert!(guide.contains("--llm openai:gpt-5-mini "), "the documented command");
    // It spends six thousand tokens on reasoning, and a quarter of them if it is asked to reason little.
    let script = json!({ "reasoning_tokens": 6_000 });
    let fixture = JudgeFixture { llm: "openai:gpt-5-mini", ..JudgeFixture::new(12, &script) };
    fixture.judge(&[]).ended_with(0).counts("judged", 12).counts("calls", 12);
    fixture.no_format_faults();
}

#[test]
fn answers_without_enough_tokens_end_the_run_early_with_the_fix() {
    let fixture = JudgeFixture::new(40, &json!({ "reasoning_tokens": 500 }));
    let ran = fixture.judge(&["--max-output-tokens", "200"]);
    ran.ended_with(1).says("the model's answers do not fit into 400 tokens; pass --max-output-tokens 800");
    ran.counts("fallbacks", 40).says("the answer did not fit into 400 tokens");
    assert!(fixture.requests() <= 28, "five articles, twice, and what was in flight: {}", fixture.requests());
    assert_eq!(fixture.judgements().len(), 40);
    // Twice as many are enough: the first ones are asked for twice, and the result says how to avoid that.
    let ran = fixture.judge(&["--max-output-tokens", "400"]);
    ran.ended_with(0).counts("judged", 40);
    ran.says("answers did not fit into 400 tokens; pass --max-output-tokens 800");
    let ran =
        fixture.command(&["articles.jsonl", "--plan-only", "--max-output-tokens", "20"]).output().unwrap();
    JudgeOutput::new(ran).ended_with(2).says("64");
}
