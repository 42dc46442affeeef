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
    let ran = fixture.judge(&["--deadline", "5s"]);
    ran.ended_with(1).counts("judged", 9).counts("deadline", 1).says("the deadline passed");
    let judgements = fixture.judgements();
    assert_eq!(judgements[7]["fallback_reason"], "deadline");
    assert_eq!(judgements.iter().filter(|judgement| judgement["fallback"] == true).count(), 1);
}

#[test]
fn ctrl_c_writes_what_is_judged_and_rerun_continues() {
    // The signal needs a moment, on a slow machine more than one.
    let fixture = JudgeFixture::new(60, &json!({ "latency": { "fixed_ms": 300 } }));
    let mut running = fixture.start(&[]);
    fixture.until_requests(10, &mut running);
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let ran = JudgeOutput::new(running.wait_with_output().unwrap());
    ran.ended_with(3)
        .says("run the same command again to continue")
        .says("stopping after the calls in flight")
        .counts("results", 60);
    let judgements = fixture.judgements();
    let is_judged = |judgement: &&serde_json::Value| judgement["fallback"] == false;
    let judged = judgements.iter().filter(is_judged).count();
    assert!((10..60).contains(&judged), "{judged} of 60");
    ran.counts("judged", judged as u64).counts("stopped", 60 - judged as u64);
    let rest = judgements.iter().filter(|judgement| !is_judged(judgement));
    assert!(rest.into_iter().all(|judgement| judgement["fallback_reason"] == "stopped"));
    let left = std::fs::read_dir(fixture.folder.path()).unwrap();
    let parts = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".part"));
    assert_eq!(parts.count(), 0, "and nothing is left behind");
    fixture.fake.script(fake_llm::Script::default());
    fixture.judge(&[]).ended_with(0);
    assert!(fixture.billed().values().all(|billed| *billed == 1), "{:?}", fixture.billed());
    assert_eq!(fixture.judgements().len(), 60);
}
