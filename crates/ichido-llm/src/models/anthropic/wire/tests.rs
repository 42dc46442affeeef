use std::sync::Arc;

use super::*;

#[test]
fn request_contains_the_whole_prompt() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "number", "minimum": 0}}});
    let form = Arc::new(AnswerForm::new("answer", schema).expect("a schema"));
    let prompt = Prompt {
        system: Some("Be brief.".to_owned()),
        user: "How many?".to_owned(),
        max_tokens: 7,
        form: Some(form),
    };
    let closed =
        json!({"type": "object", "properties": {"a": {"type": "number"}}, "additionalProperties": false});
    let mut expected = json!({
        "model": "m",
        "max_tokens": 7,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "How many?"}],
        "output_config": {"format": {"type": "json_schema", "schema": closed}},
    });
    assert_eq!(body("m", &prompt, true), expected);
    expected.as_object_mut().expect("an object").remove("output_config");
    assert_eq!(body("m", &prompt, false), expected);
    let map = AnswerForm::new("map", json!({"type": "object"})).expect("a schema");
    let prompt = Prompt { form: Some(Arc::new(map)), ..prompt };
    assert_eq!(body("m", &prompt, true), expected, "an unsupported schema is not sent");
}

fn read(content: &Value, reason: &Value) -> Option<(String, FinishReason)> {
    reply(&json!({"content": content, "stop_reason": reason})).map(|reply| (reply.text, reply.finish_reason))
}

#[test]
fn reply_has_finish_reason() {
    let content = json!([
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "Sev"},
        {"type": "text", "text": "en."},
    ]);
    for (reason, finish_reason) in [
        ("end_turn", FinishReason::Whole),
        ("stop_sequence", FinishReason::Whole),
        ("max_tokens", FinishReason::CutOff),
        ("model_context_window_exceeded", FinishReason::CutOff),
        ("pause_turn", FinishReason::CutOff),
        ("refusal", FinishReason::Declined),
    ] {
        assert_eq!(read(&content, &json!(reason)), Some(("Seven.".to_owned(), finish_reason)), "{reason}");
    }
    assert_eq!(read(&json!([]), &json!("refusal")), Some((String::new(), FinishReason::Declined)));
}

#[test]
fn invalid_reply_is_rejected() {
    let text = json!([{"type": "text", "text": "Seven."}]);
    assert_eq!(read(&text, &json!(null)), None);
    assert_eq!(read(&json!("Seven."), &json!("end_turn")), None);
    assert_eq!(read(&json!([{"type": "text"}]), &json!("end_turn")), None);
    assert!(reply(&json!({})).is_none());
}

#[test]
fn usage_includes_cached_tokens() {
    let usage = json!({"input_tokens": 5, "output_tokens": 2, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100});
    let body = json!({"id": "msg_1", "content": [], "stop_reason": "end_turn", "usage": usage});
    let reply = reply(&body).expect("a response");
    assert_eq!((reply.id.as_deref(), reply.usage), (Some("msg_1"), Some(Usage { input: 115, output: 2 })));
}
