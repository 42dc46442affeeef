//! Fingerprints that change with every attempt, miss the caller, or leave out the body.

use crate::set::{ADAPTER, ENABLED, GATEWAY, Set, finds};

/// The findings with one more input than in the starting set.
#[track_caller]
fn adding(input: &str) -> Vec<&'static str> {
    let include = format!(r#"["claims.sub", "route.operation", "idempotency-key", "body_hash", "{input}"]"#);
    Set::starting().with(GATEWAY, &format!("{ENABLED}/fingerprint/include"), &include).broken()
}

/// The findings if this input alone identifies the caller.
#[track_caller]
fn asking(input: &str) -> Vec<&'static str> {
    let include = format!(r#"["{input}", "route.operation", "idempotency-key", "body_hash"]"#);
    Set::starting().with(GATEWAY, &format!("{ENABLED}/fingerprint/include"), &include).broken()
}

#[test]
fn inputs_that_change_between_attempts_are_found() {
    let changing = [
        "claims.exp",
        "claims.iat",
        "claims.nbf",
        "claims.jti",
        "claims.auth_time",
        "claims.auth-time",
        "now",
        "random",
        "uuid",
        "headers.X-Request-Id",
        "headers['x-request-id']",
        "header:traceparent",
        "client_ip",
        "token",
    ];
    for input in changing {
        assert_eq!(adding(input), ["ICH-B031"], "{input}");
    }
    for input in ["claims.tenant_id", "method", "path", "query", "headers.accept", "identity"] {
        assert_eq!(adding(input), [""; 0], "{input}");
    }
}

#[test]
fn empty_or_wildcard_input_is_found() {
    for input in ["", "claims.", "claims", "claims.*", "headers", "*", "."] {
        assert_eq!(adding(input), ["ICH-B031"], "{input}");
        assert_eq!(asking(input), ["ICH-B030", "ICH-B031"], "{input}");
    }
    assert_eq!(asking("claims.jti"), ["ICH-B030", "ICH-B031"]);
}

#[test]
fn identity_claim_must_be_in_the_fingerprint() {
    assert_eq!(asking("claims.tenant_id"), ["ICH-B030"], "the adapter goes by `sub`");
    assert_eq!(asking("claims.SUB"), ["ICH-B030"], "claims differ by case");
    for input in ["claims.sub", "claim:sub", "claims['sub']", "identity", "principal"] {
        assert_eq!(asking(input), [""; 0], "{input}");
    }
    let claim = r#"{ "source": "jwt_claim", "name": "https://example.com/tenant.id" }"#;
    let long =
        r#"["claims.https://example.com/tenant.id", "route.operation", "idempotency-key", "body_hash"]"#;
    let pointer = format!("{ENABLED}/fingerprint/include");
    let by_subject = r#"["claims.sub", "route.operation", "idempotency-key", "body_hash"]"#;
    let set = Set::starting().with(GATEWAY, &pointer, by_subject);
    let elsewhere = set.clone().with(ADAPTER, "/identity", claim);
    assert_eq!(elsewhere.broken(), ["ICH-B030"]);
    assert_eq!(elsewhere.with(GATEWAY, &pointer, long).broken(), [""; 0]);
    let of_one = r#"{ "source": "jwt_claim", "name": "org" }"#;
    assert_eq!(set.with(ADAPTER, "/operations/orders.create/identity", of_one).broken(), ["ICH-B030"]);
}

#[test]
fn every_identity_claim_must_be_in_the_fingerprint() {
    let both = r#"{ "source": "jwt_claim", "name": ["tenant_id", "actor.actor_id"] }"#;
    let set = Set::starting().with(ADAPTER, "/identity", both);
    assert_eq!(set.broken(), [""; 0], "`identity` is all of them");
    let including = |claims: &str| {
        let include = format!(r#"[{claims}, "route.operation", "idempotency-key", "body_hash"]"#);
        set.clone().with(GATEWAY, &format!("{ENABLED}/fingerprint/include"), &include).broken()
    };
    assert_eq!(including(r#""claims.tenant_id", "claims.actor.actor_id""#), [""; 0]);
    assert_eq!(including(r#""claims.tenant_id", "claims['actor']['actor_id']""#), [""; 0]);
    for missing in [
        r#""claims.tenant_id""#,
        r#""claims.actor.actor_id""#,
        r#""claims.tenant_id", "claims['actor.actor_id']""#,
    ] {
        assert_eq!(including(missing), ["ICH-B030"], "{missing}");
    }
    for name in [r#"["tenant_id", "jti"]"#, r#"["tenant_id", ""]"#, "[]", r#"["a.."]"#, r#""actor.jti""#] {
        let identity = format!(r#"{{ "source": "jwt_claim", "name": {name} }}"#);
        finds(ADAPTER, "/identity", &identity, &["ICH-B080"]);
    }
    for source in ["header", "api_key", "single"] {
        let identity = format!(r#"{{ "source": "{source}", "name": ["x-tenant", "x-user"] }}"#);
        finds(ADAPTER, "/identity", &identity, &["ICH-B080"]);
    }
}

/// What the adapter does not read is not compared: two tenants would share one response.
#[test]
fn an_input_that_the_adapter_does_not_read_is_found() {
    for input in [
        "tenant_id",
        "jwt.tenant_id",
        "body.amount",
        "query.page",
        "identity.tenant",
        "headers.host",
        "headers.x_tenant",
        "headers['x.tenant']",
    ] {
        assert_eq!(adding(input), ["ICH-B036"], "{input}");
    }
    // The lists of the starting set do not pass it.
    assert_eq!(adding("headers.x-tenant"), ["ICH-B036"]);
    let include = r#"["identity", "route.operation", "idempotency-key", "body_hash", "headers.x-tenant"]"#;
    let pointer = format!("{ENABLED}/fingerprint/include");
    let open = Set::starting().with(GATEWAY, &pointer, include).without(GATEWAY, "/headers");
    assert_eq!(open.broken(), ["ICH-B036"], "the gateway's inbound list");
    let open = open.without("bff_to_gateway.json", "/headers");
    assert_eq!(open.broken(), [""; 0]);
    let own = r#"{ "adapter_inbound": { "drop": ["x-tenant"] } }"#;
    assert_eq!(open.with(ADAPTER, "/headers", own).broken(), ["ICH-B036"], "its own list");
}

#[test]
fn there_are_no_claims_without_a_token() {
    let include = r#"["identity", "route.operation", "idempotency-key", "body_hash", "claims.tenant_id"]"#;
    let set = Set::starting().with(GATEWAY, &format!("{ENABLED}/fingerprint/include"), include);
    assert_eq!(set.broken(), [""; 0]);
    let single = r#"{ "source": "single", "name": "shop" }"#;
    assert_eq!(set.clone().with(ADAPTER, "/identity", single).broken(), ["ICH-B036"]);
    let of_one = set.clone().with(ADAPTER, "/operations/orders.create/identity", single);
    assert_eq!(of_one.broken(), ["ICH-B036"]);
    let read = set
        .with(ADAPTER, "/operations/orders.create/identity", single)
        .with(ADAPTER, "/operations/orders.create/class", r#""read""#)
        .with(ADAPTER, "/operations/orders.create/methods", r#"["GET"]"#);
    assert!(!read.broken().contains(&"ICH-B036"), "{:?}", read.broken());
}

#[test]
fn identity_header_counts_as_the_caller() {
    let header = Set::starting()
        .with(ADAPTER, "/identity", r#"{ "source": "api_key", "name": "Authorization-Id" }"#)
        .without(GATEWAY, "/headers")
        .without("bff_to_gateway.json", "/headers");
    let include = r#"["authorization-id", "route.operation", "idempotency-key", "body_hash"]"#;
    let pointer = format!("{ENABLED}/fingerprint/include");
    assert_eq!(header.with(GATEWAY, &pointer, include).broken(), [""; 0]);
    assert_eq!(
        asking("authorization-id"),
        ["ICH-B030", "ICH-B036"],
        "it is not the identity, and does not pass"
    );
}

#[test]
fn identity_must_not_change_with_every_token() {
    for name in ["jti", "exp", "sid"] {
        let identity = format!(r#"{{ "source": "jwt_claim", "name": "{name}" }}"#);
        let broken = Set::starting().with(ADAPTER, "/identity", &identity).broken();
        assert!(broken.contains(&"ICH-B080"), "{name}: {broken:?}");
    }
    finds(ADAPTER, "/identity", r#"{ "source": "single", "name": "session" }"#, &[]);
}

#[test]
fn leave_out_cannot_exclude_the_whole_body() {
    let pointer = format!("{ENABLED}/fingerprint/body_hash/input/leave_out");
    for text in ["", "/", "/*", "/items/*/price", "/a//b", "/**", "$.a"] {
        finds(GATEWAY, &pointer, &format!(r#"["/trace_id", "{text}"]"#), &["ICH-B033"]);
    }
    finds(GATEWAY, &pointer, r#"["/meta/trace_id", "/a~1b"]"#, &[]);
}
