//! A long `Retry-After` is announced at once, planned with, and ended by `--resume`.
// Spec: B7, D6.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput, QUICK};

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

/// Each endpoint that asks for a wait is named, and the run with the plan when none is left.
#[test]
fn wait_of_less_than_an_hour_is_announced_at_once() {
    let wait = |endpoint: &str, seconds: u32| json!({ "do": { "fail": "throttle" }, "endpoint": endpoint, "retry_after": { "seconds": seconds } });
    let fixture = JudgeFixture::new(6, &json!({ "rules": [wait("/east", 45), wait("/west", 1_800)] }));
    let mut command = fixture.command(&["articles.jsonl", "--out", "out.jsonl", "--llm", fixture.llm]);
    for region in ["east", "west"] {
        command.args(["--endpoint", &format!("{}/{region}/v1", fixture.fake.url())]);
    }
    let mut running = command.args(QUICK).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(running.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut told: Vec<String> =
        errors.by_ref().take_while(|line| !line.starts_with("paused until ")).collect();
    told.extend(errors.next());
    running.kill().unwrap();
    running.wait().unwrap();
    let is_told = |text: &str| told.iter().any(|line| line.contains(text));
    assert!(is_told("/east/v1: paused until ") && is_told("/west/v1: paused until "), "{told:#?}");
    assert!(is_told("6 articles left: "), "{told:#?}");
}

/// The judgements and what was learned of the provider are forgotten together.
#[test]
fn forget_ends_the_pause_of_its_model() {
    let script = json!({ "rules": [{ "do": { "fail": "throttle" }, "retry_after": { "seconds": 45 } }] });
    let fixture = JudgeFixture::new(2, &script);
    let mut running = fixture.start(&[]);
    let mut errors = BufReader::new(running.stderr.take().unwrap()).lines().map(Result::unwrap);
    let announced = errors.find(|line| line.starts_with("paused until ")).expect("it says that it waits");
    assert!(
        announced.ends_with(" by the provider; Ctrl-C to stop, `ichido judge --resume` to ask now"),
        "{announced}"
    );
    running.kill().unwrap();
    running.wait().unwrap();
    fixture.judge(&["--dry-run"]).ended_with(0).says("paused until ");
    let forgot = JudgeOutput::new(fixture.command(&["--forget", "gpt-test", "--yes"]).output().unwrap());
    forgot.ended_with(0).says("gpt-test  0           by the provider");
    forgot.says("deleted 0 judgements; Ichido no longer waits for the provider");
    let planned = fixture.judge(&["--dry-run"]);
    assert!(!planned.ended_with(0).out.contains("paused until "), "{}", planned.out);
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
