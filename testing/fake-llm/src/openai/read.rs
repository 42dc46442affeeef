//! Reads a request for a chat completion.

use http::HeaderMap;
use serde_json::Value;

use crate::ask::Ask;
use crate::schema::{self, Subset};
use crate::seen::AskedJson;
use crate::wire::{Object, WireResult, Wrong, fault, is_of_other_kind, json};

const MEMBERS: [&str; 35] = [
    "model",
    "messages",
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];
const PARTS: [&str; 5] = ["text", "image_url", "input_audio", "file", "refusal"];
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const MAX_SCHEMA_NAME_LEN: usize = 64;

/// Reads a request as strictly as the provider.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> WireResult<Ask> {
    let caller = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if caller.strip_prefix("Bearer ").is_none_or(str::is_empty) {
        return fault(Wrong::Caller, "authorization", "the bearer token is missing");
    }
    let body = json(headers, body)?;
    let body = Object::read(&body, "", &MEMBERS)?;
    let mut ask = Ask { model: body.text("model")?.to_owned(), ..Ask::default() };
    settings(&body)?;
    suits_model(&ask.model, &body)?;
    ask.is_low_effort = body.text_may("reasoning_effort")? == Some("low");
    ask.max_tokens = match (body.whole_may("max_completion_tokens", 1)?, body.whole_may("max_tokens", 1)?) {
        (Some(_), Some(_)) => {
            return fault(Wrong::Value, "max_tokens", "it cannot be combined with `max_completion_tokens`");
        }
        (new, old) => new.or(old),
    };
    let mut besides = String::new();
    for (index, value) in body.list("messages")?.iter().enumerate() {
        message(value, &format!("messages.{index}"), &mut ask, &mut besides)?;
    }
    ask.chars_besides = besides.chars().count();
    ask.asked_json = response_format(&body)?;
    let is_json_named = [&ask.text, &besides].iter().any(|text| text.to_lowercase().contains("json"));
    if ask.asked_json.as_ref().is_some_and(|asked| asked.schema.is_none()) && !is_json_named {
        let why = "to use `response_format` of type `json_object` the messages must contain the word json";
        return fault(Wrong::Value, "messages", why);
    }
    ask.forced(forced_tool(&body)?, "tools");
    Ok(ask)
}

fn settings(body: &Object) -> WireResult<()> {
    body.number_may("temperature", 0.0..=2.0)?;
    body.number_may("top_p", 0.0..=1.0)?;
    body.number_may("frequency_penalty", -2.0..=2.0)?;
    body.number_may("presence_penalty", -2.0..=2.0)?;
    body.choice_may("reasoning_effort", &EFFORTS)?;
    body.text_may("user")?;
    if body.whole_may("n", 1)?.is_some_and(|choices| 1 < choices) {
        return fault(Wrong::Value, "n", "only one choice is supported here");
    }
    if body.flag_may("stream")? == Some(true) {
        return fault(Wrong::Value, "stream", "streaming is not supported here");
    }
    Ok(())
}

/// Refuses members that OpenAI's models of this name refuse. Any other name may be of another server.
fn suits_model(model: &str, body: &Object) -> WireResult<()> {
    let is_of = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
    let reasons = is_of(&["gpt-5", "o1", "o3", "o4"]);
    if reasons && body.may("max_tokens").is_some() {
        let why = "it is not supported with this model; use `max_completion_tokens`";
        return fault(Wrong::Value, "max_tokens", why);
    }
    let takes_no_effort = is_of(&["gpt-4", "gpt-3.5", "o1-mini"]) || reasons && model.contains("chat");
    if takes_no_effort && body.may("reasoning_effort").is_some() {
        return fault(Wrong::Value, "reasoning_effort", "it is not supported with this model");
    }
    Ok(())
}

fn message(value: &Value, at: &str, ask: &mut Ask, besides: &mut String) -> WireResult<()> {
    let known = ["role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id"];
    let message = Object::read(value, at, &known)?;
    let role = message.choice("role", &ROLES)?;
    if role == "tool" {
        message.text("tool_call_id")?;
    }
    let mut say = |text: &str| match role {
        "user" => ask.add_user_text(text),
        _ => besides.push_str(text),
    };
    match message.may("content") {
        Some(Value::String(text)) => say(text),
        Some(_) => parts(&message, say)?,
        // A model that only used tools has said nothing.
        None if role == "assistant" && message.may("tool_calls").is_some() => (),
        None => message.must("content").map(|_| ())?,
    }
    Ok(())
}

/// Reads the parts of a message. Only the kind is read of those that are not text.
fn parts(message: &Object, mut say: impl FnMut(&str)) -> WireResult<()> {
    for (index, part) in message.list("content")?.iter().enumerate() {
        let at = message.location(&format!("content.{index}"));
        if is_of_other_kind(part, &PARTS) {
            continue;
        }
        let part = Object::read(part, at, &["type", "text"])?;
        part.choice("type", &PARTS)?;
        say(part.text("text")?);
    }
    Ok(())
}

fn response_format(body: &Object) -> WireResult<Option<AskedJson>> {
    let by = "response_format";
    let Some(format) = body.object_may(by, &["type", "json_schema"])? else { return Ok(None) };
    match format.choice("type", &["text", "json_object", "json_schema"])? {
        "json_object" => return Ok(Some(AskedJson { by: by.to_owned(), schema: None })),
        "json_schema" => (),
        _ => return Ok(None),
    }
    let asked = format.object("json_schema", &["name", "description", "schema", "strict"])?;
    name(&asked)?;
    let schema = asked.must("schema")?;
    if asked.flag_may("strict")? == Some(true) {
        schema::check(schema, &asked.location("schema"), Subset::OpenaiStrict)?;
    }
    Ok(Some(AskedJson { by: by.to_owned(), schema: Some(schema.clone()) }))
}

/// Checks a name of a schema or function.
fn name<'a>(of: &Object<'a>) -> WireResult<&'a str> {
    let name = of.text("name")?;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_plain && (1..=MAX_SCHEMA_NAME_LEN).contains(&name.len()) {
        return Ok(name);
    }
    fault(Wrong::Value, of.location("name"), "it must be 1 to 64 letters, digits, `_` or `-`")
}

/// Returns the one function that the model must call, with the schema of its arguments.
fn forced_tool(body: &Object) -> WireResult<Option<(String, Option<Value>)>> {
    let mut tools = vec![];
    for (index, tool) in body.list_may("tools")?.unwrap_or_default().iter().enumerate() {
        let tool = Object::read(tool, format!("tools.{index}"), &["type", "function"])?;
        tool.choice("type", &["function"])?;
        let function = tool.object("function", &["name", "description", "parameters", "strict"])?;
        let schema = function.any_object_may("parameters")?;
        if let (Some(true), Some(schema)) = (function.flag_may("strict")?, schema) {
            schema::check(schema, &function.location("parameters"), Subset::OpenaiStrict)?;
        }
        tools.push((name(&function)?.to_owned(), schema.cloned()));
    }
    match body.may("tool_choice") {
        None => Ok(None),
        Some(Value::String(choice)) => match choice.as_str() {
            "none" | "auto" => Ok(None),
            "required" if !tools.is_empty() => Ok(tools.into_iter().next()),
            _ => fault(Wrong::Value, "tool_choice", format!("`{choice}` is not supported here")),
        },
        Some(_) => {
            let choice = body.object("tool_choice", &["type", "function"])?;
            choice.choice("type", &["function"])?;
            let function = choice.object("function", &["name"])?;
            function.named_tool(tools)
        }
    }
}
