//! The inputs of a fingerprint: one list for `ichido check` and for the adapter.
//!
//! Guarantee: every text that is parsed as an input has a meaning at run time. An input that the adapter could not read
//! is an error here, so `ichido check` and the start of the proxy refuse a file that names it.

use ichido_core::key::NAMES;

use super::claim::names;
use super::{ClaimPath, Fingerprint, is_token};

/// One input of a fingerprint, as a file names it in `fingerprint.include`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FingerprintInput {
    /// The caller, from wherever the adapter takes its identity: `identity`, `principal`.
    Identity,
    /// The operation's name: `operation`, `route`, `route.operation`, `route.pattern`.
    Operation,
    /// The idempotency key: `idempotency-key`, `x-idempotency-key`, `idempotency_key`.
    Key,
    /// The request's method: `method`.
    Method,
    /// The request's path: `path`.
    Path,
    /// The whole query: `query`.
    Query,
    /// The body's media type: `headers.content-type`.
    MediaType,
    /// The body's digest: `body_hash`.
    BodyHash,
    /// A claim of the verified token: `claims.tenant_id`, `claims.actor.actor_id`.
    Claim(ClaimPath),
    /// A header, by its name in lower case: `headers.x-tenant`, or the bare name if it has a hyphen.
    Header(String),
}

/// Why a text is not an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Not a known word.
    #[error(
        "the adapter cannot read `{0}`; use `claims.NAME`, `headers.NAME`, `identity`, `route.operation`, \
         `idempotency-key`, `method`, `path`, `query` or `body_hash`"
    )]
    Unknown(String),
    /// A header that a proxy removes, or that is not about the request.
    #[error(
        "the adapter does not receive the header in `{0}`: it belongs to one connection, or proxies drop its name"
    )]
    NotRead(String),
}

/// Headers that end at each hop, or say nothing about the request.
const OF_ONE_HOP: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl FingerprintInput {
    /// Parses an input as a file spells it.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let unknown = || InputError::Unknown(text.to_owned());
        Ok(match text {
            "identity" | "principal" => Self::Identity,
            "operation" | "route" | "route.operation" | "route.pattern" => Self::Operation,
            "idempotency_key" => Self::Key,
            "method" => Self::Method,
            "path" => Self::Path,
            "query" => Self::Query,
            "body_hash" => Self::BodyHash,
            _ => match holder(text) {
                ("claims" | "claim", Some(rest)) => Self::Claim(ClaimPath::parse(rest).ok_or_else(unknown)?),
                ("headers" | "header", Some(rest)) => match names(rest).as_deref() {
                    Some([name]) => header(name, text)?,
                    _ => return Err(unknown()),
                },
                // A single word could be a claim or a header; no claim in use has a hyphen.
                (name, None) if name.contains('-') => header(name, text)?,
                _ => return Err(unknown()),
            },
        })
    }

    /// Returns its name in the hash, which no other input has.
    ///
    /// Returns `None` if every fingerprint has it anyway.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Claim(path) => Some(format!("claims{}", path.pointer())),
            Self::Header(name) => Some(format!("headers/{name}")),
            Self::Identity
            | Self::Operation
            | Self::Key
            | Self::Method
            | Self::Path
            | Self::Query
            | Self::MediaType
            | Self::BodyHash => None,
        }
    }
}

/// Splits an input into the word before the first `.`, `:` or `[`, and the names after it.
fn holder(text: &str) -> (&str, Option<&str>) {
    let Some(at) = text.find(['.', ':', '[']) else { return (text, None) };
    let (word, rest) = text.split_at(at);
    (word, Some(rest.strip_prefix(['.', ':']).unwrap_or(rest)))
}

fn header(name: &str, text: &str) -> Result<FingerprintInput, InputError> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "content-type" => Ok(FingerprintInput::MediaType),
        key if NAMES.iter().any(|one| one.eq_ignore_ascii_case(key)) => Ok(FingerprintInput::Key),
        one if !is_token(one) => Err(InputError::Unknown(text.to_owned())),
        one if !is_portable(one) || OF_ONE_HOP.contains(&one) => Err(InputError::NotRead(text.to_owned())),
        _ => Ok(FingerprintInput::Header(name)),
    }
}

/// Returns whether a header name has only letters, digits and hyphens.
///
/// Services that read headers as environment variables (CGI, WSGI, Rack, PHP) take `X_User_Id`, and some `X.User.Id`,
/// for `X-User-Id`. A proxy that drops one and passes the other drops nothing, so proxies drop every such name.
pub fn is_portable(header: &str) -> bool {
    header.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Fingerprint {
    /// Returns the inputs that the file names, each once.
    ///
    /// Their order does not depend on the file.
    pub fn inputs(&self) -> Result<Vec<FingerprintInput>, InputError> {
        let texts = self.include.iter().flatten();
        let mut inputs: Vec<_> = texts.map(|text| FingerprintInput::parse(text)).collect::<Result<_, _>>()?;
        inputs.sort();
        inputs.dedup();
        Ok(inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn name(text: &str) -> Option<String> {
        FingerprintInput::parse(text).unwrap_or_else(|error| panic!("{error}")).name()
    }

    #[test]
    fn every_input_has_one_meaning() {
        for (text, expected) in [
            ("claims.tenant_id", "claims/tenant_id"),
            ("claim:tenant_id", "claims/tenant_id"),
            ("claims['tenant_id']", "claims/tenant_id"),
            ("claims.actor.actor_id", "claims/actor/actor_id"),
            ("claims['actor.actor_id']", "claims/actor.actor_id"),
            ("claims.https://example.com/tenant.id", "claims/https:~1~1example.com~1tenant.id"),
            ("headers.X-Tenant", "headers/x-tenant"),
            ("header:x-tenant", "headers/x-tenant"),
            ("headers['x-tenant']", "headers/x-tenant"),
            ("x-tenant", "headers/x-tenant"),
        ] {
            assert_eq!(name(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "identity",
            "principal",
            "route.operation",
            "X-Idempotency-Key",
            "headers.idempotency-key",
            "method",
            "path",
            "query",
            "headers.Content-Type",
            "body_hash",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn unknown_input_is_refused() {
        for text in [
            "",
            "tenant",
            "tenant_id",
            "claims",
            "claims.",
            "claims.*",
            "claims.tenant_id ",
            "claims. tenant_id",
            "claims['tenant id']",
            "claims.tenant_id,claims.sub",
            "headers",
            "headers.*",
            "headers.a.b",
            "headers.x tenant",
            "identity.tenant",
            "jwt.tenant_id",
            "body.amount",
            "query.page",
            "request.headers.x-tenant",
        ] {
            assert_eq!(FingerprintInput::parse(text), Err(InputError::Unknown(text.to_owned())), "{text}");
        }
        for text in ["headers.host", "headers.X_Tenant", "headers['x.tenant']", "transfer-encoding"] {
            assert_eq!(FingerprintInput::parse(text), Err(InputError::NotRead(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn the_order_of_a_file_does_not_matter() {
        let of = |texts: &[&str]| {
            let include = Some(texts.iter().map(|text| (*text).to_owned()).collect());
            Fingerprint { include, ..Fingerprint::default() }.inputs().expect("they are inputs")
        };
        assert_eq!(of(&["claims.a", "x-b", "identity"]), of(&["identity", "x-b", "claims.a", "headers.X-B"]));
    }
}
