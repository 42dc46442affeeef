//! The steps that every role applies to a request and its response.
//!
//! Guarantee: the key is read and checked before anything is sent, and passed on byte for byte. Every response
//! carries the id of its request. The next hop learns the hops of a request, and the hops that an outsider claims are
//! not trusted.
// Spec: C1, F1.

use http::header::HeaderName;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use ichido_boundary::{Methods, RequestId as RequestIdRule, Traceparent};
use ichido_core::hops::{Hop, HopName, Hops, RequestId};
use ichido_core::key::{self, IdempotencyKey, KeyError, KeySyntax};
use ichido_http::clock;
use ichido_http::server::Peer;
use ichido_http::server::body::Timed;
use ichido_http::server::limits::Limits;
use uuid::Uuid;

use super::headers::{self, HOPS, HeaderFilter, KEY, REQUEST_ID, TRACEPARENT, TRACESTATE, X_KEY};
use super::problem::Problem;
use super::upstream::UpstreamRequest;
use super::validate::validated_target;

/// The keys that a proxy passes on. The adapter's ledger refuses those that its profile does not allow.
const KEY_SYNTAX: KeySyntax = KeySyntax::AnyString;

/// The rules for all requests of one proxy.
#[derive(Clone, Debug)]
pub(crate) struct FilterRules {
    /// Our name in the hops header.
    pub(crate) name: HopName,
    /// Whether callers are outsiders, whose claims about earlier hops are ignored.
    pub(crate) is_edge: bool,
    /// The handling of `x-request-id`.
    pub(crate) request_id: RequestIdRule,
    /// The handling of `traceparent` and `tracestate`.
    pub(crate) traceparent: Traceparent,
    /// Which methods pass, and which of them change state.
    pub(crate) methods: Methods,
    /// Whether a state-changing request must have a key.
    pub(crate) key: KeyRule,
    /// Whether responses carry the key: always, never, or as the upstream does.
    // Spec: C5.
    pub(crate) echo_key: Option<bool>,
    /// Which header fields pass.
    pub(crate) lists: HeaderFilter,
    /// Fields that identify the caller, which no client may remove by naming them in `Connection`.
    pub(crate) relied_on: Vec<HeaderName>,
}

/// Whether a state-changing request must have a key.
#[derive(Clone, Debug)]
pub(crate) enum KeyRule {
    /// It must have a key; without one it is refused with this status and code.
    Required {
        /// 400, unless a boundary file sets another.
        status: StatusCode,
        /// [`KeyRule::CODE`], unless a boundary file sets another.
        code: String,
    },
    /// It may have a key, which must be valid.
    Optional,
}

impl KeyRule {
    /// The code of the refusal.
    pub(crate) const CODE: &str = "key_missing";
}

/// A request that passed the checks.
pub(crate) struct AdmittedRequest {
    pub(crate) call: UpstreamRequest,
    pub(crate) body: Timed,
    /// The client that sent it.
    pub(crate) peer: Option<Peer>,
    /// The key, if the method changes state.
    pub(crate) key: Option<IdempotencyKey>,
}

/// The part of a request that its response needs.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) request_id: RequestId,
    /// The key's field as received.
    key_field: Option<http::HeaderValue>,
}

impl RequestContext {
    /// Returns the key's hash for logs, or `None` without a valid key.
    // Spec: C5.
    pub(crate) fn key_hash(&self) -> Option<String> {
        let field = self.key_field.as_ref()?.as_bytes();
        key::read_as([(KEY.as_str(), field)], KEY_SYNTAX).ok().flatten().map(|key| key.log_hash())
    }
}

impl FilterRules {
    /// Reads the context of a request before any check, so refusals carry an id too.
    pub(crate) fn context(&self, headers: &HeaderMap) -> RequestContext {
        let key_field = headers.get(KEY).or_else(|| headers.get(X_KEY)).cloned();
        RequestContext { request_id: self.request_id(headers), key_field }
    }

    /// Keeps the request's own id if it is valid and allowed, or creates one.
    fn request_id(&self, headers: &HeaderMap) -> RequestId {
        let mut lines = headers.get_all(REQUEST_ID).iter();
        let received = match (lines.next(), lines.next()) {
            (Some(line), None) => line.to_str().ok().and_then(|line| RequestId::parse(line).ok()),
            _ => None,
        };
        match (self.request_id, received) {
            (RequestIdRule::Keep, Some(id)) => id,
            (RequestIdRule::Keep | RequestIdRule::New, _) => fresh_id(),
        }
    }

    /// Checks a request and prepares it for the next step.
    ///
    /// `is_guarded` says whether it changes state, so its key counts.
    pub(crate) fn admit(
        &self,
        request: Request<Incoming>,
        context: &RequestContext,
        limits: &Limits,
        is_guarded: bool,
    ) -> Result<AdmittedRequest, Problem> {
        let (head, body) = request.into_parts();
        let target = validated_target(&head)?;
        let peer = head.extensions.get::<Peer>().copied();
        let method = head.method;
        if !self.methods.allows(method.as_str()) {
            return Err(Problem::method(self.methods.allowed.as_deref().unwrap_or_default()));
        }
        let mut headers = head.headers;
        headers::strip_request(&mut headers, &self.relied_on).map_err(|headers::NamesEndToEnd| {
            Problem::malformed(
                "the Connection header names an end-to-end header, such as Idempotency-Key; remove it from Connection",
            )
        })?;
        let key = if is_guarded { self.read_key(&headers)? } else { None };
        let hops = self.hops(&headers, context);
        headers.remove(http::header::HOST);
        self.lists.filter_inbound(&mut headers);
        if self.traceparent == Traceparent::Drop {
            headers.remove(TRACEPARENT);
            headers.remove(TRACESTATE);
        }
        headers::set(&mut headers, REQUEST_ID, context.request_id.as_str());
        headers::set(&mut headers, HOPS, &hops.to_string());
        let body = Timed::request(body, limits.body_idle, limits.body);
        Ok(AdmittedRequest { call: UpstreamRequest { method, target, headers }, body, peer, key })
    }

    /// Reads the key of a state-changing request. On other requests a key has no meaning and is not read.
    fn read_key(&self, headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
        let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        match (key::read_as(fields, KEY_SYNTAX), &self.key) {
            (Ok(None), KeyRule::Required { status, code }) => {
                Err(Problem::key_error(KeyError::Missing).with_code(*status, code))
            }
            (Ok(found), KeyRule::Required { .. } | KeyRule::Optional) => Ok(found),
            (Err(error), _) => Err(Problem::key_error(error)),
        }
    }

    fn hops(&self, headers: &HeaderMap, context: &RequestContext) -> Hops {
        let before = if self.is_edge { Hops::default() } else { Hops::read(headers.get_all(HOPS)) };
        before.and(Hop { name: self.name.clone(), at: clock::now(), request_id: context.request_id.clone() })
    }

    /// Removes the fields that must not reach the upstream.
    pub(crate) fn filter_outbound(&self, call: &mut UpstreamRequest) {
        self.lists.filter_outbound(&mut call.headers);
    }

    /// Removes the fields of an upstream response that must not pass.
    pub(crate) fn filter_response<B>(&self, answer: &mut Response<B>) {
        headers::strip_response(answer.headers_mut());
        self.lists.filter_response(answer.headers_mut());
    }

    /// Prepares a response, the upstream's or our own, for the client.
    pub(crate) fn finish_response<B>(&self, response: &mut Response<B>, context: &RequestContext) {
        let headers = response.headers_mut();
        match (self.echo_key, &context.key_field) {
            (Some(true), Some(field)) => drop(headers.insert(KEY, field.clone())),
            (Some(false), _) => {
                headers.remove(KEY);
                headers.remove(X_KEY);
            }
            (Some(true), None) | (None, _) => {}
        }
        headers::set(headers, REQUEST_ID, context.request_id.as_str());
    }
}

fn fresh_id() -> RequestId {
    let id = Uuid::now_v7().to_string();
    RequestId::parse(&id).unwrap_or_else(|_| unreachable!("a UUID is hexadecimal digits and hyphens"))
}
