//! `.env` in the working folder sets what the environment does not.
// Spec: B5.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::program::{JudgeFixture, JudgeOutput};

/// Returns the seconds of a plan, with these flags and variables.
fn planned(fixture: &JudgeFixture, flags: &[&str], variables: &[(&str, &str)]) -> Value {
    let mut command = fixture.command(&["articles.jsonl", "--plan-only", "--json"]);
    let output = command.args(flags).envs(variables.iter().copied()).output().unwrap();
    JudgeOutput::new(output).json()["plan"]["seconds"]["best"].clone()
}

#[test]
fn env_file_sets_judge_settings_and_environment_wins() {
    let fixture = JudgeFixture::new(120, &json!({}));
    assert_eq!(planned(&fixture, &[], &[]), 450.0);
    fixture.folder.write(
        ".env",
        "# settings\nexport BEDROCK_MAX_PARALLEL='3' # three\n\nBEDROCK_REQUEST_INTERVAL=\"1.0\"\nBEDROCK_MODEL_ID=\n",
    );
    // 40 rounds of 6 s.
    assert_eq!(planned(&fixture, &[], &[]), 240.0);
    assert_eq!(planned(&fixture, &[], &[("BEDROCK_MAX_PARALLEL", "2")]), 360.0);
    assert_eq!(planned(&fixture, &["--parallel", "4"], &[("BEDROCK_MAX_PARALLEL", "2")]), 180.0);
}

#[test]
fn env_file_ignores_other_names() {
    let fixture = JudgeFixture::new(1, &json!({}));
    fixture.folder.write(".env", "OPENAI_API_KEY=sk-from-file\nICHIDO_LLM=openai:gpt-test\nUSER=eve\n");
    let mut command = fixture.command(&["articles.jsonl", "--out", "o"]);
    let ran = JudgeOutput::new(command.env_remove("OPENAI_API_KEY").output().unwrap());
    // The model is known, and its key is not.
    ran.ended_with(2).says("set OPENAI_API_KEY in the environment");
    assert!(!ran.err.contains("no model given"), "{}", ran.err);
}

#[test]
fn invalid_env_file_is_reported_with_line_and_fix() {
    let fixture = JudgeFixture::new(1, &json!({}));
    let plan = || JudgeOutput::new(fixture.command(&["articles.jsonl", "--plan-only"]).output().unwrap());
    fixture.folder.write(".env", "BEDROCK_MAX_RETRIES=4\nBEDROCK_ secret words\nICHIDO_LOG=loud-secret\n");
    let ran = plan();
    ran.ended_with(2).says(".env:2: has no `=`; write NAME=value");
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    fixture.folder.write(".env", "\nBEDROCK_MAX_PARALLEL=many-secret\nICHIDO_LOG=loud-secret\n");
    let ran = plan();
    ran.ended_with(2)
        .says(".env:2 BEDROCK_MAX_PARALLEL: is invalid: ")
        .says(".env:3 ICHIDO_LOG: is invalid: ");
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    fixture.folder.write(".env", &format!("#{}\n", "x".repeat(64 << 10)));
    plan().ended_with(2).says(".env: is larger than 65536 bytes; ");
}

#[test]
fn env_file_that_is_not_a_regular_file_is_not_followed() {
    let fixture = JudgeFixture::new(120, &json!({}));
    let path = fixture.folder.path().join(".env");
    let elsewhere = fixture.folder.write("elsewhere", "BEDROCK_MAX_PARALLEL=3\n");
    symlink(elsewhere, &path).unwrap();
    let ran = JudgeOutput::new(fixture.command(&["articles.jsonl", "--plan-only"]).output().unwrap());
    ran.ended_with(2).says(".env: is not a regular file and is not followed; ");
    std::fs::remove_file(&path).unwrap();
    // A folder of that name belongs to another program.
    std::fs::create_dir(&path).unwrap();
    assert_eq!(planned(&fixture, &[], &[]), 450.0);
}
