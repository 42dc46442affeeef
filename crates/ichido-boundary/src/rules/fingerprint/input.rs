//! Rules for fingerprint inputs: what they name, and whether that is stable across attempts.

use crate::rules::adapter::adapters;
use crate::rules::adapter::identity::{self, stopping};
use crate::{
    Boundary, ClaimPath, Crossing, FingerprintInput, HopChain, Identity, IdentityRule, Name, NamedValues,
    OperationClass, Party, Traffic,
};

/// Inputs that differ between attempts, with `_` for `-`.
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

/// Words that contain claims, and say nothing without the name of one.
const HOLDERS: [&str; 8] = ["claim", "claims", "header", "headers", "jwt", "query", "token", "tokens"];

/// Returns the words of an input: `claims.tenant_id` and `headers['x-request-id']` have two.
fn parts(input: &str) -> impl Iterator<Item = &str> {
    let is_of_a_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | '*');
    input.split(move |one| !is_of_a_word(one)).filter(|part| !part.is_empty())
}

fn last(input: &str) -> &str {
    parts(input).last().unwrap_or_default()
}

/// Returns whether it is empty, a `*`, or a group without a name: `claims.` and `headers`.
///
/// `query` is the whole query, which is stable.
pub(super) fn is_nameless(input: &str) -> bool {
    let last = last(input);
    let is_all = last.is_empty() || last.contains('*');
    is_all
        || (last != "query"
            && parts(input).count() == 1
            && HOLDERS.iter().any(|one| one.eq_ignore_ascii_case(last)))
}

/// Returns whether it differs between attempts.
pub(super) fn changes(input: &str) -> bool {
    changes_by_name(last(input))
}

/// Returns whether a claim, a header or similar of this name differs between attempts or tokens.
pub(in crate::rules) fn changes_by_name(name: &str) -> bool {
    let name = name.replace('-', "_");
    CHANGING.iter().any(|one| one.eq_ignore_ascii_case(&name))
}

/// Returns whether it identifies the caller with a stable name.
pub(super) fn is_caller(input: &FingerprintInput) -> bool {
    match input {
        FingerprintInput::Identity => true,
        FingerprintInput::Claim(path) => !changes_by_name(path.last()),
        _ => false,
    }
}

/// Returns whether it includes this claim: by its name, or as the caller's identity.
pub(super) fn names(input: &FingerprintInput, claim: &ClaimPath) -> bool {
    match input {
        FingerprintInput::Identity => true,
        FingerprintInput::Claim(path) => path == claim,
        _ => false,
    }
}

/// Returns the claims with which the adapter's files identify the caller.
pub(super) fn identity_claims<'a>(chain: &HopChain<'a>) -> Vec<(&'a Boundary, ClaimPath)> {
    let of_claims = identities(chain).filter_map(|(file, one)| match one.rule() {
        Ok(IdentityRule::Claims(claims)) => Some(claims.into_iter().map(move |claim| (file, claim))),
        _ => None,
    });
    let mut claims: Vec<_> = of_claims.flatten().collect();
    claims.sort_by(|(_, one), (_, other)| one.cmp(other));
    claims.dedup_by(|(_, one), (_, other)| one == other);
    claims
}

/// Returns whether it is the header with which the adapter identifies the caller.
pub(super) fn is_identity_header(chain: &HopChain<'_>, input: &FingerprintInput) -> bool {
    let FingerprintInput::Header(header) = input else { return false };
    identities(chain).any(|(_, one)| match one.rule() {
        Ok(IdentityRule::Header(name) | IdentityRule::ApiKey(name)) => name.eq_ignore_ascii_case(header),
        _ => false,
    })
}

/// Returns why the adapter would not read an input that has a meaning.
pub(super) fn unreadable_reason(chain: &HopChain<'_>, input: &FingerprintInput) -> Option<String> {
    match input {
        FingerprintInput::Claim(_) => {
            let (file, pointer) = operation_without_token(chain)?;
            let file = file.name();
            Some(format!("{file} uses no token for {pointer}, so there are no claims; use `identity`"))
        }
        FingerprintInput::Header(header) => {
            let listed = stopping(chain, header).map(|(file, direction)| (file, direction.to_owned())).next();
            let own = || {
                let stops = |file: &&Boundary| {
                    !file.passes(Party::Adapter, Crossing::Arriving, Traffic::Requests, header)
                };
                chain.file(Name::Adapter).filter(stops).map(|file| (file, "headers".to_owned()))
            };
            let (file, direction) = listed.or_else(own)?;
            Some(format!("`{header}` does not pass {direction} of {}", file.name()))
        }
        _ => None,
    }
}

/// Returns a guarded operation whose caller is not identified by a token.
///
/// The pointer leads to its identity.
fn operation_without_token<'a>(chain: &HopChain<'a>) -> Option<(&'a Boundary, String)> {
    let has_token = |identity: &Identity| matches!(identity.rule(), Ok(IdentityRule::Claims(_)) | Err(_));
    let file = chain.file(Name::Adapter)?;
    let mut guarded = file
        .operations
        .iter()
        .flat_map(NamedValues::iter)
        .filter(|(_, operation)| operation.class != Some(OperationClass::Read));
    let of_operation = guarded.find_map(|(name, operation)| {
        let identity = operation.identity.as_ref().or(file.identity.as_ref())?;
        (!has_token(identity)).then(|| (file, format!("`{name}`")))
    });
    let of_file = || {
        let is_alone = file.operations.is_none();
        let identity = file.identity.as_ref().filter(|identity| is_alone && !has_token(identity));
        identity.map(|_| (file, "its identity".to_owned()))
    };
    of_operation.or_else(of_file)
}

fn identities<'a>(chain: &HopChain<'a>) -> impl Iterator<Item = (&'a Boundary, &'a Identity)> {
    adapters(chain).flat_map(|file| identity::identities(file).map(move |(_, identity)| (file, identity)))
}
