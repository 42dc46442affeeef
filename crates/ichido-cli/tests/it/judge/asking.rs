//! Each article is judged once by each provider, and the judgement is stored.
// Spec: B7, B8, B11.

use serde_json::json;

use super::program::{JudgeFixture, PRIVATE, SECRET};

#[test]
fn second_judge_run_asks_nothing() {
    for llm in ["openai:gpt-test", "anthropic:claude-test"] {
        let fixture = JudgeFixture { llm, ..JudgeFixture::new(12, &json!({})) };
        let ran = fixture.judge(&[]);
        ran.ended_with(0).counts("judged", 12).counts("fallbacks", 0).counts("results", 12);
        fixture.no_format_faults();
        let judgements = fixture.judgements();
        assert_eq!(judgements.len(), 12);
        for (number, judgement) in judgements.iter().enumerate() {
            assert_eq!(judgement["line"], number + 1);
            assert_eq!(judgement["title"], format!("item-{number} of many"));
            let label = judgement["label"].as_str().unwrap();
            assert!(["ACT_NOW", "THINK", "FYI", "IGNORE"].contains(&label), "{judgement}");
            let confidence = judgement["confidence"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&confidence));
            assert_eq!(judgement["model"], llm.split_once(':').unwrap().1);
            assert_eq!(judgement["fallback"], false);
            assert!(judgement["at"].as_str().unwrap().ends_with('Z'), "{judgement}");
        }
        fixture.judge(&[]).ended_with(0).says("12 of them known before").counts("calls", 0);
        assert_eq!(fixture.requests(), 12);
        assert_eq!(fixture.judgements(), judgements, "a rerun writes the same");
        // Another profile is another question.
        let other = "interests = \"cats\"\nfallback = \"NO\"\n[[labels]]\nname = \"YES\"\ncriteria = \"cats\"\n[[labels]]\nname = \"NO\"\ncriteria = \"none\"\n";
        fixture.folder.write("cats.toml", other);
        let ran = fixture.judge(&["--profile", "cats.toml"]);
        assert!(fixture.requests() > 12, "{}", ran.err);
        // After `--forget` everything is asked again.
        super::program::JudgeOutput::new(fixture.command(&["--forget", "--yes"]).output().unwrap())
            .ended_with(0);
        fixture.judge(&["--dry-run"]).ended_with(0).says("0 already judged, 12 to judge");
    }
}

#[test]
fn repeated_article_is_asked_once() {
    let fixture = JudgeFixture::new(1, &json!({}));
    let line = std::fs::read_to_string(fixture.folder.path().join("articles.jsonl")).unwrap();
    fixture.folder.write("articles.jsonl", &format!("{line}\n").repeat(3));
    fixture.judge(&[]).ended_with(0);
    assert_eq!((fixture.judgements().len(), fixture.requests()), (3, 1));
}

#[test]
fn log_contains_neither_api_key_nor_articles() {
    let throttled = json!({ "rules": [{ "do": { "fail": "throttle" }, "first": 2 }, { "do": { "say": "prose" }, "first": 1 }] });
    let fixture = JudgeFixture::new(4, &throttled);
    let ran = fixture.judge(&["--log", "debug"]);
    ran.ended_with(0).says("429");
    for text in [&ran.out, &ran.err] {
        for hidden in [SECRET, PRIVATE, "item-1 of many"] {
            assert!(!text.contains(hidden), "{hidden} is in: {text}");
        }
    }
}

#[test]
fn judgements_are_printed_to_stdout_on_request() {
    let fixture = JudgeFixture::new(3, &json!({}));
    let mut command = fixture.command(&["articles.jsonl", "--out", "-", "--llm", fixture.llm]);
    let output =
        command.args(["--endpoint", &fixture.endpoint()]).args(super::program::QUICK).output().unwrap();
    let ran = super::program::JudgeOutput::new(output);
    ran.ended_with(0);
    assert_eq!(ran.out.lines().count(), 3, "nothing but judgements: {}", ran.out);
    assert!(ran.err.contains("one line per article, in standard output"), "{}", ran.err);
}

#[test]
fn endpoints_share_load_and_throttled_ones_rest() {
    let script = json!({
        "rules": [{ "do": { "fail": "throttle" }, "endpoint": "/east", "retry_after": { "seconds": 60 } }],
        "latency": { "fixed_ms": 5 },
    });
    let fixture = JudgeFixture::new(40, &script);
    let mut command = fixture.command(&["articles.jsonl", "--out", "out.jsonl", "--llm", fixture.llm]);
    for region in ["east", "west"] {
        command.args(["--endpoint", &format!("{}/{region}/v1", fixture.fake.url())]);
    }
    super::program::JudgeOutput::new(command.args(super::program::QUICK).output().unwrap()).ended_with(0);
    let seen = fixture.fake.seen();
    assert!(seen.endpoints["/east"].requests <= 8, "no more than were in flight: {:?}", seen.endpoints);
    assert_eq!(seen.endpoints["/west"].completed, 40);
}

/// An article that one endpoint throttles is asked at the other, even without a Retry-After.
// Spec: B10.
#[test]
fn throttling_endpoint_loses_no_article() {
    for latency in [5, 60] {
        let script = json!({
            "rules": [{ "do": { "fail": "throttle" }, "endpoint": "/east" }],
            "latency": { "fixed_ms": latency },
        });
        let fixture = JudgeFixture::new(60, &script);
        let mut command = fixture.command(&["articles.jsonl", "--out", "out.jsonl", "--llm", fixture.llm]);
        for region in ["east", "west"] {
            command.args(["--endpoint", &format!("{}/{region}/v1", fixture.fake.url())]);
        }
        super::program::JudgeOutput::new(command.args(super::program::QUICK).output().unwrap()).ended_with(0);
        assert_eq!(fixture.fake.seen().endpoints["/west"].completed, 60);
    }
}
