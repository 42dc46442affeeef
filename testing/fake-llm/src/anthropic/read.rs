//! Reads a request for a message.

use http::HeaderMap;
use serde_json::Value;

use crate::ask::Ask;
use crate::schema::{self, Subset};
use crate::seen::AskedJson;
use crate::wire::{Object, WireResult, Wrong, fault, header, is_of_other_kind, json};

const MEMBERS: [&str; 17] = [
    "model",
    "messages",
    "max_tokens",
    "cache_control",
    "container",
    "diagnostics",
    "inference_geo",
    "metadata",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "thinking",
    "tool_choice",
    "tools",
];
/// What the versions before the newest also accept: sampling settings.
const MEMBERS_OF_OLD: [&str; 3] = ["temperature", "top_k", "top_p"];
const VERSION_NEWEST: &str = "2026-10-21";
const VERSIONS_OLD: [&str; 2] = ["2023-06-01", "2023-01-01"];
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
const BLOCKS: [&str; 6] = ["text", "image", "document", "search_result", "tool_use", "tool_result"];

/// Reads a request as strictly as the provider.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> WireResult<Ask> {
    if !is_caller_shown(headers) {
        return fault(Wrong::Caller, "x-api-key", "this header and a bearer token are both missing");
    }
    let version = header(headers, "anthropic-version")?;
    let mut known = MEMBERS.to_vec();
    if VERSIONS_OLD.contains(&version) {
        known.extend(MEMBERS_OF_OLD);
    } else if version != VERSION_NEWEST {
        return fault(Wrong::Value, "anthropic-version", format!("`{version}` is not a version"));
    }
    let body = json(headers, body)?;
    let body = Object::read(&body, "", &known)?;
    let mut ask = Ask { model: body.text("model")?.to_owned(), ..Ask::default() };
    body.must("max_tokens")?;
    ask.max_tokens = body.whole_may("max_tokens", 1)?;
    settings(&body)?;
    messages(&body, &mut ask)?;
    ask.asked_json = output_format(&body)?;
    ask.forced(forced_tool(&body)?.map(|(name, schema)| (name, Some(schema))), "tools");
    Ok(ask)
}

/// Accepts either header; the provider's own clients switched from the first to the second.
fn is_caller_shown(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let bearer = text("authorization").strip_prefix("Bearer ").unwrap_or_default();
    !text("x-api-key").is_empty() || !bearer.is_empty()
}

fn settings(body: &Object) -> WireResult<()> {
    body.number_may("temperature", 0.0..=1.0)?;
    body.number_may("top_p", 0.0..=1.0)?;
    body.whole_may("top_k", 0)?;
    body.texts_may("stop_sequences")?;
    body.choice_may("service_tier", &["auto", "standard_only"])?;
    body.object_may("metadata", &["user_id"])?;
    if body.flag_may("stream")? == Some(true) {
        return fault(Wrong::Value, "stream", "streaming is not supported here");
    }
    Ok(())
}

fn messages(body: &Object, ask: &mut Ask) -> WireResult<()> {
    match body.may("system") {
        Some(Value::String(text)) => ask.chars_besides += text.chars().count(),
        Some(_) => blocks(body, "system", &["text"], |text| ask.chars_besides += text.chars().count())?,
        None => (),
    }
    let messages = body.list("messages")?;
    for (index, message) in messages.iter().enumerate() {
        let message = Object::read(message, format!("messages.{index}"), &["role", "content"])?;
        let role = message.choice("role", &["user", "assistant"])?;
        if index == 0 && role != "user" {
            return fault(
                Wrong::Value,
                message.location("role"),
                "the first message must have the role `user`",
            );
        }
        if index + 1 == messages.len() && role != "user" {
            let why = "the conversation must end with a user message; prefilled answers are not supported";
            return fault(Wrong::Value, message.location("role"), why);
        }
        let mut say = |text: &str| match role {
            "user" => ask.add_user_text(text),
            _ => ask.chars_besides += text.chars().count(),
        };
        match message.must("content")? {
            Value::String(text) if text.is_empty() => {
                return fault(Wrong::Value, message.location("content"), "it is empty");
            }
            Value::String(text) => say(text),
            _ => blocks(&message, "content", &BLOCKS, say)?,
        }
    }
    Ok(())
}

/// Reads a list of blocks. Only the kind is read of those that are not text.
fn blocks(parent: &Object, name: &str, kinds: &[&str], mut say: impl FnMut(&str)) -> WireResult<()> {
    for (index, block) in parent.list(name)?.iter().enumerate() {
        let at = parent.location(&format!("{name}.{index}"));
        if is_of_other_kind(block, kinds) {
            continue;
        }
        let block = Object::read(block, at, &["type", "text", "cache_control", "citations"])?;
        block.choice("type", kinds)?;
        match block.text("text")? {
            "" => return fault(Wrong::Value, block.location("text"), "text blocks must not be empty"),
            text => say(text),
        }
    }
    Ok(())
}

fn output_format(body: &Object) -> WireResult<Option<AskedJson>> {
    let Some(config) = body.object_may("output_config", &["effort", "format"])? else { return Ok(None) };
    config.choice_may("effort", &EFFORTS)?;
    let Some(format) = config.object_may("format", &["type", "schema"])? else { return Ok(None) };
    format.choice("type", &["json_schema"])?;
    let schema = format.must("schema")?;
    schema::check(schema, &format.location("schema"), Subset::Claude)?;
    Ok(Some(AskedJson { by: "output_config".to_owned(), schema: Some(schema.clone()) }))
}

/// Returns the one tool that the model must use, with the schema of its input.
fn forced_tool(body: &Object) -> WireResult<Option<(String, Value)>> {
    let mut tools = vec![];
    for (index, tool) in body.list_may("tools")?.unwrap_or_default().iter().enumerate() {
        let known = ["name", "description", "input_schema", "type", "strict", "cache_control"];
        let tool = Object::read(tool, format!("tools.{index}"), &known)?;
        tool.choice_may("type", &["custom"])?;
        let schema = tool.any_object_may("input_schema")?;
        let Some(schema) = schema.filter(|schema| schema["type"] == "object") else {
            return fault(Wrong::Value, tool.location("input_schema.type"), "it must be `object`");
        };
        if tool.flag_may("strict")? == Some(true) {
            schema::check(schema, &tool.location("input_schema"), Subset::Claude)?;
        }
        tools.push((tool.text("name")?.to_owned(), schema.clone()));
    }
    let known = ["type", "name", "disable_parallel_tool_use"];
    let Some(choice) = body.object_may("tool_choice", &known)? else { return Ok(None) };
    match choice.choice("type", &["auto", "any", "tool", "none"])? {
        "tool" => choice.named_tool(tools),
        "any" if tools.is_empty() => fault(Wrong::Value, "tool_choice", "there are no tools"),
        "any" => Ok(tools.into_iter().next()),
        _ => Ok(None),
    }
}
