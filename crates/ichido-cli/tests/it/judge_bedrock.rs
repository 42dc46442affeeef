//! `ichido judge` on Amazon Bedrock with AWS's SDK, against a fake server.
// Spec: B1, B5, B10.

use serde_json::json;

use crate::judge::program::{JudgeFixture, JudgeOutput, QUICK, SECRET};

#[test]
fn bedrock_judges_articles_and_retries() {
    let script = json!({ "rules": [
        { "do": { "fail": "throttle" }, "item": "0", "first": 2 },
        { "do": { "fail": "unavailable" }, "item": "1", "first": 1 },
        { "do": { "fail": "invalid" }, "item": "2" },
        { "do": { "fail": "not_ready" }, "item": "3", "first": 1 },
        { "do": "drop_completed", "item": "4", "first": 1 },
    ] });
    let fixture = JudgeFixture { llm: "bedrock:anthropic.claude-test", ..JudgeFixture::new(8, &script) };
    let ran = fixture.judge(&["--log", "debug"]);
    ran.ended_with(1).counts("judged", 7).counts("fallbacks", 1);
    fixture.no_format_faults();
    assert!(!ran.err.contains(SECRET) && !ran.err.contains("item-1 of many"), "{}", ran.err);
    let judgements = fixture.judgements();
    assert_eq!(judgements[2]["fallback_reason"], "refused");
    assert_eq!(judgements[4]["possibly_billed"], 1);
    let requests = |item: &str| fixture.fake.seen().items[item].counts.requests;
    assert_eq!(["0", "1", "2", "3", "5"].map(requests), [3, 2, 1, 2, 1], "ours is the only loop");
}

#[test]
fn environment_sets_bedrock_model_and_regions() {
    let fixture = JudgeFixture { llm: "bedrock:anthropic.claude-test", ..JudgeFixture::new(4, &json!({})) };
    let url = fixture.fake.url();
    let mut command = fixture.command(&["articles.jsonl", "--out", "out.jsonl"]);
    command.env("BEDROCK_MODEL_ID", "anthropic.claude-test").args(QUICK);
    command.args([
        "--endpoint",
        &format!("us-east-1={url}/east"),
        "--endpoint",
        &format!("us-west-2={url}/west"),
    ]);
    JudgeOutput::new(command.output().unwrap()).ended_with(0);
    let seen = fixture.fake.seen();
    assert_eq!(seen.endpoints.values().map(|counts| counts.completed).sum::<u64>(), 4);
    assert_eq!(fixture.judgements()[0]["model"], "anthropic.claude-test");
    // Without a known region, the command asks for one.
    let mut command = fixture.command(&["articles.jsonl", "--out", "o", "--llm", "bedrock:m"]);
    JudgeOutput::new(command.output().unwrap()).ended_with(2).says("no region given");
}
