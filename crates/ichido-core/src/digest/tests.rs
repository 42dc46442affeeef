use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;
use crate::json::{LeaveOut, Pointer};

fn json(body: &str) -> Digest {
    Digest::of_json(body.as_bytes(), &BodyRules::default()).unwrap()
}

fn sha256sum(input: &[u8]) -> String {
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
fn sha256sum_computes_the_same_digest() {
    let body = r#" { "qty" : 10.0, "symbol":"7203", "meta": {"b":[1e2, -0], "a":"é"} } "#;
    let canonical = r#"{"meta":{"a":"é","b":[100,0]},"qty":10,"symbol":"7203"}"#;
    assert_eq!(json(body).to_string(), format!("sha256:{}", sha256sum(canonical.as_bytes())));
    let bytes = b"\x00\xffany bytes";
    assert_eq!(Digest::of_bytes(bytes).to_string(), format!("sha256:{}", sha256sum(bytes)));
}

#[test]
fn bodies_that_mean_the_same_have_one_digest() {
    let first = json(r#"{"a":1,"b":[true,null],"c":"x"}"#);
    for same in [
        r#"{"b":[true,null],"c":"x","a":1}"#,
        " {\n\t\"a\" : 1.00, \"b\" : [ true , null ] , \"c\" : \"\\u0078\" }\r\n",
        r#"{"a":10e-1,"b":[true,null],"c":"x"}"#,
    ] {
        assert_eq!(json(same), first, "{same}");
    }
    for other in [
        r#"{"a":2,"b":[true,null],"c":"x"}"#,
        r#"{"a":"1","b":[true,null],"c":"x"}"#,
        r#"{"a":1,"b":[null,true],"c":"x"}"#,
        r#"{"a":1,"b":[true,null]}"#,
        r#"{"a":1,"b":[true,null],"c":"X"}"#,
    ] {
        assert_ne!(json(other), first, "{other}");
    }
    assert_ne!(json("9007199254740992"), json("9007199254740993"), "no double in between");
}

#[test]
fn named_fields_are_left_out_of_the_digest_only() {
    let leave_out =
        ["/trace_id", "/idempotency_key", "/meta/seen"].map(|text| Pointer::parse(text).unwrap()).to_vec();
    let rules = BodyRules {
        form: CanonicalForm { leave_out: LeaveOut::new(leave_out).unwrap(), ..CanonicalForm::default() },
        ..BodyRules::default()
    };
    let digest = |body: &str| Digest::of_json(body.as_bytes(), &rules).unwrap();
    let bare = digest(r#"{"qty":1,"meta":{}}"#);
    assert_eq!(digest(r#"{"qty":1,"trace_id":"t1","idempotency_key":"k","meta":{"seen":2}}"#), bare);
    assert_ne!(digest(r#"{"qty":1,"meta":{"trace_id":"t1"}}"#), bare, "a pointer names one place");
    assert_eq!(bare, json(r#"{"meta":{},"qty":1}"#));
}

#[test]
fn only_json_types_are_compared_by_meaning() {
    let rules = BodyRules::default();
    let same = |media_type: &str| {
        let spaced = Digest::of_body(media_type, b"[1, 2]", &rules).unwrap();
        spaced == Digest::of_body(media_type, b"[1,2]", &rules).unwrap()
    };
    for media_type in
        ["application/json", "Application/JSON; charset=utf-8", "text/json", "application/problem+json"]
    {
        assert!(same(media_type), "{media_type}");
    }
    for media_type in
        ["text/plain", "application/jsonx", "", "json", "application/x-ndjson", "application/json5"]
    {
        assert!(!same(media_type), "{media_type}");
    }
}

#[test]
fn empty_body_has_a_digest_and_invalid_json_has_none() {
    let rules = BodyRules::default();
    assert_eq!(Digest::of_body("application/json", b"", &rules), Ok(Digest::of_bytes(b"")));
    for broken in ["{", r#"{"a":1,"a":2}"#, "[.5]", "01", "NaN", r#""\ud800""#, " "] {
        assert!(Digest::of_body("application/json", broken.as_bytes(), &rules).is_err(), "{broken}");
    }
    let small = BodyRules { max_bytes: 4, ..rules };
    assert!(Digest::of_body("application/json", b"[1,2]", &small).is_err(), "over the bound");
}

#[test]
fn a_digest_reads_back_from_its_text() {
    let digest = Digest::of_bytes(b"x");
    assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
    assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    let text = digest.to_string();
    for bad in [
        "",
        "sha256:",
        "sha512:00",
        &text[..70],
        &text.to_uppercase(),
        &format!("{text}0"),
        &format!("{text}00"),
    ] {
        assert_eq!(Digest::parse(bad), None, "{bad}");
    }
}
