//! What is refused: each error, where it is and what is wrong.

use ichido_boundary::{Boundary, MAX_BYTES, MAX_COUNT, MAX_INVALID, MAX_NAME_BYTES};

/// The errors for a text, one on each line.
#[track_caller]
fn refusal(text: impl AsRef<[u8]>) -> String {
    Boundary::read("b.json", text.as_ref()).expect_err("it is no boundary file").to_string()
}

#[test]
fn invalid_json_is_refused_with_its_location() {
    assert_eq!(refusal(""), "b.json:1:1: the text is empty");
    assert_eq!(refusal("boundary: adapter"), "b.json:1:1: expected a value");
    assert_eq!(
        refusal("{\n  \"boundary\": \"adapter\",\n}"),
        "b.json:3:1: expected a member name in double quotes"
    );
    assert_eq!(refusal(b"{\"a\":\"\xff\"}"), "b.json:1:7: the text is not valid UTF-8");
}

#[test]
fn repeated_member_is_refused_at_its_second_location() {
    assert_eq!(
        refusal("{\"boundary\":\"adapter\",\n \"http\":{},\n \"http\":{}}"),
        "b.json:3:2: this member name repeats an earlier one in the same object"
    );
}

#[test]
fn a_text_nested_10_000_deep_is_refused() {
    let text = "[".repeat(10_000);
    assert_eq!(refusal(text), "b.json:1:65: more than 64 nested arrays and objects");
}

#[test]
fn a_file_of_50_megabytes_is_refused() {
    let text = vec![b' '; 50_000_000];
    let expected =
        "b.json:1:1048577: the file is larger than 1048576 bytes; a boundary file has a few kilobytes";
    assert_eq!(refusal(text), expected);
    let fits = format!("{{\"boundary\":\"adapter\"}}{}", " ".repeat(MAX_BYTES - 22));
    assert_eq!(fits.len(), MAX_BYTES);
    assert!(Boundary::read("b.json", fits.as_bytes()).is_ok());
}

#[test]
fn wrong_type_is_refused_with_pointer_and_location() {
    let refused = |members: &str| refusal(format!("{{\"boundary\":\"adapter\",\n{members}}}"));
    let cases = [
        (r#""http":[]"#, "b.json:2:8: /http: expected an object, found an array"),
        (
            r#""http":{"retry":{"max_attempts":"3"}}"#,
            "b.json:2:33: /http/retry/max_attempts: expected an integer, found a string",
        ),
        (
            r#""http":{"retry":{"max_attempts":-1}}"#,
            "b.json:2:33: /http/retry/max_attempts: expected an integer, found -1",
        ),
        (
            r#""http":{"retry":{"retry_on_status":[502,{}]}}"#,
            "b.json:2:41: /http/retry/retry_on_status/1: expected an HTTP status (100 to 599), found an object",
        ),
        (
            r#""http":{"retry":{"retry_on_status":[99]}}"#,
            "b.json:2:37: /http/retry/retry_on_status/0: expected an HTTP status (100 to 599), found 99",
        ),
        (
            r#""http":{"idempotency":{"mode":"on"}}"#,
            "b.json:2:31: /http/idempotency/mode: expected one of validate_only, enabled, disabled, require_key_for_state_changing, found \"on\"",
        ),
        (
            r#""headers":{"a/b":{"allow":null}}"#,
            "b.json:2:27: /headers/a~1b/allow: expected an array, found null; remove the member to leave it unset",
        ),
        (
            r#""cors":{"allowed_headers":{"items":["a",true]}}"#,
            "b.json:2:41: /cors/allowed_headers/items/1: expected a string, found a boolean",
        ),
    ];
    for (members, expected) in cases {
        assert_eq!(refused(members), expected);
    }
}

#[test]
fn file_without_a_boundary_is_refused() {
    let words = "browser_to_bff, bff_to_gateway, gateway_to_adapter, adapter";
    assert_eq!(
        refusal(" {}"),
        format!("b.json:1:2: the member `boundary` is missing; add \"boundary\" with one of {words}")
    );
    assert_eq!(
        refusal("{\"boundary\":\"bff\\n\"}"),
        format!("b.json:1:13: /boundary: expected one of {words}, adapter_to_external, found \"bff\\n\"")
    );
    assert_eq!(refusal("[1]"), "b.json:1:1: the file: expected an object, found an array");
}

#[test]
fn list_with_too_many_entries_is_refused() {
    let list = |count: usize| vec!["\"a\""; count].join(",");
    let headers = |count| {
        format!("{{\"boundary\":\"adapter\",\"headers\":{{\"in\":{{\"allow\":[{}]}}}}}}", list(count))
    };
    assert!(Boundary::read("b.json", headers(MAX_COUNT).as_bytes()).is_ok());
    assert_eq!(
        refusal(headers(MAX_COUNT + 1)),
        "b.json:1:48: /headers/in/allow: found 1001 entries; the maximum is 1000"
    );
    let named: Vec<String> = (0..=MAX_COUNT).map(|number| format!("\"{number}\":{{}}")).collect();
    let operations = format!("{{\"boundary\":\"adapter\",\"operations\":{{{}}}}}", named.join(","));
    assert_eq!(refusal(operations), "b.json:1:36: /operations: found 1001 entries; the maximum is 1000");
    let redaction =
        format!("{{\"boundary\":\"adapter\",\"observability\":{{\"redaction\":[{}]}}}}", list(MAX_COUNT + 1));
    assert_eq!(
        refusal(redaction),
        "b.json:1:52: /observability/redaction: found 1001 entries; the maximum is 1000"
    );
}

#[test]
fn too_long_name_is_refused() {
    let name = "d".repeat(MAX_NAME_BYTES + 1);
    let text = format!("{{\"boundary\":\"adapter\",\"headers\":{{\"{name}\":{{}}}}}}");
    assert_eq!(refusal(text), "b.json:1:33: /headers: a member name is longer than 255 bytes");
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let text = r#"{
  "boundary": "bff_to_adapter",
  "http": {
    "methods": { "allowed": "POST", "state_changing": [true, "POST", 7] },
    "idempotency": { "mode": "on", "require_key": "yes" },
    "retry": { "max_attempts": -1, "backoff_ms": "100" }
  },
  "headers": { "pipeline_order": "drop", "inbound": { "allow": ["accept ", "x-*-id"] }, "outbound": [] },
  "observability": { "request_id": true }
}"#;
    let errors = Boundary::read("b.json", text.as_bytes()).expect_err("it is not a boundary file");
    let pointers: Vec<&str> = errors.iter().map(|error| error.kind.pointer()).collect();
    let expected = [
        "/boundary",
        "/http/methods/allowed",
        "/http/methods/state_changing/0",
        "/http/methods/state_changing/2",
        "/http/idempotency/mode",
        "/http/idempotency/require_key",
        "/http/retry/max_attempts",
        "/http/retry/backoff_ms",
        "/headers/pipeline_order",
        "/headers/inbound/allow/0",
        "/headers/inbound/allow/1",
        "/headers/outbound",
        "/observability/request_id",
    ];
    assert_eq!(pointers, expected, "{errors}");
    assert_eq!(errors.to_string().lines().count(), expected.len());
    assert!(errors.iter().map(|error| error.at).is_sorted());
}

#[test]
fn a_list_of_wrong_values_gives_a_limited_number_of_errors() {
    let text = format!(
        "{{\"boundary\":\"adapter\",\"http\":{{\"methods\":{{\"allowed\":[{}]}}}}}}",
        vec!["1"; 999].join(",")
    );
    let errors = Boundary::read("b.json", text.as_bytes()).expect_err("a number is not a method");
    assert_eq!(errors.iter().count(), MAX_INVALID);
}
