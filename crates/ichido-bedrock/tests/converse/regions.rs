//! Several regions, one client each.

use fake_llm::Script;
use fake_llm::action::{ProviderFault, ScriptedAction};
use fake_llm::script::ScriptRule;
use ichido_bedrock::{BedrockSettings, EndpointSettings};
use ichido_core::verdict::{Advice, Effect, ErrorCode};
use ichido_llm::models::Model as _;

use crate::fixture::{assert_requests, prompt, settings};

#[tokio::test]
async fn endpoint_index_selects_region() {
    let rule = ScriptRule {
        endpoint: Some("/east".to_owned()),
        ..ScriptRule::new(ScriptedAction::Fail(ProviderFault::Throttle))
    };
    let fake = fake_llm::start(Script { rules: vec![rule], ..Script::default() });
    let endpoint = |region: &str, path: &str| EndpointSettings {
        region: region.to_owned(),
        url: Some(format!("{}{path}", fake.url())),
    };
    let endpoints = vec![endpoint("us-east-1", "/east"), endpoint("us-west-2", "/west/")];
    let model = BedrockSettings { endpoints, ..settings("") }.resolve().await.unwrap();
    let at = fake.address();
    assert_eq!(model.endpoints(), [format!("us-east-1 at {at}/east"), format!("us-west-2 at {at}/west")]);

    let throttled = model.ask(0, &prompt()).await.outcome.unwrap_err();
    assert_eq!(throttled.verdict.code, Some(ErrorCode::RateLimited));
    model.ask(1, &prompt()).await.outcome.unwrap();
    assert_requests(&fake, 2);
    let seen = fake.seen().endpoints;
    assert_eq!((seen["/east"].throttled, seen["/west"].completed), (1, 1));

    let nowhere = model.ask(2, &prompt()).await.outcome.unwrap_err();
    assert_eq!((nowhere.verdict.effect, nowhere.verdict.advice), (Effect::NotDone, Advice::GiveUp));
    assert_requests(&fake, 2);
}
