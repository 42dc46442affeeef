//! A long `Retry-After` is announced at once, planned with, and ended by `--resume`.
// Spec: B7, D6.

use std::io::{BufRead as _, BufReader};

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput};

#[test]
fn long_retry_after_is_announced_at_once_and_ended_by_resume() {
    let script = json!({ "rules": [{ "do": { "fail": "throttle" }, "retry_after": { "seconds": 7_200 } }] });
    let mut fixture = JudgeFixture::new(6, &script);
    let mut running = fixture.start(&[]);
    let mut errors = BufReader::new(running.stderr.take().unwrap()).lines();
    let announced = errors.by_ref().map(Result::unwrap).find(|line| line.starts_with("paused until "));
    let announced = announced.expect("it says that it waits");
    assert!(
        announced.contains(" UTC (59m ")
            && announced
                .contains(", when one call asks again; the provider asked for 2h 00m; Ctrl-C to stop")
            && announced.ends_with(", `ichido judge --resume` to ask now"),
        "{announced}"
    );
    let plan = errors.next().unwrap().unwrap();
    assert!(plan.starts_with("6 articles left: ") && plan.contains(", 2h 00m on a bad day"), "{plan}");
    // Another run knows it before it asks, and another model is not held back.
    let planned = fixture.judge(&["--dry-run", "--deadline", "15m"]);
    planned.ended_with(0).says("paused until ").says("by the provider; the times include it");
    planned.says("the pause ends after the deadline of 15m 00s").says("the provider refused more");
    assert!(fixture.requests() <= 6, "{}", fixture.requests());
    fixture.fake.script(fake_llm::Script::default());
    fixture.llm = "openai:gpt-other";
    fixture.judge(&[]).ended_with(0).counts("judged", 6);
    // The run that waits goes on, and what is judged stays.
    let resumed = JudgeOutput::new(fixture.command(&["--resume"]).output().unwrap());
    resumed.ended_with(0).says("gpt-test   0           by the provider").says("gpt-other  6           no");
    resumed.says("Ichido no longer waits for the provider: one call asks again");
    assert_eq!(running.wait().unwrap().code(), Some(0), "{:?}", errors.collect::<Vec<_>>());
    let judgements = fixture.judgements();
    assert!(
        judgements.iter().all(|judgement| judgement["model"] == "gpt-test" && judgement["fallback"] == false)
    );
    let again = JudgeOutput::new(fixture.command(&["--resume", "openai:gpt-other"]).output().unwrap());
    again.ended_with(0).says("nothing is paused");
    fixture.llm = "openai:gpt-test";
    fixture.judge(&["--dry-run"]).ended_with(0).says("6 already judged");
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
