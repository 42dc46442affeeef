//! Chat completions on the wire.

use serde_json::{Value, json};

use super::{FormBy, LimitBy};
use crate::models::{FinishReason, Prompt, Reply, Usage};

/// The body of a request.
pub(super) fn body(model: &str, prompt: &Prompt, form_by: FormBy, limit_by: LimitBy) -> Value {
    let form = prompt.form.as_deref();
    let in_words = form.filter(|_| form_by == FormBy::JsonObject).map(|form| {
        format!(
            "Answer with one JSON object and nothing besides. It must fit this JSON Schema: {}",
            form.schema()
        )
    });
    let system: Vec<&str> = [prompt.system.as_deref(), in_words.as_deref()].into_iter().flatten().collect();
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system.join("\n\n")}));
    }
    messages.push(json!({"role": "user", "content": prompt.user}));
    let mut body = json!({"model": model, "messages": messages});
    body[limit_by.as_str()] = prompt.max_tokens.into();
    match (form, form_by) {
        (Some(form), FormBy::JsonSchema) => {
            // Strict is more than a wish, and refused for a schema that it does not take.
            let schema = json!({"name": form.name(), "schema": form.schema(), "strict": form.is_strict()});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
        (Some(_), FormBy::JsonObject) => body["response_format"] = json!({"type": "json_object"}),
        (Some(_), FormBy::Nothing) | (None, _) => (),
    }
    body
}

/// What an answer says; `None` if it is none of this API.
pub(super) fn reply(body: &Value) -> Option<Reply> {
    let choice = body.pointer("/choices/0")?;
    let message = choice.get("message")?;
    let refusal = message.get("refusal").and_then(Value::as_str).filter(|words| !words.is_empty());
    let finish_reason = match choice.get("finish_reason").and_then(Value::as_str) {
        _ if refusal.is_some() => FinishReason::Declined,
        // Some servers do not say why they stopped.
        Some("stop") | None => FinishReason::Whole,
        Some("content_filter") => FinishReason::Declined,
        // `length`, and whatever else a server stops for before it has said all.
        Some(_) => FinishReason::CutOff,
    };
    let text = message.get("content").and_then(Value::as_str);
    // Who declines, or thinks until the tokens are spent, says nothing at times.
    let text = text.or((finish_reason != FinishReason::Whole).then_some(""))?;
    let count = |name: &str| body.pointer(&format!("/usage/{name}")).and_then(Value::as_u64);
    let usage =
        count("prompt_tokens").zip(count("completion_tokens")).map(|(input, output)| Usage { input, output });
    let id = body.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(ToOwned::to_owned);
    Some(Reply { text: text.to_owned(), finish_reason, id, usage })
}

/// Whether an endpoint is OpenAI's own.
pub(super) fn is_openai(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default().to_ascii_lowercase();
    [".openai.com", ".openai.azure.com"].iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests;
