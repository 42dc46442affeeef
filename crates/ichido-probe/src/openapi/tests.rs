use serde_json::json;

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
    let why = "the schema is recursive or too large; pass --body";
    assert_eq!(only(&document).skipped.as_deref(), Some(why));
    let mut optional = document;
    optional["s"]["required"] = json!([]);
    optional["s"]["properties"]["n"] = json!({ "type": "integer" });
    optional["s"]["properties"]["all"] = json!({ "type": "array", "items": { "$ref": "#/s" } });
    let body: Value = serde_json::from_str(&only(&optional).body).unwrap();
    assert_eq!(body, json!({ "all": [], "n": 1 }), "what need not be sent is left out");
    assert!(operations("a: 1").unwrap_err().to_string().contains("convert YAML"));
}

/// Returns the only operation of a document, whose schema is that of its body.
fn only(document: &Value) -> OpenApiOperation {
    let mut found = operations(&document.to_string()).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn with_schema(schema: &Value) -> Value {
    let content = json!({ "application/json": { "schema": schema } });
    json!({ "paths": { "/a": { "post": { "requestBody": { "content": content } } } } })
}

#[test]
fn the_closest_server_is_used_with_the_defaults_of_its_variables() {
    let variables = json!({ "host": { "default": "api.example" }, "v": { "default": "v2" } });
    let server = json!([{ "url": "https://{host}/{v}", "variables": variables }]);
    let mut document = json!({ "servers": server, "paths": { "/a": { "post": {} } } });
    assert_eq!(only(&document).server.as_deref(), Some("https://api.example/v2"));
    document["paths"]["/a"]["servers"] = json!([{ "url": "/v3" }]);
    assert_eq!(only(&document).server.as_deref(), Some("/v3"));
    document["paths"]["/a"]["post"]["servers"] = json!([{ "url": "v4" }]);
    assert_eq!(only(&document).server.as_deref(), Some("v4"));
    document["paths"]["/a"]["post"]["servers"] = json!([{ "url": "/{v}" }]);
    assert!(only(&document).skipped.is_some_and(|why| why.contains("does not define")));
    document["paths"]["/a"]["post"]["servers"] = json!([{ "url": "/{v}", "variables": { "v": {} } }]);
    assert!(only(&document).skipped.is_some_and(|why| why.contains("\"v\" of its server has no default")));
}

#[test]
fn a_body_keeps_the_bounds_of_its_schema() {
    let schema = json!({ "type": "object", "properties": {
        "id": { "type": "string", "readOnly": true },
        "price": { "type": "number", "minimum": 0.5 },
        "rate": { "type": "number", "maximum": 0.25 },
        "short": { "type": "string", "maxLength": 3 },
        "long": { "type": "string", "minLength": 20 },
        "pair": { "type": "array", "minItems": 2, "items": { "type": "boolean" } },
    } });
    let body: Value = serde_json::from_str(&only(&with_schema(&schema)).body).unwrap();
    let expected =
        json!({ "price": 1, "rate": 0.25, "short": "ppp", "long": "{marker}pp", "pair": [true, true] });
    assert_eq!(body, expected, "nothing is required, so all that a caller may send is");
}

#[test]
fn combined_schemas_have_the_members_of_each() {
    let schema = json!({
        "allOf": [{ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } }],
        "required": ["b"],
        "properties": { "b": { "oneOf": [{ "type": "boolean" }, { "type": "string" }] }, "c": {} },
    });
    let body: Value = serde_json::from_str(&only(&with_schema(&schema)).body).unwrap();
    assert_eq!(body, json!({ "a": 1, "b": true }));
}

#[test]
fn an_operation_that_needs_a_query_parameter_is_skipped() {
    let parameter = json!({ "$ref": "#/p" });
    let mut document = json!({
        "p": { "in": "query", "name": "tenant", "required": true },
        "paths": { "/a": { "post": {}, "parameters": [parameter] } },
    });
    assert!(only(&document).skipped.is_some_and(|why| why.contains("\"tenant\"")));
    document["p"]["required"] = json!(false);
    assert_eq!(only(&document).skipped, None);
}

#[test]
fn a_body_has_a_limit() {
    let mut nested = json!({ "type": "string", "minLength": 1_000 });
    for _ in 0..4 {
        nested = json!({ "type": "array", "minItems": 1_000, "items": nested });
    }
    let large = json!({ "type": "object", "properties": { "a": nested } });
    let mut wide = json!({ "paths": with_schema(&json!({ "$ref": "#/s/0" }))["paths"], "s": [] });
    for level in 1..=30 {
        let next = json!({ "$ref": format!("#/s/{level}") });
        let pair = json!({ "type": "object", "properties": { "a": next, "b": next } });
        wide["s"].as_array_mut().unwrap().push(pair);
    }
    wide["s"].as_array_mut().unwrap().push(json!({}));
    for document in [with_schema(&large), wide] {
        let why = "the schema is recursive or too large; pass --body";
        assert_eq!(only(&document).skipped.as_deref(), Some(why));
    }
}

#[test]
fn a_reference_that_leads_nowhere_is_named() {
    for (reference, part) in [
        ("#/nope", "\"#/nope\" is not in the document"),
        ("http://127.0.0.1:1/x.json#/a", "is outside the document"),
        ("other.json", "is outside the document"),
        ("#/a", "leads back to itself"),
    ] {
        let mut document = with_schema(&json!({ "$ref": reference }));
        document["a"] = json!({ "$ref": "#/a" });
        let skipped = only(&document).skipped.unwrap_or_default();
        assert!(skipped.contains(part), "{reference}: {skipped}");
    }
    let mut document = with_schema(&json!({}));
    document["paths"]["/a"] = json!({ "$ref": "other.json" });
    assert!(only(&document).skipped.is_some_and(|why| why.contains("is outside the document")));
}

#[test]
fn an_operation_that_is_not_a_path_of_openapi_3_is_skipped() {
    for path in ["/x HTTP/1.1\r\nHost: evil", "@evil.example/x", ".evil.example/x", "/\u{e9}", "/a#b", ""] {
        let found = only(&json!({ "paths": { path: { "post": {} } } }));
        assert!(found.skipped.is_some_and(|why| why.contains("does not begin with /")), "{path}");
    }
    let server = json!([{ "url": "/v1 HTTP/1.1\r\nHost: evil" }]);
    let found = only(&json!({ "servers": server, "paths": { "/a": { "post": {} } } }));
    assert!(found.skipped.is_some_and(|why| why.contains("its server's URL")));
    let found = only(&json!({ "swagger": "2.0", "paths": { "/a": { "post": {} } } }));
    assert!(found.skipped.is_some_and(|why| why.contains("Swagger 2.0")));
}
