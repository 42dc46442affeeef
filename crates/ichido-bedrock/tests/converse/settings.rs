//! Invalid settings, and which id is called.

use std::time::Duration;

use fake_llm::Script;
use ichido_bedrock::{BedrockSettings, Credentials, EndpointSettings, Keys};
use ichido_llm::models::{MAX_ENDPOINTS, Model as _};

use crate::fixture::{MODEL, SECRET_KEY, TOKEN, ask, assert_requests, settings};

const ARN: &str = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/ab12cd";

async fn problem_settings(settings: BedrockSettings) -> Vec<String> {
    let problems = settings.resolve().await.unwrap_err();
    assert!(!problems.to_string().contains("SECRET"), "{problems}");
    problems.0.into_iter().map(|problem| problem.place).collect()
}

#[tokio::test]
async fn profile_is_called_and_model_keeps_its_name() {
    for (model_id, arn, name, called) in
        [(Some(MODEL), None, MODEL, MODEL), (Some(MODEL), Some(ARN), MODEL, ARN), (None, Some(ARN), ARN, ARN)]
    {
        let fake = fake_llm::start(Script::default());
        let (model_id, arn) = (model_id.map(str::to_owned), arn.map(str::to_owned));
        let settings = BedrockSettings { model_id, inference_profile_arn: arn, ..settings(fake.url()) };
        let model = settings.resolve().await.unwrap();
        assert_eq!(model.name(), name);
        ask(&model).await.unwrap();
        assert_requests(&fake, 1);
        assert_eq!(fake.seen().last_request.unwrap().model, called);
    }
}

#[tokio::test]
async fn all_problems_are_reported_together_without_secrets() {
    let endpoint =
        |region: &str, url: &str| EndpointSettings { region: region.to_owned(), url: Some(url.to_owned()) };
    let wrong = BedrockSettings {
        model_id: Some("a model".to_owned()),
        inference_profile_arn: Some("eu.anthropic.claude".to_owned()),
        endpoints: vec![
            endpoint("Frankfurt", "https://example.com"),
            endpoint("eu-central-1", "example.com"),
            endpoint("eu-central-1", "ftp://example.com"),
            endpoint("eu-central-1", "https://SECRET@example.com"),
            endpoint("eu-central-1", "https://example.com?SECRET"),
            EndpointSettings::region("eu-west-1"),
            EndpointSettings::region("eu-west-1"),
        ],
        credentials: Credentials::Given(Keys {
            access_key_id: String::new(),
            secret_access_key: "SECRET with a space".to_owned(),
            session_token: Some("SECRET\n".to_owned()),
        }),
        connect_timeout: Duration::ZERO,
        timeout: Duration::from_hours(2),
        ..settings("")
    };
    let expected = [
        "model_id",
        "inference_profile_arn",
        "endpoints[0].region",
        "endpoints[1].url",
        "endpoints[2].url",
        "endpoints[3].url",
        "endpoints[4].url",
        "endpoints[6]",
        "timeout",
        "connect_timeout",
        "credentials.access_key_id",
        "credentials.secret_access_key",
        "credentials.session_token",
    ];
    assert_eq!(problem_settings(wrong).await, expected);

    let nameless = BedrockSettings { model_id: None, ..settings("http://localhost") };
    assert_eq!(problem_settings(nameless).await, ["model_id"]);
    let regions = (0..=MAX_ENDPOINTS).map(|index| EndpointSettings::region(format!("region-{index}")));
    let many = BedrockSettings { endpoints: regions.collect(), ..settings("") };
    assert_eq!(problem_settings(many).await, ["endpoints"]);
}

#[tokio::test]
async fn settings_and_model_show_no_secret() {
    let settings = settings("http://localhost:1");
    let shown = format!("{settings:?} {:?}", settings.resolve().await.unwrap());
    assert!(shown.contains("AKIAIOSFODNN7EXAMPLE"), "{shown}");
    assert!(!shown.contains(SECRET_KEY) && !shown.contains(TOKEN), "{shown}");
}
