//! What the server is asked, and how that is written.
//!
//! Guarantee: every try of an action has the same method, path, key and body, and the same fields but for those that tell one try from
//! another: its number, and where the server reads them the hops and the id of the request.

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use ichido_core::hops::{Hop, Hops, RequestId};
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::Profile;
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;

use super::Client;
use crate::action::{Action, HOPS, IDEMPOTENCY_KEY, TRY};

/// How we call ourselves.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("ichido-client/", env!("CARGO_PKG_VERSION")));
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the server is asked.
pub(crate) enum ClientCall<'a> {
    Action(&'a Action),
    Read(PathAndQuery),
}

impl ClientCall<'_> {
    pub(crate) const fn key(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Action(action) => action.key.as_ref(),
            Self::Read(_) => None,
        }
    }

    pub(crate) const fn safety(&self) -> Safety {
        match self {
            Self::Action(action) => action.safety(),
            Self::Read(_) => Safety::Repeatable,
        }
    }

    /// The request of the try that follows `sent` others. `chance` makes the id of the request.
    pub(crate) fn request(
        &self,
        client: &Client,
        sent: u32,
        now: Timestamp,
        chance: u128,
    ) -> Option<Request<Full<Bytes>>> {
        let (method, path, body) = match self {
            Self::Action(action) => (action.method.clone(), &action.path, action.body.clone()),
            Self::Read(path) => (Method::GET, path, Bytes::new()),
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = PathAndQuery::try_from(format!("{}{path}", client.prefix)).ok()?.into();
        let fields = request.headers_mut();
        fields.clone_from(&client.headers);
        fields.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if let Self::Action(action) = self {
            fields.extend(action.headers.clone());
            if let Some(key) = &action.key {
                fields.insert(IDEMPOTENCY_KEY, key_field(key, client.rules.profile)?);
            }
            fields.insert(TRY, HeaderValue::from_str(&action.try_field(sent)).ok()?);
            if client.rules.profile == Profile::Ichido {
                let id = request_id(fields, chance)?;
                let hop = Hop { name: client.hop_name.clone(), at: now, request_id: id };
                fields.insert(HOPS, hops_field(&action.hops, hop)?);
            }
        }
        fields.insert(HOST, client.http.host_field());
        fields.insert(USER_AGENT, AGENT);
        Some(request)
    }
}

/// A key as a header field's value, marked so that nobody shows it. `None` for no key there is.
fn key_field(key: &IdempotencyKey, profile: Profile) -> Option<HeaderValue> {
    let text = key.as_str();
    let value = match profile {
        // The draft has it so, for every key.
        Profile::Ietf => key.to_field_value(),
        // What begins with a quote is read as a structured-field string, and nothing else is.
        Profile::Ichido if text.starts_with('"') => key.to_field_value(),
        Profile::Ichido | Profile::Stripe => text.to_owned(),
    };
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The id that the caller gave the request, or a new one. What the caller put there stays, even where it is none that a hop can name.
fn request_id(fields: &mut HeaderMap, chance: u128) -> Option<RequestId> {
    let given = fields.get(REQUEST_ID).map(|id| id.to_str().ok().and_then(|id| RequestId::parse(id).ok()));
    if let Some(Some(id)) = given {
        return Some(id);
    }
    let id = RequestId::parse(&format!("{chance:032x}")).ok()?;
    if given.is_none() {
        fields.insert(REQUEST_ID, HeaderValue::from_str(id.as_str()).ok()?);
    }
    Some(id)
}

/// The way up to here, with us at its end.
fn hops_field(before: &Hops, us: Hop) -> Option<HeaderValue> {
    HeaderValue::from_str(&before.clone().and(us).to_string()).ok()
}

#[cfg(test)]
mod tests;
