//! Header fields: our own, and which response fields are stored for replays.

use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use ichido_core::key;
use uuid::Uuid;

/// The header for an action without an outcome: `processing` while it is in flight, `unknown` if its key is held.
// Spec: C6, F2.
pub const STATUS: &str = "Idempotency-Status";

pub(crate) const STATUS_NAME: HeaderName = HeaderName::from_static("idempotency-status");
/// The value of [`STATUS`] for an action in flight.
pub(crate) const PROCESSING: HeaderValue = HeaderValue::from_static("processing");
/// The value of [`STATUS`] for an action whose outcome is unknown and whose key is held.
pub(crate) const UNKNOWN: HeaderValue = HeaderValue::from_static("unknown");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) const HOPS: HeaderName = HeaderName::from_static("ichido-hops");
pub(crate) const TRACE: HeaderName = HeaderName::from_static("traceparent");

/// Fields of one connection, response or caller, which are not part of the outcome.
const NOT_STORED: [HeaderName; 20] = [
    CONNECTION,
    // The length is computed from the body again.
    CONTENT_LENGTH,
    DATE,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    REQUEST_ID,
    HeaderName::from_static("x-correlation-id"),
    HeaderName::from_static("traceresponse"),
    HOPS,
    // Ours: each replay has its own.
    STATUS_NAME,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("idempotency-replayed"),
    HeaderName::from_static("idempotent-replayed"),
];
/// The same by prefix: CORS, which depends on the caller, and rate limits, which change from call to call.
const NOT_STORED_PREFIXES: [&str; 4] = ["access-control-", "ratelimit", "x-ratelimit", "x-rate-limit"];

/// Returns the response fields that replays repeat, with duplicates and order preserved.
pub(crate) fn stored_headers(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    // `Connection` lists fields that end with this connection.
    let named: Vec<&str> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(str::trim))
        .collect();
    headers
        .iter()
        .filter(|(name, _)| {
            !NOT_STORED.contains(name)
                && !NOT_STORED_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix))
                && !named.iter().any(|named| name.as_str().eq_ignore_ascii_case(named))
        })
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect()
}

/// Adds a request id to a response unless the handler set one.
pub(crate) fn ensure_request_id(headers: &mut HeaderMap) {
    if !headers.contains_key(REQUEST_ID) {
        let id = HeaderValue::from_str(&Uuid::now_v7().to_string());
        // A UUID is always a valid header value.
        headers.extend(id.ok().map(|id| (REQUEST_ID, id)));
    }
}

/// Returns the key's header exactly as sent: name and value.
pub(crate) fn echo(headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
    key::NAMES.into_iter().find_map(|name| {
        let (name, value) = (HeaderName::try_from(name).ok()?, headers.get(name)?);
        Some((name, value.clone()))
    })
}

/// Returns a field's text if it is plain and within the limit.
pub(crate) fn joined_text(parts: &Parts, name: HeaderName, max_bytes: usize) -> Option<String> {
    let mut joined = String::new();
    for value in parts.headers.get_all(name) {
        // Visible ASCII and spaces only, because it is displayed.
        let value = value.to_str().ok()?;
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(value);
        if max_bytes < joined.len() {
            return None;
        }
    }
    (!joined.is_empty()).then_some(joined)
}

/// The media type of a request's body.
pub(crate) struct Media {
    /// Type and encoding as one text, which is part of the request's fingerprint.
    pub(crate) text: String,
    /// An encoded body is compared by its bytes.
    pub(crate) is_encoded: bool,
}

pub(crate) fn media(headers: &HeaderMap) -> Media {
    let joined = |name: HeaderName| {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        values.collect::<Vec<_>>().join(", ")
    };
    let text = joined(CONTENT_TYPE);
    let encoding = joined(CONTENT_ENCODING);
    let is_encoded = !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity");
    Media { text: if is_encoded { format!("{encoding}:{text}") } else { text }, is_encoded }
}
