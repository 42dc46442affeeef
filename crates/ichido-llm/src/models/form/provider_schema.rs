//! Adapts the schema to providers. Each supports only a part of JSON Schema and refuses the rest.

use serde_json::{Map, Value};

use super::AnswerForm;

/// Keywords that OpenAI's strict mode supports.
const STRICT: [&str; 21] = [
    "type",
    "enum",
    "const",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "anyOf",
    "$ref",
    "$defs",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "format",
];
/// Keywords that Anthropic and Bedrock support unchanged.
const CLOSED: [&str; 8] = ["type", "enum", "const", "title", "description", "default", "required", "$ref"];
/// The string formats that they support.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// Keywords that hold schemas by name.
const BY_NAME: [&str; 3] = ["properties", "$defs", "definitions"];

impl AnswerForm {
    /// Returns whether OpenAI's strict mode supports the schema.
    ///
    /// All objects must be closed, all their members required, and every keyword known to that mode.
    pub fn is_strict(&self) -> bool {
        let is_object = self.schema().get("type").and_then(Value::as_str) == Some("object");
        is_object && is_strict(self.schema())
    }

    /// Returns the schema for Anthropic and Bedrock; `None` if too little would be left.
    ///
    /// Objects are closed. Bounds on numbers and lengths are removed and checked here when the answer arrives.
    pub fn closed_schema(&self) -> Option<Value> {
        closed(self.schema())
    }
}

fn is_strict(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    let is_known = members.keys().all(|name| STRICT.contains(&name.as_str()));
    let inner = BY_NAME.iter().filter_map(|name| members.get(*name)?.as_object()).flat_map(Map::values);
    let lists = members.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    is_known && is_closed_and_whole(members) && inner.chain(lists).chain(members.get("items")).all(is_strict)
}

/// Returns whether a schema that allows objects allows only the members it names, and requires all of them.
fn is_closed_and_whole(members: &Map<String, Value>) -> bool {
    if !may_be_object(members) {
        return true;
    }
    let required = members.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
    members.get("additionalProperties") == Some(&Value::Bool(false))
        && members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
            .all(is_required)
}

fn may_be_object(members: &Map<String, Value>) -> bool {
    let is_object = |kind: &Value| kind == "object";
    members.contains_key("properties")
        || members.get("type").is_some_and(|kind| {
            is_object(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_object))
        })
}

fn closed(schema: &Value) -> Option<Value> {
    let members = match schema {
        Value::Bool(true) => return Some(Value::Object(Map::new())),
        Value::Object(members) => members,
        _ => return None,
    };
    let mut supported = Map::new();
    for (name, value) in members {
        match name.as_str() {
            known if CLOSED.contains(&known) => drop(supported.insert(name.clone(), value.clone())),
            "format" if FORMATS.iter().any(|format| value == format) => {
                supported.insert(name.clone(), value.clone());
            }
            "minItems" if value == 0 || value == 1 => drop(supported.insert(name.clone(), value.clone())),
            known if BY_NAME.contains(&known) => {
                let inner =
                    value.as_object()?.iter().map(|(name, schema)| Some((name.clone(), closed(schema)?)));
                supported.insert(name.clone(), Value::Object(inner.collect::<Option<_>>()?));
            }
            "items" => drop(supported.insert(name.clone(), closed(value)?)),
            "anyOf" | "allOf" => drop(supported.insert(name.clone(), all_closed(value)?)),
            // `anyOf` is the closest that is supported; that exactly one fits is checked here.
            "oneOf" => drop(supported.insert("anyOf".to_owned(), all_closed(value)?)),
            _ => (),
        }
    }
    if may_be_object(members) {
        // An object with arbitrary members cannot be expressed: closed, it would have none.
        members.get("properties").filter(|names| names.as_object().is_some_and(|names| !names.is_empty()))?;
        supported.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(supported))
}

fn all_closed(schemas: &Value) -> Option<Value> {
    schemas.as_array()?.iter().map(closed).collect::<Option<Vec<_>>>().map(Value::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(schema: Value) -> AnswerForm {
        AnswerForm::new("form", schema).expect("a schema")
    }

    fn judgement() -> Value {
        json!({
            "type": "object",
            "properties": {
                "label": {"enum": ["FYI", "IGNORE"]},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "reason": {"type": "string"},
            },
            "required": ["label", "confidence", "reason"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn strict_schema_follows_openai_rules() {
        assert!(form(judgement()).is_strict());
        let mut open = judgement();
        open["additionalProperties"] = json!(true);
        let mut partly = judgement();
        partly["required"] = json!(["label"]);
        let mut deep = judgement();
        deep["properties"]["reason"] = json!({"type": "array", "items": {"type": "object"}});
        let mut long = judgement();
        long["properties"]["reason"]["maxLength"] = json!(9);
        for schema in [open, partly, deep, long, json!({}), json!(true), json!({"type": "string"})] {
            assert!(!form(schema.clone()).is_strict(), "{schema}");
        }
    }

    #[test]
    fn closed_schema_omits_refused_keywords() {
        let mut expected = judgement();
        expected["properties"]["confidence"] = json!({"type": "number"});
        assert_eq!(form(judgement()).closed_schema(), Some(expected));
        let loose = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": ["object", "null"],
            "properties": {
                "of": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
                "all": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"$ref": "#/$defs/one"}},
                "when": {"type": "string", "format": "date-time"},
                "code": {"type": "string", "format": "regex", "pattern": "^a+$"},
            },
            "$defs": {"one": {"properties": {"a": true}}},
        });
        let expected = json!({
            "type": ["object", "null"],
            "properties": {
                "of": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "all": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/one"}},
                "when": {"type": "string", "format": "date-time"},
                "code": {"type": "string"},
            },
            "$defs": {"one": {"properties": {"a": {}}, "additionalProperties": false}},
            "additionalProperties": false,
        });
        assert_eq!(form(loose).closed_schema(), Some(expected));
    }

    #[test]
    fn object_with_any_members_has_no_closed_schema() {
        let map = json!({"type": "object", "additionalProperties": {"type": "number"}});
        assert_eq!(form(map.clone()).closed_schema(), None);
        assert_eq!(form(json!({"type": "array", "items": map})).closed_schema(), None);
        assert_eq!(form(json!(false)).closed_schema(), None);
    }
}
