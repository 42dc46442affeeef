//! A body that a schema allows.

use serde_json::{Map, Value, json};

use super::resolved;
use crate::target::MARKER;

/// The maximum nesting of a body that is built.
const MAX_DEPTH: usize = 16;
/// The length of what replaces the marker, such as `probe-01234567-p06`.
const MARKER_CHARS: u64 = 18;
/// The largest number of characters or elements that is built.
const MAX_BUILT: u64 = 1_000;

/// Returns a body as text, or says why there is none.
pub(super) fn built(document: &Value, body: &Value) -> Result<String, String> {
    let Some(kinds) = body["content"].as_object() else { return Ok(String::new()) };
    let json = kinds.iter().find(|(kind, _)| kind.starts_with("application/json") || kind.ends_with("+json"));
    let (_, media) = json.ok_or("its body is not JSON; probe it with a URL")?;
    let first = media["examples"].as_object().and_then(|all| all.values().next());
    let given = media.get("example").or_else(|| resolved(document, first?).get("value"));
    if let Some(example) = given {
        return Ok(example.to_string());
    }
    Ok(sample(document, &media["schema"], MAX_DEPTH).to_string())
}

/// Returns a value that a schema allows, as far as it can be told.
fn sample(document: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolved(document, schema);
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    let first = |name: &str| schema[name].as_array().and_then(|all| all.first());
    let given = schema.get("example").or_else(|| first("examples")).or_else(|| schema.get("default"));
    if let Some(value) = given.or_else(|| schema.get("const")).or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(one) = first("oneOf").or_else(|| first("anyOf")) {
        return sample(document, one, depth);
    }
    let kind = schema["type"].as_str().or_else(|| first("type").and_then(Value::as_str));
    match kind {
        Some("integer" | "number") => number(schema),
        Some("boolean") => json!(true),
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(1).clamp(1, MAX_BUILT);
            (0..count).map(|_| sample(document, &schema["items"], depth)).collect()
        }
        Some("string") => json!(text(schema)),
        _ => object(document, schema, depth),
    }
}

/// Returns the members that are required, of the schema and of those that it combines; if none is, all that a caller may send.
fn object(document: &Value, schema: &Value, depth: usize) -> Value {
    let mut members = Map::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        if let Value::Object(more) = sample(document, part, depth) {
            members.extend(more);
        }
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_free = required.is_empty() && members.is_empty();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let may_send = resolved(document, inner)["readOnly"] != true;
        let is_sent = required.contains(&name.as_str()) || is_free;
        if is_sent && may_send {
            members.insert(name.clone(), sample(document, inner, depth));
        }
    }
    Value::Object(members)
}

fn number(schema: &Value) -> Value {
    let least = schema["minimum"].as_f64();
    let above = schema["exclusiveMinimum"].as_f64().map(|least| least.floor() + 1.0);
    let chosen = least.map(f64::ceil).or(above).unwrap_or(1.0);
    let chosen = schema["maximum"].as_f64().map_or(chosen, |most| chosen.min(most));
    // A count of money or goods that a double holds exactly.
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number that a schema names, or 1")]
    if chosen.fract() == 0.0 { json!(chosen as i64) } else { json!(chosen) }
}

/// Returns a text of the schema's format. A free text carries the marker, so that its effects can be counted.
fn text(schema: &Value) -> String {
    match schema["format"].as_str() {
        Some("uuid") => "01a1df2e-24dc-702a-8000-3798d20b2380".to_owned(),
        Some("date-time") => "2026-01-01T00:00:00Z".to_owned(),
        Some("date") => "2026-01-01".to_owned(),
        Some("email") => "probe@example.org".to_owned(),
        Some("uri" | "url") => format!("https://example.org/{MARKER}"),
        _ => {
            let least = schema["minLength"].as_u64().unwrap_or(0).min(MAX_BUILT);
            let most = schema["maxLength"].as_u64().unwrap_or(MAX_BUILT);
            let filled = |count: u64| "p".repeat(usize::try_from(count).unwrap_or_default());
            if most < MARKER_CHARS {
                return filled(most);
            }
            MARKER.to_owned() + &filled(least.saturating_sub(MARKER_CHARS))
        }
    }
}
