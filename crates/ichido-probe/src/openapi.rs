//! The state-changing operations of an `OpenAPI` document, with a body built from its schema.

use serde_json::{Map, Value, json};

use crate::target::MARKER;

/// The largest document that is read.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The maximum nesting of a body that is built.
const MAX_DEPTH: usize = 16;
const METHODS: [&str; 4] = ["post", "put", "patch", "delete"];

/// An operation that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiOperation {
    /// The method, in upper case.
    pub method: String,
    /// The path, with the server's base path, if the document has one.
    pub path: String,
    /// A body that its schema allows; empty if it has none.
    pub body: String,
    /// Why it cannot be tested.
    pub skipped: Option<String>,
}

/// Why a text is not an `OpenAPI` document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiError(pub String);

impl std::fmt::Display for OpenApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenApiError {}

/// Returns the state-changing operations of a document, in its order.
pub fn operations(text: &str) -> Result<Vec<OpenApiOperation>, OpenApiError> {
    let document: Value = serde_json::from_str(text)
        .map_err(|error| OpenApiError(format!("is not JSON: {error}; convert YAML to JSON first")))?;
    let paths = document["paths"].as_object().ok_or_else(|| OpenApiError("has no paths".to_owned()))?;
    let mut found = Vec::new();
    for (path, item) in paths {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                found.push(read(&document, path, method, operation));
            }
        }
    }
    Ok(found)
}

fn read(document: &Value, path: &str, method: &str, operation: &Value) -> OpenApiOperation {
    let body = body(document, resolved(document, &operation["requestBody"]));
    let skipped = if path.contains('{') {
        Some("its path has parameters; probe it with a URL".to_owned())
    } else {
        body.as_ref().err().cloned()
    };
    OpenApiOperation {
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        body: body.unwrap_or_default(),
        skipped,
    }
}

fn body(document: &Value, body: &Value) -> Result<String, String> {
    let Some(kinds) = body["content"].as_object() else { return Ok(String::new()) };
    let json = kinds.iter().find(|(kind, _)| kind.starts_with("application/json") || kind.ends_with("+json"));
    let (_, media) = json.ok_or("its body is not JSON")?;
    if let Some(example) = media.get("example") {
        return Ok(example.to_string());
    }
    Ok(sample(document, &media["schema"], MAX_DEPTH).to_string())
}

/// Follows a reference inside the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let mut value = value;
    for _ in 0..MAX_DEPTH {
        let Some(pointer) = value["$ref"].as_str().and_then(|text| text.strip_prefix('#')) else { break };
        value = document.pointer(pointer).unwrap_or(&Value::Null);
    }
    value
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
    if let Some(all) = schema["allOf"].as_array() {
        let mut members = Map::new();
        for part in all {
            if let Value::Object(more) = sample(document, part, depth) {
                members.extend(more);
            }
        }
        return Value::Object(members);
    }
    if let Some(one) = first("oneOf").or_else(|| first("anyOf")) {
        return sample(document, one, depth);
    }
    let kind = schema["type"].as_str().or_else(|| first("type").and_then(Value::as_str));
    match kind {
        Some("integer" | "number") => {
            let least = schema["minimum"]
                .as_i64()
                .or_else(|| schema["exclusiveMinimum"].as_i64().map(|least| least + 1));
            json!(least.unwrap_or(1))
        }
        Some("boolean") => json!(true),
        Some("array") => json!([sample(document, &schema["items"], depth)]),
        Some("string") => json!(text(schema)),
        _ => {
            let required: Vec<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let members = schema["properties"].as_object().into_iter().flatten();
            let members = members.filter(|(name, _)| required.contains(&name.as_str()));
            Value::Object(
                members.map(|(name, inner)| (name.clone(), sample(document, inner, depth))).collect(),
            )
        }
    }
}

/// Returns a text of the schema's format. A free text carries the marker, so that its effects can be counted.
fn text(schema: &Value) -> String {
    match schema["format"].as_str() {
        Some("uuid") => "01a1df2e-24dc-702a-8000-3798d20b2380".to_owned(),
        Some("date-time") => "2026-01-01T00:00:00Z".to_owned(),
        Some("date") => "2026-01-01".to_owned(),
        Some("email") => "probe@example.org".to_owned(),
        Some("uri" | "url") => format!("https://example.org/{MARKER}"),
        _ => MARKER.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_changing_operations_get_a_body_of_their_schema() {
        let document = json!({
            "paths": {
                "/orders": {
                    "get": {},
                    "post": { "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Order" } } } } },
                },
                "/orders/{id}": { "delete": {} },
                "/upload": { "put": { "requestBody": { "content": { "text/csv": {} } } } },
            },
            "components": { "schemas": { "Order": {
                "type": "object",
                "required": ["qty", "side", "lines", "ref"],
                "properties": {
                    "qty": { "type": "integer", "minimum": 3 },
                    "side": { "enum": ["buy", "sell"] },
                    "lines": { "type": "array", "items": { "type": "string", "format": "date" } },
                    "ref": { "type": "string" },
                    "note": { "type": "string" },
                },
            } } },
        });
        let found = operations(&document.to_string()).unwrap();
        let listed: Vec<(&str, &str, bool)> =
            found.iter().map(|one| (&*one.method, &*one.path, one.skipped.is_some())).collect();
        assert_eq!(
            listed,
            [("POST", "/orders", false), ("DELETE", "/orders/{id}", true), ("PUT", "/upload", true)]
        );
        let body: Value = serde_json::from_str(&found[0].body).unwrap();
        assert_eq!(body, json!({ "qty": 3, "side": "buy", "lines": ["2026-01-01"], "ref": "{marker}" }));
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let document = json!({ "paths": { "/a": { "post": { "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/s" } } } } } } },
            "s": { "type": "object", "required": ["s"], "properties": { "s": { "$ref": "#/s" } } } });
        assert_eq!(operations(&document.to_string()).unwrap()[0].skipped, None);
        assert!(operations("a: 1").unwrap_err().to_string().contains("convert YAML"));
    }
}
