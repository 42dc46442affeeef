//! The inputs of a fingerprint: what they name, and whether that stays the same from one try to the next.

use crate::boundary::{Boundary, Identity, IdentitySource, Name, Named, Way};
use crate::key::NAMES;

/// Inputs that differ from one try to the next, with `_` for `-`.
const CHANGING: [&str; 46] = [
    "access_token",
    "at_hash",
    "attempt",
    "auth_time",
    "authorization",
    "bearer",
    "c_hash",
    "client_ip",
    "cookie",
    "correlation_id",
    "date",
    "exp",
    "expires_at",
    "forwarded",
    "iat",
    "ichido_hops",
    "id_token",
    "ip",
    "issued_at",
    "jti",
    "jwt",
    "nbf",
    "nonce",
    "now",
    "rand",
    "random",
    "remote_addr",
    "request_id",
    "retry_count",
    "session",
    "session_id",
    "sid",
    "span_id",
    "time",
    "timestamp",
    "token",
    "trace_id",
    "traceparent",
    "tracestate",
    "ts",
    "user_agent",
    "uuid",
    "x_correlation_id",
    "x_forwarded_for",
    "x_real_ip",
    "x_request_id",
];

/// Words that hold claims, and say nothing without the name of one.
const HOLDERS: [&str; 8] = ["claim", "claims", "header", "headers", "jwt", "query", "token", "tokens"];

/// The words of an input: `claims.tenant_id` has two, `headers['x-request-id']` as well.
fn parts(input: &str) -> impl Iterator<Item = &str> {
    let is_of_a_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | '*');
    input.split(move |one| !is_of_a_word(one)).filter(|part| !part.is_empty())
}

fn last(input: &str) -> &str {
    parts(input).last().unwrap_or_default()
}

/// Whether it is empty, a `*`, or holds names and gives none: `claims.` and `headers`.
///
/// `query` is the whole of the query, which stays the same.
pub(super) fn is_nameless(input: &str) -> bool {
    let last = last(input);
    let is_all = last.is_empty() || last.contains('*');
    is_all
        || (last != "query"
            && parts(input).count() == 1
            && HOLDERS.iter().any(|one| one.eq_ignore_ascii_case(last)))
}

/// Whether it differs from one try to the next.
pub(super) fn changes(input: &str) -> bool {
    changes_by_name(last(input))
}

/// Whether a claim, a header or the like of this name differs from one try, or from one token, to the next.
pub(in crate::boundary::rules) fn changes_by_name(name: &str) -> bool {
    let name = name.replace('-', "_");
    CHANGING.iter().any(|one| one.eq_ignore_ascii_case(&name))
}

pub(super) fn is_key(input: &str) -> bool {
    let last = last(input);
    NAMES.iter().any(|name| name.eq_ignore_ascii_case(last)) || last == "idempotency_key"
}

/// Whether it says who asks, by a name that stays the same.
pub(super) fn is_caller(input: &str) -> bool {
    let is_named = !is_nameless(input) && !changes(input);
    let first = parts(input).next().unwrap_or_default();
    is_named && matches!(first, "claims" | "claim" | "identity" | "principal")
}

pub(super) fn is_operation(input: &str) -> bool {
    matches!(input, "operation" | "route.operation" | "route.pattern" | "route")
}

/// Whether it has this claim: by its name, or as whatever says who asks.
pub(super) fn names(input: &str, claim: &str) -> bool {
    let mut parts = parts(input);
    match (parts.next(), parts.next()) {
        (Some("identity" | "principal"), _) => true,
        (Some("claims" | "claim"), Some(_)) => input
            .split_once(['.', ':', '['])
            .is_some_and(|(_, rest)| rest.trim_matches(|one| matches!(one, '[' | ']' | '\'' | '"')) == claim),
        _ => false,
    }
}

/// The claims by which the adapter's files know who asks.
pub(super) fn identity_claims<'a>(way: &Way<'a>) -> Vec<(&'a Boundary, &'a str)> {
    let of_claims = identities(way).filter(|(_, one)| one.source == Some(IdentitySource::JwtClaim));
    let mut claims: Vec<_> = of_claims.filter_map(|(file, one)| Some((file, one.name.as_deref()?))).collect();
    claims.retain(|(_, claim)| !claim.is_empty());
    claims.sort_by_key(|(_, claim)| *claim);
    claims.dedup_by_key(|(_, claim)| *claim);
    claims
}

/// Whether it is the header by which the adapter knows who asks.
pub(super) fn is_identity_header(way: &Way<'_>, input: &str) -> bool {
    let mut of_headers = identities(way)
        .filter(|(_, one)| matches!(one.source, Some(IdentitySource::Header | IdentitySource::ApiKey)));
    of_headers.any(|(_, one)| one.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(last(input))))
}

fn identities<'a>(way: &Way<'a>) -> impl Iterator<Item = (&'a Boundary, &'a Identity)> {
    let files = way.files().filter(|file| file.name() == Name::Adapter);
    files.flat_map(|file| {
        let of_operations =
            file.operations.iter().flat_map(Named::iter).filter_map(|(_, one)| one.identity.as_ref());
        file.identity.iter().chain(of_operations).map(move |identity| (file, identity))
    })
}
