//! Reads an incoming request: its identity, operation and key.
//!
//! Nothing is claimed here, and the body is not read before the head has been checked.

use std::sync::Arc;

use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use ichido_core::digest::{BodyRules, Digest, is_json};
use ichido_core::fingerprint::{Fingerprint, Inputs, RequestParts};
use ichido_core::json::{Document, JsonError, Kind};
use ichido_core::key::{self, IdempotencyKey};
use ichido_core::ledger::RecordName;
use ichido_store::ledger::KeyClaim;
use ichido_store::ledger::limits::{MAX_HOPS_BYTES, MAX_TRACE_BYTES};

use super::body::Body;
use super::builder::is_name;
use super::fields;
use super::problem::{Code, Problem};
use super::settings::{CallerIdentity, IdentityError, Settings, limits};

/// The member of a JSON body that may repeat the key.
// Spec: D11.
const BODY_KEY: &str = "idempotency_key";

/// A complete request with its key.
pub(crate) struct Arrival {
    pub(crate) name: RecordName,
    pub(crate) fingerprint: Fingerprint,
    request_digest: Digest,
    parts: Parts,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

impl Arrival {
    pub(crate) fn claim(&self, settings: &Settings) -> KeyClaim {
        KeyClaim {
            name: self.name.clone(),
            fingerprint: self.fingerprint,
            request_digest: self.request_digest,
            policy: Arc::clone(&settings.policy),
            hops: fields::joined_text(&self.parts, fields::HOPS, MAX_HOPS_BYTES),
            trace: fields::joined_text(&self.parts, fields::TRACE, MAX_TRACE_BYTES),
        }
    }

    /// Rebuilds the original request, as often as needed.
    pub(crate) fn to_request<B: http_body::Body<Data = Bytes>>(&self) -> Request<Body<B>> {
        Request::from_parts(self.parts.clone(), Body::buffered(self.body.clone(), self.trailers.clone()))
    }
}

/// The parts of a request's head, read before its body.
pub(crate) struct RequestHead {
    pub(crate) name: RecordName,
    pub(crate) inputs: Option<Inputs>,
    pub(crate) echo: Option<(HeaderName, HeaderValue)>,
}

/// Reads the head. Returns `None` if it has no key and needs none.
pub(crate) fn read_head(
    parts: &Parts,
    operation: &str,
    settings: &Settings,
) -> Result<Option<RequestHead>, Problem> {
    let fields = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let key = key::read_as(fields, settings.policy.profile().key_syntax());
    let key = key.and_then(|key| settings.policy.require(key)).map_err(Problem::of_key)?;
    let Some(key) = key else { return Ok(None) };
    if !is_name(operation, limits::MAX_OPERATION_BYTES) {
        let detail = "the operation of this request has an invalid name; nothing was run";
        return Err(Problem::new(Code::HandlerFailed, detail));
    }
    let CallerIdentity { identity, inputs } = (settings.caller)(parts).map_err(no_identity)?;
    if !is_name(&identity, limits::MAX_IDENTITY_BYTES) {
        return Err(no_identity(IdentityError::Forbidden));
    }
    let echo = settings.echo_key.then(|| fields::echo(&parts.headers)).flatten();
    Ok(Some(RequestHead {
        name: RecordName { operation: operation.to_owned(), identity, key },
        inputs,
        echo,
    }))
}

fn no_identity(why: IdentityError) -> Problem {
    match why {
        IdentityError::Unauthenticated { challenge } => {
            let detail = "this request needs authentication; nothing was done";
            Problem::new(Code::IdentityMissing, detail)
                .under(StatusCode::UNAUTHORIZED)
                .with_field(WWW_AUTHENTICATE, challenge)
        }
        IdentityError::Forbidden => {
            Problem::new(Code::IdentityMissing, "this request has no valid identity; nothing was done")
        }
        IdentityError::HeaderMissing { name } => {
            let detail = format!(
                "this request has no identity; send the header {name} once, with the caller's name; nothing was done"
            );
            Problem::new(Code::IdentityMissing, detail)
        }
    }
}

/// Reads the body, within its limit.
pub(crate) async fn read_request<B>(
    name: RecordName,
    inputs: Option<Inputs>,
    parts: Parts,
    body: B,
    settings: &Settings,
) -> Result<Arrival, Problem>
where
    B: http_body::Body<Data = Bytes>,
{
    let (body, trailers) = read(body, settings.rules.max_bytes).await?;
    let media = fields::media(&parts.headers);
    let request_digest = if media.is_encoded || !is_json(&media.text) || body.is_empty() {
        Digest::of_bytes(&body)
    } else {
        digest_of_json(&body, &name.key, &settings.rules)?
    };
    let uri = requested_uri(&parts);
    let fingerprint = Fingerprint::new(&RequestParts {
        operation: &name.operation,
        identity: &name.identity,
        method: parts.method.as_str(),
        path: uri.path(),
        query: uri.query().unwrap_or_default(),
        media_type: &media.text,
        digest: request_digest,
        inputs,
    });
    Ok(Arrival { name, fingerprint, request_digest, parts, body, trailers })
}

/// Returns the URI that the client requested.
fn requested_uri(parts: &Parts) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(original) = super::extract::original_uri(parts) {
        return original;
    }
    &parts.uri
}

/// Digests a JSON body after checking that a repeated key agrees.
fn digest_of_json(body: &[u8], key: &IdempotencyKey, rules: &BodyRules) -> Result<Digest, Problem> {
    let invalid = |error: JsonError| {
        let detail = format!("the body is not valid JSON: {error}; nothing was done");
        Problem::new(Code::BodyInvalid, detail)
    };
    let document = Document::parse(body, rules.max_bytes).map_err(invalid)?;
    if let Some(repeated) = document.root().get(BODY_KEY).filter(|value| value.kind() != Kind::Null) {
        // Anything but a string is not a key, and therefore not this one.
        let text = repeated.as_str().unwrap_or_default();
        key.agrees_with_body(&text).map_err(Problem::of_key)?;
    }
    Ok(Digest::of_bytes(&document.canonical(&rules.form).map_err(invalid)?))
}

async fn read<B: http_body::Body<Data = Bytes>>(
    body: B,
    max_bytes: usize,
) -> Result<(Bytes, Option<HeaderMap>), Problem> {
    let too_large = || {
        let detail = format!("the body is larger than {max_bytes} bytes, the limit; nothing was done");
        Problem::new(Code::BodyTooLarge, detail)
    };
    if (max_bytes as u64) < body.size_hint().lower() {
        return Err(too_large());
    }
    let body = Limited::new(body.map_err(|_| BodyTruncated), max_bytes);
    let whole = body.collect().await.map_err(|error| match error.downcast::<LengthLimitError>() {
        Ok(_) => too_large(),
        Err(_) => Problem::new(Code::BodyIncomplete, BodyTruncated.to_string()),
    })?;
    let trailers = whole.trailers().cloned();
    Ok((whole.to_bytes(), trailers))
}

#[derive(Debug, thiserror::Error)]
#[error("the body was cut off; nothing was done")]
struct BodyTruncated;
