//! Answers, and why the model stopped.

use fake_llm::action::{AnswerShape, ScriptedAction};
use ichido_core::verdict::{Advice, Effect, ErrorCode};
use ichido_llm::models::{FinishReason, Usage};
use serde_json::json;

use crate::fixture::{MODEL, ask, assert_requests, call_error, fake, model};
use crate::raw::Raw;

/// A response of the Converse API.
async fn answering(stop_reason: &str, content: serde_json::Value) -> Raw {
    let body = json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop_reason,
        "usage": {"inputTokens": 12, "outputTokens": 3, "totalTokens": 15, "cacheReadInputTokens": 100},
        "metrics": {"latencyMs": 7},
    });
    Raw::answering(200, "content-type: application/json\r\n", &body.to_string()).await
}

#[tokio::test]
async fn reply_has_request_id_and_token_usage() {
    let fake = fake(ScriptedAction::Say("It is off.".to_owned()));
    let reply = ask(&model(fake.url()).await).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish_reason), ("It is off.", FinishReason::Whole));
    assert!(reply.id.is_some_and(|id| id.starts_with("00000000-0000-4000-8000-")));
    assert!(reply.usage.is_some_and(|usage| 0 < usage.input && 0 < usage.output));
    assert_requests(&fake, 1);
    let seen = fake.seen().last_request.unwrap();
    assert_eq!((seen.model.as_str(), seen.max_tokens), (MODEL, Some(200)));
}

#[tokio::test]
async fn reply_reports_finish_reason() {
    for (shape, finish_reason) in [
        (AnswerShape::Whole, FinishReason::Whole),
        (AnswerShape::CutOff, FinishReason::CutOff),
        (AnswerShape::Filtered, FinishReason::Declined),
    ] {
        let fake = fake(ScriptedAction::Answer(shape));
        let reply = ask(&model(fake.url()).await).await.unwrap();
        assert_eq!(reply.finish_reason, finish_reason, "{shape:?}");
        assert_requests(&fake, 1);
    }
    for (reason, finish_reason) in [
        ("stop_sequence", FinishReason::Whole),
        ("model_context_window_exceeded", FinishReason::CutOff),
        ("guardrail_intervened", FinishReason::Declined),
    ] {
        let raw = answering(reason, json!([{"text": "So."}])).await;
        assert_eq!(ask(&model(raw.url()).await).await.unwrap().finish_reason, finish_reason, "{reason}");
    }
}

#[tokio::test]
async fn reply_text_excludes_reasoning() {
    let thought = json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}});
    let raw = answering("end_turn", json!([thought, {"text": "It "}, {"text": "is."}])).await;
    let reply = ask(&model(raw.url()).await).await.unwrap();
    assert_eq!(reply.text, "It is.");
    assert_eq!(reply.usage, Some(Usage { input: 112, output: 3 }));
}

#[tokio::test]
async fn reply_without_proven_end_is_unusable_and_retried() {
    for reason in ["malformed_model_output", "malformed_tool_use", "tool_use", "something_new"] {
        let raw = answering(reason, json!([{"text": "So."}])).await;
        let call_error = call_error(raw.url()).await;
        assert_eq!(call_error.verdict.code, Some(ErrorCode::AnswerUnusable), "{reason}");
        assert_eq!(
            (call_error.verdict.effect, call_error.verdict.advice),
            (Effect::Done, Advice::RetryAnswer)
        );
        assert!(call_error.why.contains(reason), "{}", call_error.why);
        assert_eq!(raw.requests(), 1);
    }
}

#[tokio::test]
async fn response_from_another_api_is_unusable() {
    for body in [
        "<html>Welcome to the hotel's network</html>",
        "{}",
        "[",
        "{\"output\":{},\"stopReason\":\"end_turn\"}",
    ] {
        let raw = Raw::answering(200, "", body).await;
        let call_error = call_error(raw.url()).await;
        assert_eq!(call_error.verdict.code, Some(ErrorCode::AnswerUnusable), "{body}: {}", call_error.why);
        assert!(!call_error.why.contains("hotel"), "{}", call_error.why);
        assert_eq!(raw.requests(), 1);
    }
}
