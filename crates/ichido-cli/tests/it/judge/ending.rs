//! A run ends in time, and can be stopped and continued.
// Spec: B7, B9.

use std::process::Command;

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput};

#[test]
fn deadline_leaves_fallbacks_for_the_rest() {
    // Waiting for a hundred responses of an hour would take too long.
    let script = json!({ "rules": [{ "do": { "answer": "whole" }, "latency": { "fixed_ms": 3_600_000 }, "item": "7" }] });
    let fixture = JudgeFixture::new(10, &script);
    // The others have as long, on a slow machine too.
    fixture.judge(&["--deadline", "5s"]).ended_with(1).says("9 judged").says("the deadline passed");
    let judgements = fixture.judgements();
    assert_eq!(judgements[7]["fallback_reason"], "deadline");
    assert_eq!(judgements.iter().filter(|judgement| judgement["fallback"] == true).count(), 1);
}

#[test]
fn ctrl_c_keeps_judgements_and_rerun_continues() {
    // The signal needs a moment, on a slow machine more than one.
    let fixture = JudgeFixture::new(60, &json!({ "latency": { "fixed_ms": 300 } }));
    let mut running = fixture.start(&[]);
    fixture.until_requests(10, &mut running);
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let ran = JudgeOutput::new(running.wait_with_output().unwrap());
    ran.ended_with(3)
        .says("run the same command again to continue")
        .says("stopping after the calls in flight");
    assert!(!fixture.out().exists(), "nothing half is written");
    let left = std::fs::read_dir(fixture.folder.path()).unwrap();
    let parts = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".part"));
    assert_eq!(parts.count(), 0, "and nothing is left behind");
    fixture.fake.script(fake_llm::Script::default());
    fixture.judge(&[]).ended_with(0);
    assert!(fixture.billed().values().all(|billed| *billed == 1), "{:?}", fixture.billed());
    assert_eq!(fixture.judgements().len(), 60);
}
