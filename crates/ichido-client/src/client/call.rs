//! A call and how it is written as a request.
//!
//! Guarantee: every attempt of an action has the same method, path, key, body and fields, except for those that
//! identify the attempt: its number, and, if the server reads them, the hops and the request id.

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

/// Our user agent.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("ichido-client/", env!("CARGO_PKG_VERSION")));
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A call to the server.
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
            Self::Read(_) => Safety::Idempotent,
        }
    }

    /// Builds the request of the attempt after `sent` others. `chance` becomes the request id.
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

/// Builds the key's header value, marked as sensitive. Valid keys always succeed.
fn key_field(key: &IdempotencyKey, profile: Profile) -> Option<HeaderValue> {
    let value = match profile {
        // The draft requires quotes for every key.
        Profile::Ietf => key.to_field_value(),
        Profile::Ichido => key.to_header_value(),
        Profile::Stripe | Profile::Acp => key.as_str().to_owned(),
    };
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the caller's request id or a new one.
///
/// The caller's field stays, even if its value is not a valid request id.
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

/// Appends this client to the hops.
fn hops_field(before: &Hops, us: Hop) -> Option<HeaderValue> {
    HeaderValue::from_str(&before.clone().and(us).to_string()).ok()
}

#[cfg(test)]
mod tests;
