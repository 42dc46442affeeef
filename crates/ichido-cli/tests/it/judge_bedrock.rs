//! `ichido judge` on Amazon Bedrock, by its own SDK (SPEC B1, B5, B10), against a server that plays it.

use serde_json::json;

use crate::judge::program::{Bench, QUICK, Ran, SECRET};

#[test]
fn articles_are_judged_on_bedrock_and_what_may_be_tried_again_is() {
    let script = json!({ "rules": [
        { "do": { "fail": "throttle" }, "item": "0", "first": 2 },
        { "do": { "fail": "unavailable" }, "item": "1", "first": 1 },
        { "do": { "fail": "invalid" }, "item": "2" },
        { "do": { "fail": "not_ready" }, "item": "3", "first": 1 },
        { "do": "drop_completed", "item": "4", "first": 1 },
    ] });
    let bench = Bench { llm: "bedrock:anthropic.claude-test", ..Bench::new(8, &script) };
    let ran = bench.judge(&["--log", "debug"]);
    ran.ended_with(1).says("7 judged (0 known before), 1 fallbacks").says("may have been billed");
    bench.no_format_faults();
    assert!(!ran.aside.contains(SECRET) && !ran.aside.contains("item-1 of many"), "{}", ran.aside);
    let judgements = bench.judgements();
    assert_eq!(judgements[2]["fallback_reason"], "refused");
    assert_eq!(judgements[4]["possibly_billed"], 1);
    let requests = |item: &str| bench.fake.seen().items[item].counts.requests;
    assert_eq!(["0", "1", "2", "3", "5"].map(requests), [3, 2, 1, 2, 1], "ours is the only loop");
}

#[test]
fn the_model_and_its_regions_may_be_said_by_the_environment() {
    let bench = Bench { llm: "bedrock:anthropic.claude-test", ..Bench::new(4, &json!({})) };
    let url = bench.fake.url();
    let mut command = bench.command(&["articles.jsonl", "--out", "out.jsonl"]);
    command.env("BEDROCK_MODEL_ID", "anthropic.claude-test").args(QUICK);
    command.args([
        "--endpoint",
        &format!("us-east-1={url}/east"),
        "--endpoint",
        &format!("us-west-2={url}/west"),
    ]);
    Ran::of(command.output().unwrap()).ended_with(0);
    let seen = bench.fake.seen();
    assert_eq!(seen.endpoints.values().map(|counts| counts.completed).sum::<u64>(), 4);
    assert_eq!(bench.judgements()[0]["model"], "anthropic.claude-test");
    // No region is known: it is asked for.
    let mut command = bench.command(&["articles.jsonl", "--out", "o", "--llm", "bedrock:m"]);
    Ran::of(command.output().unwrap()).ended_with(2).says("which region?");
}
