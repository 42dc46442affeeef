//! Reading a request: its path, its query and its body, each within its bound.

use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::problem::{Code, Problem};
use crate::listen::body::{BodyFault, BoxError};

/// The one variable segment of a path, decoded.
pub(super) struct Segment(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(segment) = path.map_err(|_| no_route())?;
        Ok(Self(segment))
    }
}

pub(super) fn no_route() -> Problem {
    Problem::new(Code::RouteUnknown, "there is nothing at this path; /openapi.json lists what there is")
}

/// The parameters of a query, each known and given once.
pub(super) fn parameters(uri: &Uri, known: &[&str]) -> Result<Vec<(String, String)>, Problem> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if !known.contains(&name.as_ref()) {
            let here = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let detail = format!("the query has a parameter that is not known here; known are: {here}");
            return Err(Problem::new(Code::ParameterInvalid, detail));
        }
        if found.iter().any(|(given, _)| *given == name) {
            let detail = format!("the parameter {name} is given more than once; give it once");
            return Err(Problem::new(Code::ParameterInvalid, detail));
        }
        found.push((name.into_owned(), value.into_owned()));
    }
    Ok(found)
}

/// Of an encoded body nothing but its bytes is known, so that none is taken.
pub(super) fn not_encoded(headers: &HeaderMap) -> Result<(), Problem> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let detail = "the body has a Content-Encoding, and is not decoded here; send it as it is";
    Err(Problem::new(Code::MediaTypeUnsupported, detail))
}

/// A body to its end. One that says that it is too large is not waited for.
pub(super) async fn whole(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large(bytes_max));
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(bytes_max)),
        Err(error) => Err(Problem::of_body(fault_of(error))),
    }
}

fn too_large(bytes_max: usize) -> Problem {
    let detail = format!(
        "the body has more than {bytes_max} bytes; nothing was done; send less, or a reference to it"
    );
    Problem::new(Code::BodyTooLarge, detail)
}

/// What went wrong with a body, beneath what axum wrapped it in.
pub(super) fn fault_of(error: BoxError) -> BodyFault {
    let inner = match error.downcast::<axum::Error>() {
        Ok(wrapped) => wrapped.into_inner(),
        Err(error) => error,
    };
    // Nothing else comes out of a body; should it, the body did not come to its end either.
    inner.downcast::<BodyFault>().map_or(BodyFault::Cut, |fault| *fault)
}
