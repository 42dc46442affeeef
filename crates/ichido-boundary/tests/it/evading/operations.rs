//! Operations that no request matches, or that two match, or that change something as a read.

use serde_json::json;

use crate::set::{ADAPTER, BFF, BROWSER, GATEWAY, Set, finds};

const CREATE: &str = "/operations/orders.create";

#[test]
fn method_must_be_spelled_as_in_http() {
    for methods in [r#"["post"]"#, r#"["Post"]"#, r#"["POST", "PSOT"]"#, r#"[""]"#, r#"["POST "]"#, "[]"] {
        finds(ADAPTER, &format!("{CREATE}/methods"), methods, &["ICH-B081"]);
    }
    finds(ADAPTER, &format!("{CREATE}/methods"), r#"["GET"]"#, &["ICH-B081"]);
    // A method that the chain's files name is as good as those of HTTP.
    let named = [BROWSER, BFF, GATEWAY].into_iter().fold(Set::starting(), |set, file| {
        let methods = r#"{ "allowed": ["POST", "SUBMIT"], "state_changing": ["POST", "SUBMIT"] }"#;
        set.with(file, "/http/methods", methods)
    });
    assert_eq!(named.with(ADAPTER, &format!("{CREATE}/methods"), r#"["SUBMIT"]"#).broken(), [""; 0]);
}

#[test]
fn path_must_match_some_request() {
    let odd = [
        "",
        "v1/orders",
        "//v1/orders",
        "/v1//orders",
        "/v1/orders/:id",
        "/v1/orders/*",
        "/v1/orders/**",
        "/v1/{}",
        "/v1/{a b}",
        "/v1/{id",
        "/v1/x{id}",
        "/v1/orders?a=b",
        "/v1/orders#top",
        "/v1/../orders",
        "/v1/my orders",
        "/v1/\u{e4}",
    ];
    for path in odd {
        finds(ADAPTER, &format!("{CREATE}/path"), &json!(path).to_string(), &["ICH-B081"]);
    }
    finds(ADAPTER, &format!("{CREATE}/path"), &json!("/a".repeat(65)).to_string(), &["ICH-B081"]);
    for path in ["/", "/v1/orders/", "/v1/orders/{order_id}/lines", "/v1/a%2Fb", "/v1/orders:batch"] {
        finds(ADAPTER, &format!("{CREATE}/path"), &json!(path).to_string(), &[]);
    }
}

/// The findings if two operations have these methods and paths.
#[track_caller]
fn two(one: (&str, &str), other: (&str, &str)) -> Vec<&'static str> {
    let operation = |(methods, path): (&str, &str)| {
        format!(r#"{{ "methods": {methods}, "path": "{path}", "class": "mutate", "guarantee": "none" }}"#)
    };
    let both = format!(r#"{{ "one": {}, "other": {} }}"#, operation(one), operation(other));
    Set::starting().with(ADAPTER, "/operations", &both).broken()
}

#[test]
fn no_request_matches_two_operations() {
    let post = r#"["POST"]"#;
    for (one, other) in [
        ("/a/{x}", "/a/{y}"),
        ("/a/b", "/a/b/"),
        ("/a/{x}", "/a/{y}/"),
        ("/a/{x}", "/{y}/b"),
        ("/{x}/b/{z}", "/a/{y}/{z}"),
    ] {
        assert_eq!(two((post, one), (post, other)), ["ICH-B085"], "{one} {other}");
        assert_eq!(two((post, one), (r#"["PUT"]"#, other)), [""; 0], "{one} {other}");
    }
    for (one, other) in [("/a/{x}", "/a/b"), ("/a", "/a/{x}"), ("/a/b", "/a/c"), ("/{x}/{y}", "/a/{y}")] {
        assert_eq!(two((post, one), (post, other)), [""; 0], "{one} {other}");
    }
}

#[test]
fn read_does_not_overlap_an_operation_without_methods() {
    let set = Set::starting().without(ADAPTER, &format!("{CREATE}/methods"));
    let read = r#"{ "methods": ["GET"], "path": "/v1/orders", "class": "read" }"#;
    assert_eq!(set.with(ADAPTER, "/operations/orders.list", read).broken(), [""; 0]);
}

#[test]
fn read_with_an_unsafe_method_is_found() {
    let read = |methods: &str| format!(r#"{{ {methods} "path": "/v1/search", "class": "read" }}"#);
    let pointer = "/operations/orders.search";
    for methods in [r#""methods": ["POST"],"#, r#""methods": ["GET", "DELETE"],"#, ""] {
        finds(ADAPTER, pointer, &read(methods), &["ICH-B086"]);
    }
    finds(ADAPTER, pointer, &read(r#""methods": ["GET", "HEAD"],"#), &[]);
}

#[test]
fn identity_header_is_a_valid_and_stable_header() {
    for name in ["x user", "", "x-user-*", "x-request-id", "Idempotency-Key", "x-forwarded-for"] {
        let identity = json!({ "source": "header", "name": name }).to_string();
        let broken = Set::starting().with(ADAPTER, "/identity", &identity).broken();
        assert!(broken.contains(&"ICH-B080"), "{name}: {broken:?}");
    }
    finds(ADAPTER, "/identity", r#"{ "source": "api_key", "name": "authorization" }"#, &[]);
}
