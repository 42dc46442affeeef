//! The wire format of chat completions.

use serde_json::{Value, json};

use super::{LimitBy, SchemaMode};
use crate::models::{FinishReason, Prompt, Reply, Usage};

/// What the server takes.
#[derive(Clone, Copy)]
pub(super) struct Dialect {
    pub(super) schema_mode: SchemaMode,
    pub(super) limit_by: LimitBy,
    /// Whether to ask for little reasoning.
    pub(super) reasons_little: bool,
}

/// Builds the body of a request.
pub(super) fn body(model: &str, prompt: &Prompt, dialect: Dialect) -> Value {
    let Dialect { schema_mode, limit_by, reasons_little } = dialect;
    let form = prompt.form.as_deref();
    let in_words = form.filter(|_| schema_mode == SchemaMode::JsonObject).map(|form| {
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
    if reasons_little {
        body["reasoning_effort"] = "low".into();
    }
    match (form, schema_mode) {
        (Some(form), SchemaMode::JsonSchema) => {
            // Strict mode is enforced, and refused for a schema that it does not support.
            let schema = json!({"name": form.name(), "schema": form.schema(), "strict": form.is_strict()});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
        (Some(_), SchemaMode::JsonObject) => body["response_format"] = json!({"type": "json_object"}),
        (Some(_), SchemaMode::None) | (None, _) => (),
    }
    body
}

/// Reads a response; `None` if it is not from this API.
pub(super) fn reply(body: &Value) -> Option<Reply> {
    let choice = body.pointer("/choices/0")?;
    let message = choice.get("message")?;
    let refusal = message.get("refusal").and_then(Value::as_str).filter(|words| !words.is_empty());
    let finish_reason = match choice.get("finish_reason").and_then(Value::as_str) {
        _ if refusal.is_some() => FinishReason::Declined,
        // Some servers do not say why they stopped.
        Some("stop") | None => FinishReason::Whole,
        Some("content_filter") => FinishReason::Declined,
        // `length`, and other reasons to stop early.
        Some(_) => FinishReason::CutOff,
    };
    let text = message.get("content").and_then(Value::as_str);
    // A model that declines, or spends all tokens on reasoning, may return no text.
    let text = text.or((finish_reason != FinishReason::Whole).then_some(""))?;
    let count = |name: &str| body.pointer(&format!("/usage/{name}")).and_then(Value::as_u64);
    let usage =
        count("prompt_tokens").zip(count("completion_tokens")).map(|(input, output)| Usage { input, output });
    let id = body.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(ToOwned::to_owned);
    Some(Reply { text: text.to_owned(), finish_reason, id, usage })
}

/// Returns whether an endpoint is OpenAI's own.
pub(super) fn is_openai(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default().to_ascii_lowercase();
    [".openai.com", ".openai.azure.com"].iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests;
