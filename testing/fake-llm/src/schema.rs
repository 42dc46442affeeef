//! The parts of JSON Schema that providers enforce on models.
//!
//! Guarantee: a schema that the provider refuses is refused here: the constraints on numbers and lengths that Anthropic
//! and Bedrock do not support, and the members that OpenAI's strict mode requires.

use serde_json::{Map, Value};

use crate::wire::{WireResult, Wrong, fault};

/// Keywords that neither Anthropic nor Bedrock supports.
const NOT_TAKEN: [&str; 9] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
];
/// Keywords that hold schemas by name.
const BY_NAME: [&str; 3] = ["properties", "$defs", "definitions"];
/// Keywords that hold a schema, or a list of them.
const INNER: [&str; 4] = ["items", "anyOf", "allOf", "oneOf"];

/// How strict a provider is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subset {
    /// Objects are closed; numbers and lengths have no bounds.
    Claude,
    /// Objects are closed, and all their members are required.
    OpenaiStrict,
}

/// Checks a schema at the location `at` of the request.
pub(crate) fn check(schema: &Value, at: &str, subset: Subset) -> WireResult<()> {
    let Value::Object(members) = schema else {
        return fault(Wrong::Kind, at, "it is not a schema");
    };
    if subset == Subset::Claude
        && let Some(name) = members.keys().find(|name| NOT_TAKEN.contains(&name.as_str()))
    {
        return fault(Wrong::Value, at, format!("the schema's `{name}` is not supported"));
    }
    if members.get("type").is_some_and(is_object_type) {
        check_object(members, at, subset)?;
    }
    for name in BY_NAME {
        for (inner, schema) in members.get(name).and_then(Value::as_object).into_iter().flatten() {
            check(schema, &format!("{at}.{name}.{inner}"), subset)?;
        }
    }
    for name in INNER {
        match members.get(name) {
            Some(Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    check(schema, &format!("{at}.{name}.{index}"), subset)?;
                }
            }
            Some(schema) => check(schema, &format!("{at}.{name}"), subset)?,
            None => (),
        }
    }
    Ok(())
}

fn is_object_type(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

fn check_object(members: &Map<String, Value>, at: &str, subset: Subset) -> WireResult<()> {
    if members.get("additionalProperties") != Some(&Value::Bool(false)) {
        return fault(Wrong::Value, at, "an object's `additionalProperties` must be false");
    }
    if subset == Subset::Claude {
        return Ok(());
    }
    let required = members.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
    let properties = members.get("properties").and_then(Value::as_object);
    match properties.into_iter().flat_map(Map::keys).find(|name| !is_required(name)) {
        Some(name) => {
            fault(Wrong::Value, at, format!("`required` must name every property, and lacks `{name}`"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_schema_keywords_are_found_at_any_depth() {
        let closed = |properties: Value, required: Value| {
            json!({ "type": "object", "properties": properties, "required": required,
                    "additionalProperties": false })
        };
        let good = closed(json!({ "label": { "enum": ["A"] } }), json!(["label"]));
        let bounded = closed(json!({ "sure": { "type": "number", "minimum": 0 } }), json!(["sure"]));
        let open = closed(json!({ "list": { "items": { "type": "object" } } }), json!(["list"]));
        let loose = closed(json!({ "label": {} }), json!([]));
        let location = |schema: &Value, subset| check(schema, "s", subset).err().map(|fault| fault.at);
        assert_eq!(location(&good, Subset::Claude), None);
        assert_eq!(location(&good, Subset::OpenaiStrict), None);
        assert_eq!(location(&bounded, Subset::Claude).as_deref(), Some("s.properties.sure"));
        assert_eq!(location(&bounded, Subset::OpenaiStrict), None);
        assert_eq!(location(&open, Subset::Claude).as_deref(), Some("s.properties.list.items"));
        assert_eq!(location(&loose, Subset::Claude), None);
        assert_eq!(location(&loose, Subset::OpenaiStrict).as_deref(), Some("s"));
        assert_eq!(location(&json!([]), Subset::Claude).as_deref(), Some("s"));
    }
}
