//! Redactions that show credentials, or keep the key out of the logs.

use crate::set::{BFF, BROWSER, GATEWAY, Set, finds};

const POINTER: &str = "/observability/redaction";

#[test]
fn disabled_redaction_redacts_nothing() {
    for text in [
        "false",
        "[]",
        r#"{ "enabled": false, "headers": ["authorization", "cookie"] }"#,
        r#"{ "mode": "off", "headers": ["authorization", "cookie"] }"#,
        r#"{ "headers": { "redact": false, "names": ["authorization", "cookie"] } }"#,
        r#"["cookie", { "name": "authorization", "redact": false }]"#,
    ] {
        finds(BFF, POINTER, text, &["ICH-B090"]);
    }
    finds(BFF, POINTER, r#"{ "enabled": true, "headers": ["authorization", "cookie"] }"#, &[]);
    finds(BFF, POINTER, r#"["Cookie", { "name": "Authorization", "redact": true, "mode": "hash" }]"#, &[]);
}

#[test]
fn credentials_must_be_named_and_not_shown() {
    for text in [
        r#"["authorization"]"#,
        r#"["cookie"]"#,
        r#"{ "headers": ["authorization", "cookie"], "never-redact": { "headers": ["Authorization"] } }"#,
        r#"{ "headers": ["authorization", "cookie"], "except": ["cookie"] }"#,
        r#"{ "cookie": "remove", "authorization": false }"#,
        r#"{ "cookie": "remove", "authorization": "hash", "set-cookie": "raw" }"#,
    ] {
        finds(BFF, POINTER, text, &["ICH-B090"]);
    }
    for text in [
        r#"{ "headers": ["authorization", "cookie"], "never_redact": ["x-request-id"] }"#,
        r#"{ "cookie": "hash", "authorization": "remove", "accept": false }"#,
    ] {
        finds(BFF, POINTER, text, &[]);
    }
}

#[test]
fn key_is_recorded_as_itself_or_hashed() {
    for text in [
        r#"["authorization", "cookie", "Idempotency-Key"]"#,
        r#"{ "headers": { "authorization": "remove", "cookie": "remove", "idempotency-key": "remove" } }"#,
        r#"{ "authorization": true, "cookie": true, "idempotency-key": true }"#,
    ] {
        finds(BFF, POINTER, text, &["ICH-B090"]);
    }
    for text in [
        r#"["authorization", "cookie"]"#,
        r#"{ "headers": ["authorization", "cookie"], "never_redact": ["Idempotency-Key"] }"#,
        r#"{ "authorization": "remove", "cookie": "remove", "idempotency-key": "plain" }"#,
        r#"{ "authorization": "remove", "cookie": "remove", "idempotency-key": "sha256" }"#,
        r#"{ "headers": ["authorization", "cookie"], "hashed": ["idempotency-key"] }"#,
        r#"["authorization", "cookie", { "name": "Idempotency-Key", "mode": "hash" }]"#,
    ] {
        finds(BFF, POINTER, text, &[]);
    }
}

#[test]
fn key_is_recorded_in_the_spelling_that_is_sent() {
    let other = r#"["authorization", "cookie", "x-idempotency-key"]"#;
    finds(BFF, POINTER, other, &[]);
    // If no list says which spelling comes, neither may be lost.
    let open = [BROWSER, BFF, GATEWAY]
        .into_iter()
        .fold(Set::starting(), |set, file| set.without(file, "/headers"))
        .without(BROWSER, "/cors");
    assert_eq!(open.with(BFF, POINTER, other).broken(), ["ICH-B090"]);
}
