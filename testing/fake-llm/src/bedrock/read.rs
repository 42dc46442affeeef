//! Reads a Converse request.

use http::HeaderMap;
use serde_json::Value;

use super::signature;
use crate::ask::Ask;
use crate::schema::{self, Subset};
use crate::seen::AskedJson;
use crate::wire::{Object, WireResult, Wrong, fault, json};

const MEMBERS: [&str; 12] = [
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "promptVariables",
    "additionalModelResponseFieldPaths",
    "requestMetadata",
    "performanceConfig",
    "serviceTier",
    "outputConfig",
];
const BLOCKS: [&str; 14] = [
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
    "toolAddition",
    "toolRemoval",
];
const SYSTEM_BLOCKS: [&str; 3] = ["text", "guardContent", "cachePoint"];

/// Reads a request as strictly as the provider. `model` is the model in the path.
pub(crate) fn read(headers: &HeaderMap, model: &str, body: &[u8]) -> WireResult<Ask> {
    signature::check(headers)?;
    let model = decoded(model)?;
    let body = json(headers, body)?;
    let body = Object::read(&body, "", &MEMBERS)?;
    let mut ask = Ask { model, ..Ask::default() };
    if let Some(config) =
        body.object_may("inferenceConfig", &["maxTokens", "temperature", "topP", "stopSequences"])?
    {
        ask.max_tokens = config.whole_may("maxTokens", 1)?;
        config.number_may("temperature", 0.0..=1.0)?;
        config.number_may("topP", 0.0..=1.0)?;
        config.texts_may("stopSequences")?;
    }
    if let Some(blocks) = body.list_may("system")? {
        read_blocks(blocks, "system", &SYSTEM_BLOCKS, |text| ask.chars_besides += text.chars().count())?;
    }
    messages(&body, &mut ask)?;
    ask.asked_json = text_format(&body)?;
    ask.forced(forced_tool(&body)?.map(|(name, schema)| (name, Some(schema))), "toolConfig");
    Ok(ask)
}

fn messages(body: &Object, ask: &mut Ask) -> WireResult<()> {
    let mut turn = "user";
    for (index, message) in body.list("messages")?.iter().enumerate() {
        let message = Object::read(message, format!("messages.{index}"), &["role", "content"])?;
        let role = message.choice("role", &["user", "assistant"])?;
        if role != turn {
            let why = "a conversation must begin with a user turn, and turns must alternate";
            return fault(Wrong::Value, message.location("role"), why);
        }
        turn = if role == "user" { "assistant" } else { "user" };
        read_blocks(message.list("content")?, &message.location("content"), &BLOCKS, |text| match role {
            "user" => ask.add_user_text(text),
            _ => ask.chars_besides += text.chars().count(),
        })?;
    }
    Ok(())
}

/// Reads blocks, each with one member that names its kind. Only texts are read.
fn read_blocks(blocks: &[Value], at: &str, kinds: &[&str], mut say: impl FnMut(&str)) -> WireResult<()> {
    for (index, block) in blocks.iter().enumerate() {
        let block = Object::read(block, format!("{at}.{index}"), kinds)?;
        if block.names().count() != 1 {
            return fault(Wrong::Value, format!("{at}.{index}"), "a block must have exactly one member");
        }
        match block.text_may("text")? {
            Some(text) if text.trim().is_empty() => {
                return fault(Wrong::Value, block.location("text"), "the text is blank");
            }
            Some(text) => say(text),
            None => (),
        }
    }
    Ok(())
}

fn text_format(body: &Object) -> WireResult<Option<AskedJson>> {
    let Some(config) = body.object_may("outputConfig", &["textFormat", "effort"])? else { return Ok(None) };
    let Some(format) = config.object_may("textFormat", &["type", "structure"])? else { return Ok(None) };
    format.choice("type", &["json_schema"])?;
    let structure = format.object("structure", &["jsonSchema"])?;
    let asked = structure.object("jsonSchema", &["schema", "name", "description"])?;
    let location = asked.location("schema");
    // The schema is JSON inside a string here.
    let schema: Value = serde_json::from_str(asked.text("schema")?)
        .or_else(|error| fault(Wrong::Value, &location, format!("it is not JSON: {error}")))?;
    schema::check(&schema, &location, Subset::Claude)?;
    Ok(Some(AskedJson { by: "outputConfig".to_owned(), schema: Some(schema) }))
}

/// Returns the one tool that the model must use, with the schema of its input.
fn forced_tool(body: &Object) -> WireResult<Option<(String, Value)>> {
    let Some(config) = body.object_may("toolConfig", &["tools", "toolChoice"])? else { return Ok(None) };
    let mut tools = vec![];
    for (index, tool) in config.list("tools")?.iter().enumerate() {
        let at = config.location(&format!("tools.{index}"));
        let tool = Object::read(tool, at, &["toolSpec", "systemTool", "cachePoint"])?;
        let known = ["name", "description", "inputSchema", "strict"];
        let Some(spec) = tool.object_may("toolSpec", &known)? else { continue };
        let schema = spec.object("inputSchema", &["json"])?;
        tools.push((spec.text("name")?.to_owned(), schema.must("json")?.clone()));
    }
    let Some(choice) = config.object_may("toolChoice", &["auto", "any", "tool"])? else { return Ok(None) };
    if let Some(tool) = choice.object_may("tool", &["name"])? {
        return tool.named_tool(tools);
    }
    Ok(if choice.may("any").is_some() { tools.into_iter().next() } else { None })
}

/// Decodes the model's name or ARN from the path.
fn decoded(model: &str) -> WireResult<String> {
    let wrong = |why: &str| fault(Wrong::Value, "modelId", why);
    if model.is_empty() || model.contains('/') {
        return wrong("it is one path segment; encode the slashes in it");
    }
    let mut bytes = Vec::with_capacity(model.len());
    let mut rest = model;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let Some(byte) = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return wrong("a `%` in it is not followed by two hexadecimal digits");
        };
        bytes.push(byte);
        rest = &after[2..];
    }
    bytes.extend(rest.bytes());
    String::from_utf8(bytes).or_else(|_| wrong("it is not UTF-8"))
}
