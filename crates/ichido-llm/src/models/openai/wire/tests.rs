use std::sync::Arc;

use super::*;
use crate::models::AnswerForm;

fn prompt() -> Prompt {
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    let form = AnswerForm::new("answer", schema).expect("a schema");
    Prompt {
        system: Some("Be brief.".to_owned()),
        user: "How many?".to_owned(),
        max_tokens: 7,
        form: Some(Arc::new(form)),
    }
}

fn dialect(schema_mode: SchemaMode, limit_by: LimitBy) -> Dialect {
    Dialect { schema_mode, limit_by, reasons_little: false }
}

#[test]
fn little_reasoning_is_requested_if_the_model_takes_that() {
    let usual = dialect(SchemaMode::None, LimitBy::MaxTokens);
    assert_eq!(body("m", &prompt(), usual).get("reasoning_effort"), None);
    let little = Dialect { reasons_little: true, ..usual };
    assert_eq!(body("m", &prompt(), little)["reasoning_effort"], "low");
}

#[test]
fn request_contains_the_whole_prompt() {
    let schema = prompt().form.expect("a form").schema().clone();
    assert_eq!(
        body("m", &prompt(), dialect(SchemaMode::JsonSchema, LimitBy::MaxCompletionTokens)),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "How many?"},
            ],
            "max_completion_tokens": 7,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": false},
            },
        })
    );
    let plain = Prompt { system: None, form: None, ..prompt() };
    assert_eq!(
        body("m", &plain, dialect(SchemaMode::JsonSchema, LimitBy::MaxTokens)),
        json!({"model": "m", "messages": [{"role": "user", "content": "How many?"}], "max_tokens": 7})
    );
}

#[test]
fn server_without_schemas_gets_schema_in_prompt_or_nothing() {
    let in_words = body("m", &prompt(), dialect(SchemaMode::JsonObject, LimitBy::MaxTokens));
    assert_eq!(in_words["response_format"], json!({"type": "json_object"}));
    let system = in_words["messages"][0]["content"].as_str().expect("words");
    assert!(system.starts_with("Be brief.\n\nAnswer with one JSON object"), "{system}");
    assert!(system.ends_with(r#"{"properties":{"a":{"type":"number"}},"type":"object"}"#), "{system}");
    let nothing = body("m", &prompt(), dialect(SchemaMode::None, LimitBy::MaxTokens));
    assert_eq!(nothing.get("response_format"), None);
    assert_eq!(nothing["messages"][0]["content"], "Be brief.");
}

fn read(choice: &Value) -> Option<(String, FinishReason)> {
    reply(&json!({"choices": [choice]})).map(|reply| (reply.text, reply.finish_reason))
}

#[test]
fn reply_has_finish_reason() {
    let choice = |reason: Value| json!({"message": {"content": "Seven."}, "finish_reason": reason});
    for (reason, finish_reason) in [
        (json!("stop"), FinishReason::Whole),
        (json!(null), FinishReason::Whole),
        (json!("length"), FinishReason::CutOff),
        (json!("abort"), FinishReason::CutOff),
        (json!("tool_calls"), FinishReason::CutOff),
        (json!("content_filter"), FinishReason::Declined),
    ] {
        assert_eq!(read(&choice(reason.clone())), Some(("Seven.".to_owned(), finish_reason)), "{reason}");
    }
    let refused = json!({"message": {"content": null, "refusal": "No."}, "finish_reason": "stop"});
    assert_eq!(read(&refused), Some((String::new(), FinishReason::Declined)));
    let thought = json!({"message": {"content": null}, "finish_reason": "length"});
    assert_eq!(read(&thought), Some((String::new(), FinishReason::CutOff)));
}

#[test]
fn invalid_reply_is_rejected() {
    let silent = json!({"message": {"content": null}, "finish_reason": "stop"});
    assert_eq!(read(&silent), None);
    for body in
        [json!({}), json!([]), json!({"choices": []}), json!({"error": {"message": "no"}}), json!(null)]
    {
        assert!(reply(&body).is_none(), "{body}");
    }
}

#[test]
fn usage_is_read() {
    let choice = json!({"message": {"content": "Seven."}, "finish_reason": "stop"});
    let body =
        json!({"id": "c-1", "choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let reply = reply(&body).expect("a response");
    assert_eq!((reply.id.as_deref(), reply.usage), (Some("c-1"), Some(Usage { input: 5, output: 2 })));
}

#[test]
fn openais_own_hosts_are_known() {
    for ours in
        ["https://api.openai.com/v1", "https://eu.API.openai.com", "https://x.openai.azure.com/openai/v1"]
    {
        assert!(is_openai(ours), "{ours}");
    }
    for other in
        ["http://localhost:11434/v1", "https://openai.com.example/v1", "https://a.example/api.openai.com"]
    {
        assert!(!is_openai(other), "{other}");
    }
}
