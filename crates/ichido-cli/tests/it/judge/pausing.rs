//! A long `Retry-After` is announced at once, planned with, and ended by `--forget`.
// Spec: B7, D6.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput};

#[test]
fn long_retry_after_is_announced_at_once_and_ended_by_forget() {
    let script = json!({ "rules": [{ "do": { "fail": "throttle" }, "retry_after": { "seconds": 7_200 } }] });
    let mut fixture = JudgeFixture::new(6, &script);
    let mut running = fixture.start(&[]);
    let mut errors = BufReader::new(running.stderr.take().unwrap()).lines();
    let announced = errors.by_ref().map(Result::unwrap).find(|line| line.starts_with("paused until "));
    let announced = announced.expect("it says that it waits");
    assert!(
        announced.contains(" UTC (59m ") && announced.ends_with(" by the provider; Ctrl-C to stop"),
        "{announced}"
    );
    let plan = errors.next().unwrap().unwrap();
    assert!(plan.starts_with("6 articles left: ") && plan.contains(" at best, likely "), "{plan}");
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(3), "{:?}", errors.collect::<Vec<_>>());
    assert_eq!(fixture.judgements().len(), 6);
    assert!(fixture.requests() <= 6, "{}", fixture.requests());
    // The next run knows it before it asks, and another model is not held back.
    let planned = fixture.judge(&["--dry-run", "--deadline", "15m"]);
    planned.ended_with(0).says("paused until ").says("by the provider, which the times include");
    planned.says("15m 00s is not enough for one article");
    fixture.fake.script(fake_llm::Script::default());
    fixture.llm = "openai:gpt-other";
    fixture.judge(&[]).ended_with(0).counts("judged", 6);
    fixture.llm = "openai:gpt-test";
    // Without its judgements there is nothing to confirm.
    let forgotten = JudgeOutput::new(fixture.command(&["--forget", "gpt-test"]).output().unwrap());
    forgotten
        .ended_with(0)
        .says("gpt-test  0           by the provider")
        .says("deleted 0 judgements; Ichido no longer waits");
    fixture.judge(&["--dry-run"]).ended_with(0);
    fixture.judge(&[]).ended_with(0).counts("judged", 6);
}

#[test]
fn forget_names_models_and_deletes_only_what_is_confirmed() {
    let other = JudgeFixture { llm: "openai:gpt-other", ..JudgeFixture::new(3, &json!({})) };
    other.judge(&[]).ended_with(0);
    let fixture = JudgeFixture { llm: "openai:gpt-test", ..other };
    fixture.judge(&[]).ended_with(0);
    let forget = |args: &[&str]| {
        let mut command = fixture.command(&["--forget"]);
        JudgeOutput::new(command.args(args).output().unwrap())
    };
    // There is no terminal to ask at.
    let refused = forget(&[]);
    refused.ended_with(2).says("6 judgements would be deleted").says("confirm with --yes");
    refused.says("gpt-other  3").says("gpt-test   3");
    forget(&["gpt-5"]).ended_with(2).says("nothing is stored of \"gpt-5\", only of gpt-other, gpt-test");
    fixture.judge(&["--dry-run"]).ended_with(0).says("3 already judged");
    let one = forget(&["openai:gpt-test", "--yes", "--json"]);
    let expected =
        json!({ "forgotten": 3, "pauses_ended": 0, "models": [{ "model": "gpt-test", "judgements": 3 }] });
    assert_eq!(one.ended_with(0).json(), expected);
    fixture.judge(&["--dry-run"]).ended_with(0).says("0 already judged");
    forget(&["--yes"]).ended_with(0).says("gpt-other  3").says("deleted 3 judgements");
    forget(&[]).ended_with(0).says("deleted 0 judgements");
}
