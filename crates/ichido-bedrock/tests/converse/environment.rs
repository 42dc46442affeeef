//! What AWS's environment decides and what it does not. Each case runs in its own process, with its own environment.

use std::process::Command;

use fake_llm::Script;
use fake_llm::action::{ProviderFault, ScriptedAction};
use ichido_bedrock::{BedrockSettings, Credentials};
use ichido_core::verdict::{Advice, Effect, ErrorCode};
use ichido_llm::models::Model as _;

use crate::fixture::{MODEL, ask, assert_requests, fake, settings};

/// Runs an ignored case of this file in a process with only this environment. No machine is asked for credentials.
fn run(case: &str, environment: &[(&str, &str)]) {
    let name = format!("environment::{case}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--ignored", "--nocapture"]).env_clear();
    command.env("AWS_EC2_METADATA_DISABLED", "true").envs(environment.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

const KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIEXAMPLEKEY")];

#[test]
fn keys_and_region_come_from_environment_without_sdk_retries() {
    let retries =
        [("AWS_REGION", "ap-northeast-1"), ("AWS_MAX_ATTEMPTS", "5"), ("AWS_RETRY_MODE", "adaptive")];
    run("environment_keys_and_one_attempt", &[KEYS.as_slice(), &retries].concat());
}

#[tokio::test]
#[ignore = "run by another test with its own environment"]
async fn environment_keys_and_one_attempt() {
    let own = BedrockSettings::new(MODEL).resolve().await.unwrap();
    assert_eq!(own.endpoints(), ["ap-northeast-1"]);

    let fake = fake(ScriptedAction::Fail(ProviderFault::Unavailable));
    let found = BedrockSettings { credentials: Credentials::Found, ..settings(fake.url()) };
    let call_error = ask(&found.resolve().await.unwrap()).await.unwrap_err();
    assert_eq!(call_error.status, Some(503));
    assert_requests(&fake, 1);
    assert_eq!(fake.seen().last_request.unwrap().headers["amz-sdk-request"], "attempt=1; max=1");
}

#[test]
fn given_keys_override_token_in_environment() {
    run("given_keys_sign", &[("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-EXAMPLE")]);
}

#[tokio::test]
#[ignore = "run by another test with its own environment"]
async fn given_keys_sign() {
    // The server requires a signature and accepts no token.
    let fake = fake_llm::start(Script::default());
    ask(&settings(fake.url()).resolve().await.unwrap()).await.unwrap();
    assert_requests(&fake, 1);
}

#[test]
fn without_keys_nothing_is_sent_and_setup_error_is_reported() {
    run("no_keys", &[]);
}

#[tokio::test]
#[ignore = "run by another test with its own environment"]
async fn no_keys() {
    let fake = fake_llm::start(Script::default());
    let found = BedrockSettings { credentials: Credentials::Found, ..settings(fake.url()) };
    let call_error = ask(&found.resolve().await.unwrap()).await.unwrap_err();
    let verdict = call_error.verdict;
    assert_eq!(
        (verdict.code, verdict.effect, verdict.advice),
        (Some(ErrorCode::Unauthorized), Effect::NotDone, Advice::GiveUp),
        "{call_error:?}"
    );
    assert!(call_error.why.starts_with("not sent: no AWS credentials found"), "{}", call_error.why);
    assert_requests(&fake, 0);

    let nowhere = BedrockSettings::new(MODEL).resolve().await.unwrap_err();
    assert_eq!(
        nowhere.to_string(),
        "1 problem\n  endpoints: is empty; name at least one region or set AWS_REGION"
    );
}
