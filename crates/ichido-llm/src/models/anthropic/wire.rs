//! The wire format of the Messages API.

use serde_json::{Value, json};

use crate::models::{AnswerForm, FinishReason, Prompt, Reply, Usage};

/// Builds the body of a request.
pub(super) fn body(model: &str, prompt: &Prompt, tells_form: bool) -> Value {
    let messages = json!([{"role": "user", "content": prompt.user}]);
    let mut body = json!({"model": model, "max_tokens": prompt.max_tokens, "messages": messages});
    if let Some(system) = &prompt.system {
        body["system"] = system.as_str().into();
    }
    let form = prompt.form.as_deref().filter(|_| tells_form);
    if let Some(schema) = form.and_then(AnswerForm::closed_schema) {
        body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    }
    body
}

/// Reads a response; `None` if it is not from this API.
pub(super) fn reply(body: &Value) -> Option<Reply> {
    let blocks = body.get("content")?.as_array()?;
    let is_text = |block: &&Value| block.get("type").and_then(Value::as_str) == Some("text");
    let text: Option<String> =
        blocks.iter().filter(is_text).map(|block| block.get("text").and_then(Value::as_str)).collect();
    let finish_reason = match body.get("stop_reason")?.as_str()? {
        "end_turn" | "stop_sequence" => FinishReason::Whole,
        "refusal" => FinishReason::Declined,
        // `max_tokens`, `model_context_window_exceeded`, and other reasons to stop early.
        _ => FinishReason::CutOff,
    };
    let count = |name: &str| body.pointer(&format!("/usage/{name}")).and_then(Value::as_u64);
    let usage = count("input_tokens").zip(count("output_tokens")).map(|(input, output)| {
        // Tokens written to or read from a cache are counted separately, but are part of the prompt.
        let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
        let cached = cached.into_iter().filter_map(count).fold(0, u64::saturating_add);
        Usage { input: input.saturating_add(cached), output }
    });
    let id = body.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(ToOwned::to_owned);
    Some(Reply { text: text?, finish_reason, id, usage })
}

#[cfg(test)]
mod tests;
