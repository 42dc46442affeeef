//! Who asks: a stable name of the caller, from a source that can be trusted (SPEC C3).
//!
//! Guarantee: a request gets one identity, proved as its source says, or is refused. Nothing is guessed from an address, and
//! no secret becomes a name: a renewed token is the same caller.

mod api_keys;
mod jwt;

use std::sync::Once;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::request::Parts;
use ichido::once::NoIdentity;

pub(crate) use api_keys::ApiKeys;
pub(crate) use jwt::{Algorithm, Jwt};

/// What to do about a header that names the caller and is not there.
const NOT_ARRIVED: &str = "a request without the header that says who asks was refused with 403, as all such will be; a \
    trusted hop before the adapter must set it. `ichido proxy` as a bff sets none, and drops what a browser sends: take the \
    identity from a JWT or an API key, or set the header in a BFF of your own and let every list pass it";

/// Where the caller's name comes from.
pub(crate) enum Identity {
    /// A header that a trusted hop sets.
    Header {
        /// Its name.
        header: HeaderName,
        /// Whether it was said that it does not arrive: once, because anybody can send requests without it.
        told: Once,
    },
    /// A claim of a verified token in `Authorization: Bearer`.
    Jwt(Box<Jwt>),
    /// An API key in a header, known by its hash.
    ApiKey { header: HeaderName, keys: ApiKeys },
    /// There is one caller.
    Single(String),
}

impl Identity {
    /// The name of whoever sent this request.
    pub(crate) fn of(&self, head: &Parts) -> Result<String, NoIdentity> {
        match self {
            Self::Single(name) => Ok(name.clone()),
            Self::Header { header, told } => {
                let name = only(head, header).and_then(|value| value.to_str().ok());
                name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or_else(|| {
                    told.call_once(|| tracing::warn!(%header, "{NOT_ARRIVED}"));
                    NoIdentity::Forbidden
                })
            }
            Self::Jwt(jwt) => {
                let token = only(head, &AUTHORIZATION).and_then(bearer);
                token.and_then(|token| jwt.identity(token)).ok_or_else(|| unauthenticated("Bearer"))
            }
            Self::ApiKey { header, keys } => {
                let key = only(head, header).map(HeaderValue::as_bytes);
                key.and_then(|key| keys.identity(key)).ok_or_else(|| unauthenticated("ApiKey"))
            }
        }
    }

    /// The header that it reads, which nobody may take away by naming it in `Connection`.
    pub(crate) fn header(&self) -> Option<HeaderName> {
        match self {
            Self::Header { header, .. } | Self::ApiKey { header, .. } => Some(header.clone()),
            Self::Jwt(_) => Some(AUTHORIZATION),
            Self::Single(_) => None,
        }
    }

    /// Whether all requests are one caller's.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Single(_))
    }
}

/// A field that came once; two lines could be two callers.
fn only<'a>(head: &'a Parts, name: &HeaderName) -> Option<&'a HeaderValue> {
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

const fn unauthenticated(scheme: &'static str) -> NoIdentity {
    NoIdentity::Unauthenticated { challenge: HeaderValue::from_static(scheme) }
}
