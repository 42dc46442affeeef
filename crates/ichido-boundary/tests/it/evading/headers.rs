//! Lists of headers that stop what must pass, or pass what must not.

use crate::set::{ADAPTER, BFF, BROWSER, ENABLED, GATEWAY, Set, finds};

const EXPOSED: &str = "/cors/exposed_headers/items";

#[test]
fn echoed_key_returns_in_the_spelling_that_was_sent() {
    let exposed =
        |key: &str| format!(r#"["{key}", "idempotency-replayed", "idempotency-status", "retry-after"]"#);
    finds(BROWSER, EXPOSED, &exposed("x-idempotency-key"), &["ICH-B017"]);
    finds(BROWSER, EXPOSED, &exposed("Idempotency-Key"), &[]);
    let answers = |key: &str| format!(r#"{{ "allow": {} }}"#, exposed(key));
    finds(GATEWAY, "/headers/response", &answers("x-idempotency-key"), &["ICH-B016"]);
    finds(GATEWAY, "/headers/response", &answers("IDEMPOTENCY-KEY"), &[]);
    finds(GATEWAY, "/headers/response", r#"{ "drop": ["idempotency-key"] }"#, &["ICH-B016"]);
    // Without an echo, nothing can get lost.
    let silent = [BROWSER, BFF, GATEWAY]
        .into_iter()
        .fold(Set::starting(), |set, file| set.with(file, "/http/idempotency/echo_key", "false"));
    assert_eq!(silent.with(BROWSER, EXPOSED, &exposed("x-idempotency-key")).broken(), [""; 0]);
}

#[test]
fn echoed_key_needs_one_spelling_in_every_list() {
    // Requests may use either, and each list of responses passes a different one.
    let both = [BROWSER, BFF, GATEWAY]
        .into_iter()
        .fold(Set::starting(), |set, file| set.without(file, "/headers"))
        .without(BROWSER, "/cors");
    let answers = |drop: &str| format!(r#"{{ "response": {{ "drop": ["{drop}"] }} }}"#);
    let one = both.with(BFF, "/headers", &answers("idempotency-key"));
    assert_eq!(one.broken(), [""; 0]);
    let none = one.with(GATEWAY, "/headers", &answers("x-idempotency-key"));
    assert_eq!(none.broken(), ["ICH-B016"]);
}

#[test]
fn the_case_of_a_direction_does_not_matter() {
    for direction in ["Response", "GATEWAY_RESPONSE", "responseHeaders"] {
        let stopped = r#"{ "drop": ["idempotency-status"] }"#;
        finds(GATEWAY, &format!("/headers/{direction}"), stopped, &["ICH-B016"]);
        // It is not taken for a list of requests.
        finds(GATEWAY, &format!("/headers/{direction}"), r#"{ "drop": ["ichido-hops"] }"#, &[]);
    }
}

#[test]
fn invalid_header_name_is_refused() {
    let refused = [
        "/headers/gateway_inbound/allow",
        "/headers/gateway_inbound/drop",
        "/cors/allowed_headers/items",
        "/cors/exposed_headers/items",
    ];
    for pointer in refused {
        let file = if pointer.starts_with("/cors") { BROWSER } else { BFF };
        for name in
            ["", " idempotency-key", "idempotency-key ", "*-key", "x-*-id", "**", "a:b", "k\u{e9}y", "a\\nb"]
        {
            let found =
                Set::starting().with(file, pointer, &format!(r#"["content-type", "{name}"]"#)).findings();
            let locations: Vec<_> =
                found.iter().map(|one| (one.rule.id, one.place.pointer.clone())).collect();
            assert_eq!(locations, [("ICH-B000", format!("{pointer}/1"))], "{name:?}");
            assert!(found[0].what.contains("expected a header name"), "{}", found[0].what);
        }
    }
    let replayed = format!("{ENABLED}/response_replay/response_headers_subset_allowlist");
    finds(GATEWAY, &replayed, r#"["content-type", ""]"#, &["ICH-B000"]);
}

#[test]
fn a_replay_repeats_named_headers_that_last() {
    let replayed = format!("{ENABLED}/response_replay/response_headers_subset_allowlist");
    let of_one_exchange = [
        "*",
        "set-*",
        "x-app-*",
        "Set-Cookie",
        "authorization",
        "WWW-Authenticate",
        "proxy-authenticate",
        "Connection",
        "content-length",
        "transfer-encoding",
        "idempotency-replayed",
        "access-control-allow-origin",
    ];
    for header in of_one_exchange {
        finds(GATEWAY, &replayed, &format!(r#"["content-type", "{header}"]"#), &["ICH-B045"]);
    }
    finds(GATEWAY, &replayed, r#"["content-type", "Content-Encoding", "x-order-id"]"#, &[]);
}

#[test]
fn content_type_must_reach_the_adapter() {
    for (file, list) in [
        (BROWSER, "inbound"),
        (BFF, "bff_outbound"),
        (BFF, "gateway_inbound"),
        (GATEWAY, "gateway_outbound"),
        (GATEWAY, "adapter_inbound"),
    ] {
        finds(file, &format!("/headers/{list}/drop"), r#"["Content-Type"]"#, &["ICH-B018"]);
    }
    // What the adapter sends on is already hashed.
    finds(ADAPTER, "/headers", r#"{ "outbound": { "drop": ["content-type"] } }"#, &[]);
    // An owner that guarantees nothing about bodies does not need their type.
    let alone = Set(Set::starting().0.into_iter().filter(|(file, _)| file == BFF).collect());
    assert_eq!(alone.with(BFF, "/headers/bff_outbound/drop", r#"["content-type"]"#).broken(), [""; 0]);
}
