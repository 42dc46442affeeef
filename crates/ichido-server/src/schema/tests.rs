//! What schemas accept and refuse, in messages and in schemas themselves.

use ichido_core::json::MAX_DEPTH;

use super::*;

fn refused(text: &str) -> String {
    Schema::parse(text).expect_err(text).to_string()
}

fn broken(schema: &str, body: &str) -> Vec<(String, String)> {
    let schema = Schema::parse(schema).unwrap_or_else(|error| panic!("{error}"));
    match schema.check(body.as_bytes()) {
        Ok(()) => Vec::new(),
        Err(broken) => broken.violations.into_iter().map(|fault| (fault.pointer, fault.what)).collect(),
    }
}

const ORDER: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/order",
    "type": "object",
    "required": ["symbol", "qty"],
    "additionalProperties": false,
    "properties": {
        "symbol": { "type": "string", "pattern": "^[A-Z]{1,5}$" },
        "qty": { "$ref": "#/$defs/qty" },
        "a/b": { "type": "integer", "maximum": 9007199254740992 },
        "$ref": { "const": { "$ref": "elsewhere.json" } }
    },
    "$defs": { "qty": { "type": "string" } }
}"##;

#[test]
fn violations_name_their_location_and_no_value() {
    assert_eq!(broken(ORDER, r#"{"symbol":"ACME","qty":"10","a/b":1,"$ref":{"$ref":"elsewhere.json"}}"#), []);
    let faults = broken(ORDER, r#"{"symbol":"s3cret","qty":777,"a/b":9007199254740993}"#);
    let places: Vec<&str> = faults.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["/a~1b", "/qty", "/symbol"], "{faults:?}");
    let all = format!("{faults:?}");
    assert!(!all.contains("s3cret") && !all.contains("777") && !all.contains("40993"), "{all}");
    let (place, what) = &broken(ORDER, r#"{"symbol":"ACME"}"#)[0];
    assert_eq!((place.as_str(), what.as_str()), ("", "\"qty\" is a required property"));
    assert_eq!(broken(ORDER, "")[0].1, "the body is empty");
    assert_eq!(broken("{}", "1e400").len(), 1);
}

#[test]
fn violations_are_bounded_in_number_and_length() {
    let schema = Schema::parse(r#"{"items":{"type":"string"},"additionalProperties":false}"#).unwrap();
    let list = |count: usize| format!("[{}]", vec!["0"; count].join(","));
    for (count, told, more) in [
        (MAX_VIOLATIONS, MAX_VIOLATIONS, false),
        (MAX_VIOLATIONS + 1, MAX_VIOLATIONS, true),
        (MAX_ALL_VIOLATIONS_BYTES, 1, true),
    ] {
        let broken = schema.check(list(count).as_bytes()).unwrap_err();
        assert_eq!((broken.violations.len(), broken.more), (told, more), "{count}");
        assert_eq!(
            (broken.violations[0].pointer.as_str(), broken.to_string().ends_with("more")),
            ("/0", more)
        );
    }
    let long = schema.check(format!("{{\"{}\":1}}", "x".repeat(5_000)).as_bytes()).unwrap_err();
    assert!(long.to_string().len() < 3 * MAX_VIOLATION_CHARS, "{long}");
}

#[test]
fn references_to_other_documents_are_refused() {
    for (text, place) in [
        (r#"{"$ref":"https://example.com/other"}"#, "/$ref"),
        (r#"{"properties":{"default":{"$ref":"other.json#/a"}}}"#, "/properties/default/$ref"),
        (r#"{"allOf":[true,{"$dynamicRef":"file:///etc/passwd"}]}"#, "/allOf/1/$dynamicRef"),
        (r#"{"items":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}"#, "/items/$ref"),
    ] {
        let refused = refused(text);
        assert!(refused.starts_with(&format!("at {place}: refers to another document")), "{refused}");
    }
    assert!(refused(r##"{"$ref":"#/$defs/none"}"##).contains("$defs/none"));
}

#[test]
fn invalid_schemas_are_refused_with_their_location() {
    assert!(refused("{\n \"type\": \"string\",\n \"type\": 1}").contains("in line 3, column 2"));
    assert!(refused(r#"{"type":"strnig"}"#).starts_with("at /type: "));
    assert!(refused(r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#).starts_with("at /$schema: "));
    assert!(refused("[]").contains("is not an object"));
    assert!(refused("{\"maximum\":1e400}").contains("exceeds the range of a double"));
    assert_eq!(Schema::parse(&" ".repeat(MAX_SCHEMA_BYTES + 1)).unwrap_err(), SchemaError::TooLarge);
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
    assert!(refused(&deep).contains("nested arrays and objects"));
}

#[test]
fn patterns_cannot_blow_up() {
    for pattern in ["(?=a)b", r"(a)\\1", "((((a{100}){100}){100}){100})"] {
        let refused = refused(&format!(r#"{{"properties":{{"p":{{"pattern":"{pattern}"}}}}}}"#));
        assert!(refused.contains("pattern"), "{refused}");
    }
    // A backtracking matcher would need more steps than there are atoms.
    let text = format!("\"{}!\"", "a".repeat(100_000));
    assert_eq!(broken(r#"{"pattern":"^(a+)+$"}"#, &text).len(), 1);
}

#[test]
fn recursive_schemas_terminate() {
    let tree = r##"{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}},"additionalProperties":false}"##;
    assert_eq!(broken(tree, r#"{"left":{"right":{}}}"#), []);
    assert_eq!(broken(tree, r#"{"left":{"right":{"wrong":1}}}"#)[0].0, "/left/right");
    for endless in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}"##,
        r##"{"$dynamicAnchor":"a","if":{"$dynamicRef":"#a"}}"##,
    ] {
        assert!(refused(endless).contains("refers to itself"), "{endless}");
    }
}

#[test]
fn ambiguous_or_deep_schemas_are_refused() {
    let chain = |length: usize| {
        let parts = (0..length).map(|at| format!("\"a{at}\":{{\"$ref\":\"#/$defs/a{}\"}}", at + 1));
        format!("{{\"$defs\":{{{},\"a{length}\":{{}}}}}}", parts.collect::<Vec<_>>().join(","))
    };
    assert!(Schema::parse(&chain(references::MAX_STEPS - 1)).is_ok());
    assert!(refused(&chain(references::MAX_STEPS)).contains("references or nested schemas deep"));
    assert!(refused(r##"{"$ref":"#/$defs/a%62","$defs":{"ab":{}}}"##).contains("a % escape"));
    assert!(refused(r#"{"$defs":{"a":{"$id":"b"}}}"#).starts_with("at /$defs/a/$id: "));
}
