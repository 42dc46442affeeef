//! Calls that are answered.

use fake_llm::action::{AnswerShape, ProviderFault, ScriptedAction};
use fake_llm::pace::{Limit, Rate};
use fake_llm::script::Script;
use fake_llm::start;
use ichido_llm::models::{
    FinishReason, LimitBy, Model as _, OpenAiSettings, SchemaMode, ServiceSettings, Unusable,
};
use serde_json::Value;

use super::fixture::{BOTH, Dialect, KEY, assert_understood, doing, form, prompt};

#[tokio::test]
async fn model_answers_in_requested_form() {
    for dialect in BOTH {
        let fake = start(Script::default());
        let reply = dialect.reply(&fake).await;
        let read = form().read_reply(&reply).expect("of the form");
        assert!(!read.was_repaired && reply.id.is_some(), "{dialect:?}");
        assert!(reply.usage.is_some_and(|usage| 0 < usage.input && 0 < usage.output), "{dialect:?}");
        assert_understood(&fake);
        let last = fake.seen().last_request.expect("a request");
        assert_eq!((last.model.as_str(), last.max_tokens), ("a-model", Some(200)));
        let (by, is_bounded) = match dialect {
            Dialect::OpenAi => ("response_format", true),
            Dialect::Anthropic => ("output_config", false),
        };
        let asked = last.asked_json.expect("JSON was asked for");
        let bound =
            asked.schema.expect("a schema").pointer("/properties/confidence/minimum").map(Value::is_number);
        assert_eq!((asked.by.as_str(), bound.is_some()), (by, is_bounded), "each gets its own form");
    }
}

/// OpenAI refuses `max_tokens` for its reasoning models, and `reasoning_effort` for all others; a gateway passes that on.
#[tokio::test]
async fn every_model_gets_only_members_that_it_takes() {
    for model in ["gpt-5-mini", "gpt-5-chat-latest", "o3-mini", "gpt-4.1-mini", "a-model", "gpt-oss-20b"] {
        let fake = start(Script { reasoning_tokens: 400, ..Script::default() });
        let service = ServiceSettings { model: model.to_owned(), ..Dialect::OpenAi.service(&fake, &[""]) };
        let report = Dialect::OpenAi.model(service).ask(0, &prompt()).await;
        let reply = report.outcome.unwrap_or_else(|call_error| panic!("{model}: {}", call_error.why));
        assert_understood(&fake);
        // Only 200 tokens are allowed, so 400 of reasoning leave nothing, and a quarter of them leaves enough.
        let takes_effort = ["gpt-5-mini", "o3-mini", "gpt-oss-20b"].contains(&model);
        assert_eq!(reply.finish_reason == FinishReason::Whole, takes_effort, "{model}");
    }
}

/// OpenAI refuses a call whose tokens all went into reasoning.
#[tokio::test]
async fn refusal_for_lack_of_tokens_is_an_answer_that_was_cut_off() {
    let fake = doing(ScriptedAction::Fail(ProviderFault::OutOfTokens));
    let reply = Dialect::OpenAi.reply(&fake).await;
    assert_eq!((reply.finish_reason, reply.text.as_str()), (FinishReason::CutOff, ""));
}

#[tokio::test]
async fn damaged_answers_are_repaired_or_unusable() {
    for dialect in BOTH {
        for (shape, expected) in [
            (AnswerShape::Prose, Ok(true)),
            (AnswerShape::Fence, Ok(true)),
            (AnswerShape::CutOff, Err(Unusable::CutOff)),
            (AnswerShape::Filtered, Err(Unusable::Declined)),
        ] {
            let fake = doing(ScriptedAction::Answer(shape));
            let reply = dialect.reply(&fake).await;
            let read = form().read_reply(&reply).map(|read| read.was_repaired);
            assert_eq!(read, expected, "{dialect:?} {shape:?}");
            assert_understood(&fake);
        }
        let fake = doing(ScriptedAction::Answer(AnswerShape::SchemaMiss));
        let read = form().read_reply(&dialect.reply(&fake).await);
        assert!(matches!(read, Err(Unusable::OtherForm(_))), "{dialect:?} {read:?}");
    }
}

#[tokio::test]
async fn response_reports_remaining_limits() {
    for dialect in BOTH {
        let requests = Rate::Bucket { calls: one(60), per_ms: one(60_000), burst: one(10) };
        let tokens = Rate::Tokens { tokens: one(100_000), per_ms: one(60_000) };
        let limits = [requests, tokens].map(|rate| Limit { rate, endpoint: None, hint: true });
        let fake = start(Script { limits: limits.into(), ..Script::default() });
        let limits = dialect.ask(&fake).await.limits;
        let requests = limits.requests.expect("a counter");
        assert_eq!((requests.limit, requests.remaining), (10, 9), "{dialect:?}");
        let tokens = limits.tokens.expect("a counter");
        assert_eq!(tokens.limit, 100_000, "{dialect:?}");
        assert!(tokens.remaining <= 100_000 - 200, "the longest answer is set aside: {tokens:?}");
    }
}

fn one(number: u32) -> std::num::NonZeroU32 {
    number.try_into().expect("more than 0")
}

#[tokio::test]
async fn endpoint_number_selects_endpoint() {
    for dialect in BOTH {
        let fake = start(Script::default());
        let model = dialect.at(&fake, &["/east", "/west"]);
        assert_eq!(model.endpoints().len(), 2);
        for endpoint in [0, 1, 1] {
            assert!(model.ask(endpoint, &prompt()).await.outcome.is_ok());
        }
        let seen = fake.seen();
        let calls = |endpoint: &str| seen.endpoints.get(endpoint).map(|counts| counts.requests);
        assert_eq!((calls("/east"), calls("/west")), (Some(1), Some(2)), "{dialect:?}");
        let nowhere = model.ask(2, &prompt()).await.outcome.expect_err("there are two");
        assert!(nowhere.why.contains("endpoint 2") && !nowhere.may_be_billed(), "{}", nowhere.why);
    }
}

#[tokio::test]
async fn server_without_schemas_is_asked_for_json_object() {
    let fake = start(Script::default());
    for (schema_mode, asked_by) in
        [(SchemaMode::JsonObject, Some("response_format")), (SchemaMode::None, None)]
    {
        let settings = OpenAiSettings {
            schema_mode,
            limit_by: Some(LimitBy::MaxCompletionTokens),
            ..OpenAiSettings::new(Dialect::OpenAi.service(&fake, &[""]))
        };
        let model = settings.resolve().expect("settings");
        let reply = model.ask(0, &prompt()).await.outcome.expect("a response");
        assert_eq!(reply.finish_reason, FinishReason::Whole);
        let asked = fake.seen().last_request.and_then(|last| last.asked_json);
        assert!(asked.as_ref().is_none_or(|asked| asked.schema.is_none()));
        assert_eq!(asked.map(|asked| asked.by).as_deref(), asked_by);
    }
    assert_understood(&fake);
}

#[tokio::test]
async fn debug_output_shows_no_key_or_prompt() {
    for dialect in BOTH {
        let fake = start(Script::default());
        let service = dialect.service(&fake, &[""]);
        let report = dialect.ask(&fake).await;
        let model = OpenAiSettings::new(service.clone()).resolve().expect("settings");
        let shown = format!("{service:?} {model:?} {report:?} {:?}", prompt());
        for secret in [KEY, "secret knee", "You judge", "label"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
