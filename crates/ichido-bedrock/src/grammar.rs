//! The part of a JSON Schema that Bedrock can hold a model to.
//!
//! Guarantee: whatever fits the whole schema and has no member that the schema does not name fits the part. The part is therefore only looser;
//! the answer is still checked by the whole.
//!
//! Bedrock makes a grammar of the schema, and refuses the call if there is anything in it that it cannot make one of: bounds of numbers, lengths
//! of texts and lists, objects that may have other members. Bounds are left out and put into the description, where the model reads them.

use serde_json::{Map, Value, json};

/// What says the same in the part.
const KEPT: [&str; 6] = ["$ref", "type", "enum", "const", "required", "title"];
/// What the model is told in words instead.
const TOLD: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
];
/// What cannot be left out without the rest meaning something else.
const HINDERS: [&str; 4] = ["allOf", "patternProperties", "prefixItems", "$dynamicRef"];
/// What must be there, one at least, for a value to be described at all.
const DESCRIBES: [&str; 6] = ["$ref", "type", "enum", "const", "anyOf", "oneOf"];
/// What describes a value once more, elsewhere.
const ELSEWHERE: [&str; 3] = ["$ref", "anyOf", "oneOf"];

/// The part; `None` where there is none that would not shut out answers that the whole allows.
pub(crate) fn of(schema: &Value) -> Option<Value> {
    let whole = schema.as_object()?;
    let hinders = HINDERS.iter().any(|name| whole.contains_key(*name));
    let is_elsewhere =
        whole.get("$ref").is_some_and(|place| !place.as_str().is_some_and(|at| at.starts_with("#/")));
    if hinders || is_elsewhere || !DESCRIBES.iter().any(|name| whole.contains_key(*name)) {
        return None;
    }
    let mut part: Map<String, Value> = whole
        .iter()
        .filter(|(name, _)| KEPT.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for name in ["properties", "$defs", "definitions"] {
        if let Some(members) = whole.get(name) {
            part.insert(name.to_owned(), each_member(members)?);
        }
    }
    if let Some(items) = whole.get("items") {
        part.insert("items".to_owned(), of(items)?);
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(choices) = whole.get(name) {
            let choices = choices.as_array()?.iter().map(of).collect::<Option<Vec<_>>>()?;
            // Any of, and exactly one of: both at once cannot be said.
            if part.insert("anyOf".to_owned(), Value::Array(choices)).is_some() {
                return None;
            }
        }
    }
    close(whole, &mut part)?;
    describe(whole, &mut part);
    Some(Value::Object(part))
}

fn each_member(members: &Value) -> Option<Value> {
    let members = members.as_object()?.iter().map(|(name, schema)| Some((name.clone(), of(schema)?)));
    members.collect::<Option<Map<_, _>>>().map(Value::Object)
}

/// An object must say that it has no other members; one that is meant to have some cannot be told.
fn close(whole: &Map<String, Value>, part: &mut Map<String, Value>) -> Option<()> {
    let is_object = match whole.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => whole.contains_key("properties"),
    };
    if !is_object {
        return Some(());
    }
    let is_open = whole.get("additionalProperties").is_some_and(|others| *others != json!(false));
    // Two descriptions of one object, each closed, would shut out each other's members.
    let is_elsewhere_too = ELSEWHERE.iter().any(|name| whole.contains_key(*name));
    if is_open || is_elsewhere_too || !whole.contains_key("properties") {
        return None;
    }
    part.insert("additionalProperties".to_owned(), json!(false));
    Some(())
}

fn describe(whole: &Map<String, Value>, part: &mut Map<String, Value>) {
    let told = TOLD.iter().filter_map(|name| Some(format!("{name}: {}", whole.get(*name)?)));
    let told = told.collect::<Vec<_>>().join(", ");
    let described = match (whole.get("description").and_then(Value::as_str), told.as_str()) {
        (None, "") => return,
        (Some(said), "") => said.to_owned(),
        (None, told) => told.to_owned(),
        (Some(said), told) => format!("{said} ({told})"),
    };
    part.insert("description".to_owned(), Value::String(described));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_told_in_words_and_objects_are_closed() {
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "label": {"enum": ["ACT_NOW", "IGNORE"]},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "how sure"},
                "reasons": {"type": "array", "items": {"type": "string", "maxLength": 80}, "minItems": 2},
            },
            "required": ["label"],
        });
        let part = json!({
            "type": "object",
            "properties": {
                "label": {"enum": ["ACT_NOW", "IGNORE"]},
                "confidence": {"type": "number", "description": "how sure (minimum: 0, maximum: 1)"},
                "reasons": {
                    "type": "array",
                    "items": {"type": "string", "description": "maxLength: 80"},
                    "description": "minItems: 2",
                },
            },
            "required": ["label"],
            "additionalProperties": false,
        });
        assert_eq!(of(&whole), Some(part));
    }

    #[test]
    fn a_member_may_be_called_like_a_bound() {
        let whole = json!({"type": "object", "properties": {"minimum": {"type": "number"}}});
        let part = of(&whole).unwrap();
        assert_eq!(part["properties"]["minimum"], json!({"type": "number"}));
    }

    #[test]
    fn nested_objects_are_closed_too() {
        let inner = json!({"type": ["object", "null"], "properties": {"a": {"type": "string"}}});
        let whole = json!({
            "oneOf": [{"$ref": "#/$defs/inner"}, {"type": "array", "items": inner}],
            "$defs": {"inner": inner},
        });
        let part = of(&whole).unwrap();
        assert_eq!(part["$defs"]["inner"]["additionalProperties"], json!(false));
        assert_eq!(part["anyOf"][1]["items"]["additionalProperties"], json!(false));
        assert_eq!(part["anyOf"][0], json!({"$ref": "#/$defs/inner"}));
        assert!(part.get("oneOf").is_none());
    }

    #[test]
    fn what_cannot_be_told_without_shutting_out_answers_is_left_to_the_prompt() {
        for untold in [
            json!(true),
            json!({}),
            json!({"description": "anything"}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {}, "patternProperties": {"^x": {"type": "string"}}}),
            json!({"type": "array", "items": true}),
            json!({"type": "array", "prefixItems": [{"type": "string"}]}),
            json!({"$ref": "https://example.com/schema"}),
            json!({"$ref": "#"}),
            json!({"allOf": [{"type": "string"}]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "$ref": "#/$defs/b", "$defs": {}}),
            json!({"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]}),
        ] {
            assert_eq!(of(&untold), None, "{untold}");
        }
    }
}
