//! Response headers that belong to one exchange and mean something else later.
// SPEC C5.

/// Headers about the caller's identity or its proof.
const OF_A_SESSION: [&str; 10] = [
    "authentication-info",
    "authorization",
    "clear-site-data",
    "cookie",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
];

/// Headers about one connection or one hop.
const OF_A_CONNECTION: [&str; 11] = [
    "alt-svc",
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "server-timing",
];

/// Headers about when and under which name the first response was given.
const OF_A_REQUEST: [&str; 15] = [
    "age",
    "cf-ray",
    "date",
    "ichido-hops",
    "idempotency-replayed",
    "idempotency-status",
    "idempotent-replayed",
    "request-id",
    "traceparent",
    "tracestate",
    "x-amz-request-id",
    "x-amzn-requestid",
    "x-correlation-id",
    "x-request-id",
    "x-trace-id",
];

/// Returns whether a replay must not repeat the header, in any case.
pub(super) fn is_of_one_exchange(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    let lists: [&[&str]; 3] = [&OF_A_SESSION, &OF_A_CONNECTION, &OF_A_REQUEST];
    lists.iter().any(|list| list.contains(&header.as_str())) || header.starts_with("access-control-")
}
