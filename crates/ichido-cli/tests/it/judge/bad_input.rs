//! Invalid input is reported all at once, and costs nothing.

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput};

#[test]
fn all_judge_input_errors_are_reported_before_any_call() {
    let fixture = JudgeFixture::new(2, &json!({}));
    fixture.folder.write("articles.jsonl", "{\"title\":\"fine\"}\nnot json\n{\"author\":\"x\"}\n");
    fixture.folder.write("wrong.toml", "interests = \"i\"\nfallback = \"C\"\nlabels = []\n");
    let ran = JudgeOutput::new(
        fixture
            .command(&["articles.jsonl", "--llm", fixture.llm, "--profile", "wrong.toml"])
            .args(["--out", "no/such/folder/out.jsonl"])
            .output()
            .unwrap(),
    );
    ran.ended_with(2).says("articles.jsonl:2").says("articles.jsonl:3").says("--profile").says("--out");
    assert!(!ran.err.contains("not json"), "what was read is not repeated");
    assert_eq!(fixture.requests(), 0);
    assert!(!fixture.folder.path().join("ichido.db").exists());
}

#[test]
fn unknown_model_is_refused_with_valid_forms() {
    let fixture = JudgeFixture::new(1, &json!({}));
    for llm in ["gpt-test", "openai", "openai:", "gemini:pro"] {
        let ran = JudgeOutput::new(
            fixture.command(&["articles.jsonl", "--out", "o", "--llm", llm]).output().unwrap(),
        );
        ran.ended_with(2).says("openai:MODEL");
    }
    let ran = JudgeOutput::new(fixture.command(&["articles.jsonl", "--out", "o"]).output().unwrap());
    ran.ended_with(2).says("no model given");
    for args in [["--interval", "soon"], ["--parallel", "0"], ["--price", "3"], ["--deadline", "-1"]] {
        let mut command = fixture.command(&["articles.jsonl", "--plan-only"]);
        JudgeOutput::new(command.args(args).output().unwrap()).ended_with(2);
    }
    let base = ["articles.jsonl", "--plan-only", "--base-delay", "30s"];
    let ran = JudgeOutput::new(fixture.command(&base).output().unwrap());
    ran.ended_with(2).says("the cap");
    assert_eq!(fixture.requests(), 0);
}

#[test]
fn judge_output_never_overwrites_inputs_or_store() {
    let fixture = JudgeFixture::new(1, &json!({}));
    fixture.folder.write("mine.toml", ichido_profile());
    std::fs::write(fixture.folder.path().join("ichido.db"), "").unwrap();
    for out in ["articles.jsonl", "mine.toml", "ichido.db", "."] {
        let mut command =
            fixture.command(&["articles.jsonl", "--llm", fixture.llm, "--profile", "mine.toml"]);
        let ran = JudgeOutput::new(
            command.args(["--endpoint", &fixture.endpoint(), "--out", out]).output().unwrap(),
        );
        ran.ended_with(2).says("--out");
    }
    assert_eq!(fixture.requests(), 0);
    let left = std::fs::read_dir(fixture.folder.path()).unwrap();
    let parts = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".part"));
    assert_eq!(parts.count(), 0);
}

fn ichido_profile() -> &'static str {
    ichido_llm::articles::Profile::DEFAULT
}

#[test]
fn missing_api_key_is_reported_before_any_call() {
    let fixture = JudgeFixture::new(1, &json!({}));
    for (llm, key) in [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")] {
        let mut command = fixture.command(&["articles.jsonl", "--out", "o", "--llm", llm]);
        JudgeOutput::new(command.env_remove(key).output().unwrap()).ended_with(2).says(&format!("set {key}"));
    }
}

/// The command in the message is the one in the guide.
#[cfg(not(feature = "bedrock"))]
#[test]
fn build_without_bedrock_names_the_build_command() {
    let guide = include_str!("../../../../../docs/guides/judge.md");
    let command = guide.lines().find(|line| line.ends_with(" --features bedrock")).unwrap();
    assert!(command.starts_with("cargo install --locked --path crates/ichido-cli "), "{command}");
    let fixture = JudgeFixture::new(1, &json!({}));
    let asked = fixture.command(&["articles.jsonl", "--out", "o", "--llm", "bedrock:m"]).output().unwrap();
    JudgeOutput::new(asked).ended_with(2).says(&format!("built without Bedrock; build it with `{command}`"));
}
