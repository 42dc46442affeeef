//! Redactions that name the key and still show it.

use crate::set::{BFF, BROWSER, GATEWAY, Set, finds};

const POINTER: &str = "/observability/redaction";

#[test]
fn disabled_redaction_redacts_nothing() {
    for text in [
        "false",
        "[]",
        r#"{ "enabled": false, "headers": ["idempotency-key"] }"#,
        r#"{ "mode": "off", "headers": ["idempotency-key"] }"#,
        r#"{ "headers": { "redact": false, "names": ["idempotency-key"] } }"#,
        r#"[{ "name": "idempotency-key", "redact": false }]"#,
    ] {
        finds(BFF, POINTER, text, &["ICH-B090"]);
    }
    finds(BFF, POINTER, r#"{ "enabled": true, "headers": ["idempotency-key"] }"#, &[]);
    finds(BFF, POINTER, r#"[{ "name": "Idempotency-Key", "redact": true, "mode": "hash" }]"#, &[]);
}

#[test]
fn credentials_listed_as_shown_are_found() {
    for text in [
        r#"{ "idempotency-key": false }"#,
        r#"{ "headers": { "idempotency-key": "plain" } }"#,
        r#"{ "headers": ["idempotency-key"], "never_redact": ["Idempotency-Key"] }"#,
        r#"{ "headers": ["idempotency-key"], "never-redact": { "headers": ["authorization"] } }"#,
        r#"{ "headers": ["idempotency-key"], "except": ["cookie"] }"#,
        r#"{ "idempotency-key": "hash", "authorization": false }"#,
        r#"{ "idempotency-key": "hash", "set-cookie": "raw" }"#,
    ] {
        finds(BFF, POINTER, text, &["ICH-B090"]);
    }
    for text in [
        r#"{ "headers": ["idempotency-key"], "never_redact": ["x-request-id"] }"#,
        r#"{ "idempotency-key": "hash", "authorization": "remove", "accept": false }"#,
        r#""idempotency-key""#,
    ] {
        finds(BFF, POINTER, text, &[]);
    }
}

#[test]
fn key_is_redacted_in_the_spelling_that_is_sent() {
    finds(BFF, POINTER, r#"["x-idempotency-key"]"#, &["ICH-B090"]);
    finds(BFF, POINTER, r#"["Idempotency-Key"]"#, &[]);
    // If no list says which spelling comes, either will do.
    let open = [BROWSER, BFF, GATEWAY]
        .into_iter()
        .fold(Set::starting(), |set, file| set.without(file, "/headers"))
        .without(BROWSER, "/cors");
    assert_eq!(open.with(BFF, POINTER, r#"["x-idempotency-key"]"#).broken(), [""; 0]);
}
