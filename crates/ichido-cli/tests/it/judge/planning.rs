//! The plan is printed before anything is paid for.
// Spec: B5, B9.

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput};

#[test]
fn plan_needs_neither_model_nor_store() {
    let fixture = JudgeFixture::new(120, &json!({}));
    let ran = JudgeOutput::new(fixture.command(&["articles.jsonl", "--plan-only"]).output().unwrap());
    ran.ended_with(0).says("best     7m 30s").says("likely   9m 50s").says("bad day 17m 30s");
    let three =
        fixture.command(&["articles.jsonl", "--plan-only", "--parallel", "3", "--json"]).output().unwrap();
    assert_eq!(JudgeOutput::new(three).json()["plan"]["seconds"]["best"], 300.0);
    let late = fixture.command(&["articles.jsonl", "--plan-only", "--deadline", "15m"]).output().unwrap();
    JudgeOutput::new(late).ended_with(0).says("a bad day does not fit").says("--parallel 3");
    assert!(!fixture.folder.path().join("ichido.db").exists(), "no store was made");
    assert_eq!(fixture.requests(), 0);
}

#[test]
fn judge_flags_override_environment_settings() {
    let fixture = JudgeFixture::new(120, &json!({}));
    let plan = |args: &[&str]| {
        let mut command = fixture.command(&["articles.jsonl", "--plan-only", "--json"]);
        command.args(args).env("BEDROCK_MAX_PARALLEL", "3").env("BEDROCK_REQUEST_INTERVAL", "1.0");
        command
            .env("BEDROCK_MAX_RETRIES", "0")
            .env("BEDROCK_RETRY_BASE_DELAY", "1")
            .env("BEDROCK_MAX_BACKOFF", "4");
        JudgeOutput::new(command.output().unwrap()).json()["plan"]["seconds"].clone()
    };
    // 40 rounds of 6 s, and retries add nothing.
    assert_eq!(plan(&[]), json!({ "best": 240.0, "likely": 240.0, "bad_day": 240.0 }));
    // Ten articles wait 1 + 2 + 4 s, and twenty 1 + 2 + 4 + 4 s.
    assert_eq!(plan(&["--retries", "4"]), json!({ "best": 240.0, "likely": 310.0, "bad_day": 460.0 }));
    assert_eq!(plan(&["--parallel", "2"])["best"], 360.0);
}

#[test]
fn odd_settings_get_sensible_answers() {
    let fixture = JudgeFixture::new(6, &json!({}));
    let plan = |args: &[&str]| {
        let mut command = fixture.command(&["articles.jsonl", "--plan-only"]);
        JudgeOutput::new(command.args(args).output().unwrap())
    };
    let many = plan(&["--parallel", "200"]);
    many.ended_with(0).says("6 at a time").says("1 of 6 is retried 4 times").says("bad day   37.5s");
    plan(&["--parallel", "2000"]).ended_with(2).says("--parallel").says("2000 is not in 1..=1000");
    plan(&["--interval", "2h"]).ended_with(2).says("--interval: ").says("at most");
    // No call starts within the interval.
    plan(&["--deadline", "2"]).ended_with(2).says("--deadline: leaves no time for any call");
    plan(&["--deadline", "3s"]).ended_with(0).says("3s is not enough for one article");
    plan(&["--retries", "1"]).ended_with(0).says("up to 1 retry").says("1 of 6 is retried once");
    plan(&["--retries", "0"]).ended_with(0).says("no retries");
    let endpoint = ["articles.jsonl", "--out", "o", "--llm", fixture.llm, "--endpoint", "nowhere"];
    let ran = JudgeOutput::new(fixture.command(&endpoint).output().unwrap());
    ran.ended_with(2).says("--endpoint: ");
    assert!(!ran.err.contains("base_urls"), "{}", ran.err);
}

/// The commented example shows the defaults.
#[test]
fn env_example_lists_every_setting_with_default() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = std::fs::read_to_string(root.join(".env.example")).unwrap();
    for (name, default) in [
        ("BEDROCK_REQUEST_INTERVAL", "2.5"),
        ("BEDROCK_RETRY_BASE_DELAY", "2"),
        ("BEDROCK_MAX_BACKOFF", "20"),
        ("BEDROCK_MAX_RETRIES", "4"),
        ("BEDROCK_MAX_PARALLEL", "2"),
        ("BEDROCK_MODEL_ID", ""),
        ("BEDROCK_INFERENCE_PROFILE_ARN", ""),
    ] {
        let line =
            example.lines().find_map(|line| line.trim_start_matches("# ").strip_prefix(&format!("{name}=")));
        let value = line.unwrap_or_else(|| panic!("{name} is missing"));
        assert!(default.is_empty() || value == default, "{name}={value}");
    }
    let help = JudgeOutput::new(JudgeFixture::new(1, &json!({})).command(&["--help"]).output().unwrap());
    for name in ["BEDROCK_REQUEST_INTERVAL", "BEDROCK_MODEL_ID", "BEDROCK_MAX_BACKOFF"] {
        help.says(name);
    }
}

#[test]
fn judge_dry_run_reads_store_and_asks_nothing() {
    let fixture = JudgeFixture::new(5, &json!({}));
    fixture
        .judge(&["--dry-run", "--price", "3,15"])
        .ended_with(0)
        .says("0 already judged, 5 to judge")
        .says("at most");
    assert_eq!(fixture.requests(), 0);
    assert!(!fixture.out().exists());
    fixture.judge(&[]).ended_with(0);
    fixture.judge(&["--dry-run"]).ended_with(0).says("5 already judged, 0 to judge");
}
