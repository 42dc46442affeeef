//! The caller's identity: a stable name from a trusted source.
//!
//! Guarantee: a request gets one identity, proven as its source requires, or is refused. Nothing is guessed from an
//! address, and no secret becomes a name: a renewed token is the same caller. Additional fingerprint inputs that a
//! boundary file names are read from the same token or from the request's headers.
// Spec: C3.

mod api_keys;
mod jwt;
mod signature;

use std::sync::Once;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::request::Parts;
use ichido::once::{CallerIdentity, IdentityError};
use ichido_boundary::FingerprintInput;
use ichido_core::fingerprint::Inputs;
use ichido_core::json::{CanonicalForm, Document};

pub(crate) use api_keys::ApiKeys;
pub(crate) use jwt::{Algorithm, Jwt};

/// The warning about a missing identity header.
const MISSING_HEADER: &str = "rejected request without the identity header (403; further ones are not logged): a \
                              trusted hop before the adapter must set it. `ichido proxy --role bff` never sets it and \
                              drops the browser's: take the identity from a JWT or an API key, or set the header in \
                              your own BFF and allow it at every hop";

/// Where the caller's name comes from.
pub(crate) enum Identity {
    /// A header that a trusted hop sets.
    Header {
        /// The name of the header.
        header: HeaderName,
        /// Whether the missing header was logged. It is logged once, because anyone can send requests without it.
        warned: Once,
    },
    /// Claims of a verified token in `Authorization: Bearer`.
    Jwt(Box<Jwt>),
    /// An API key in a header, stored as a hash.
    ApiKey { header: HeaderName, keys: ApiKeys },
    /// All requests come from one caller.
    Single(String),
}

impl Identity {
    /// Identifies the caller and reads the additional fingerprint inputs.
    pub(crate) fn caller(
        &self,
        head: &Parts,
        extra_inputs: &[FingerprintInput],
    ) -> Result<CallerIdentity, IdentityError> {
        let without_claims =
            |identity| Ok(CallerIdentity { identity, inputs: inputs(head, None, extra_inputs)? });
        match self {
            Self::Single(name) => without_claims(name.clone()),
            Self::Header { header, warned } => {
                let name = single_field(head, header).and_then(|value| value.to_str().ok());
                let name = name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or_else(|| {
                    warned.call_once(|| tracing::warn!(%header, "{MISSING_HEADER}"));
                    IdentityError::HeaderMissing { name: header.clone() }
                })?;
                without_claims(name)
            }
            Self::Jwt(jwt) => {
                let token = single_field(head, &AUTHORIZATION).and_then(bearer);
                let claims = token.and_then(|token| jwt.verify(token));
                let claims = claims.as_ref().and_then(jwt::Claims::document);
                let named =
                    claims.as_ref().and_then(|claims| jwt::identity_name(claims, jwt.identity_claims()));
                let identity = named.ok_or_else(|| unauthenticated("Bearer"))?;
                Ok(CallerIdentity { identity, inputs: inputs(head, claims.as_ref(), extra_inputs)? })
            }
            Self::ApiKey { header, keys } => {
                let key = single_field(head, header).map(HeaderValue::as_bytes);
                let name = key.and_then(|key| keys.identity(key)).ok_or_else(|| unauthenticated("ApiKey"))?;
                without_claims(name)
            }
        }
    }

    /// Returns the inputs that neither the identity nor every fingerprint contains.
    ///
    /// The error names an input that cannot be read.
    pub(crate) fn extra_inputs(&self, inputs: &[FingerprintInput]) -> Result<Vec<FingerprintInput>, String> {
        let mut extra_inputs = Vec::new();
        for input in inputs.iter().filter(|input| input.name().is_some()) {
            let is_in_identity = match (input, self) {
                (FingerprintInput::Claim(claim), Self::Jwt(jwt)) => jwt.identity_claims().contains(claim),
                (FingerprintInput::Claim(claim), _) => {
                    return Err(format!(
                        "the fingerprint includes `claims.{claim}`, but callers are not identified by a JWT; take the \
                         identity from a JWT, or use `identity` in fingerprint.include"
                    ));
                }
                (
                    FingerprintInput::Header(name),
                    Self::Header { header, .. } | Self::ApiKey { header, .. },
                ) => header == name.as_str(),
                _ => false,
            };
            if !is_in_identity {
                extra_inputs.push(input.clone());
            }
        }
        Ok(extra_inputs)
    }

    /// Returns the header that it reads, which nobody may remove by naming it in `Connection`.
    pub(crate) fn header(&self) -> Option<HeaderName> {
        match self {
            Self::Header { header, .. } | Self::ApiKey { header, .. } => Some(header.clone()),
            Self::Jwt(_) => Some(AUTHORIZATION),
            Self::Single(_) => None,
        }
    }

    /// Whether all requests come from one caller.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Single(_))
    }
}

/// Reads the values of these inputs. A missing claim or header has none.
fn inputs(
    head: &Parts,
    claims: Option<&Document<'_>>,
    extra_inputs: &[FingerprintInput],
) -> Result<Option<Inputs>, IdentityError> {
    let mut found: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
    for input in extra_inputs {
        let values = match input {
            FingerprintInput::Claim(path) => {
                let claim = claims.and_then(|claims| path.find(claims.root()));
                // Two spellings of one value are equal. A value that is too long to compare is refused.
                let form = claim.map(|claim| claim.canonical(&CanonicalForm::default())).transpose();
                form.map_err(|_| unauthenticated("Bearer"))?.into_iter().collect()
            }
            FingerprintInput::Header(name) => {
                head.headers.get_all(name).iter().map(|line| line.as_bytes().to_vec()).collect()
            }
            _ => Vec::new(),
        };
        found.extend(input.name().map(|name| (name, values)));
    }
    Ok(Inputs::new(found))
}

/// Returns a field that occurs exactly once; two lines could mean two callers.
fn single_field<'a>(head: &'a Parts, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut lines = head.headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

const fn unauthenticated(scheme: &'static str) -> IdentityError {
    IdentityError::Unauthenticated { challenge: HeaderValue::from_static(scheme) }
}
