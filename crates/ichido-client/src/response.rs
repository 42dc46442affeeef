//! A response as the caller gets it.

use bytes::Bytes;
use http::HeaderMap;
use ichido_core::json::{Document, Pointer};
use ichido_core::ledger::Profile;
use ichido_http::client::FullResponse;

/// A server's response.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body, up to the limit.
    pub body: Bytes,
    /// Whether the body is complete. If not, it was longer than the limit; the status is still valid.
    pub is_whole: bool,
}

/// Problem details (RFC 9457), as far as present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemDetails {
    /// A stable name for programs: the member `code`.
    pub code: Option<String>,
    /// The kind of problem.
    pub title: Option<String>,
    /// The cause in this case, and what to do.
    pub detail: Option<String>,
}

impl From<FullResponse> for Response {
    fn from(response: FullResponse) -> Self {
        let FullResponse { status, headers, body, is_whole } = response;
        Self { status, headers, body, is_whole }
    }
}

impl Response {
    /// Whether this is a replay of the first request under the key.
    ///
    /// The server says so with `Idempotency-Replayed: true` or Stripe's `Idempotent-Replayed`.
    // Spec: C5.
    pub fn is_replay(&self) -> bool {
        says_replay(self.fields())
    }

    /// Returns the text at a JSON pointer of the body, such as `/id`.
    pub fn text_at(&self, pointer: &str) -> Option<String> {
        if !self.is_whole {
            return None;
        }
        let document = Document::parse(&self.body, self.body.len()).ok()?;
        let text = document.at(&Pointer::parse(pointer).ok()?)?.as_str()?;
        Some(text.into_owned())
    }

    /// Returns the server's problem details; members that it omits are `None`.
    pub fn problem(&self) -> ProblemDetails {
        ProblemDetails {
            code: self.text_at("/code"),
            title: self.text_at("/title"),
            detail: self.text_at("/detail"),
        }
    }

    /// Returns the fields in the form that the core reads.
    pub(crate) fn fields(&self) -> Vec<(&str, &[u8])> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
    }
}

/// Whether a field marks a replay in any profile. None of these fields means anything else.
pub(crate) fn says_replay<'a>(fields: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> bool {
    let markers = Profile::ALL.map(|of| of.numbers().replay_marker);
    let is_marker = |name: &str| markers.iter().any(|marker| marker.eq_ignore_ascii_case(name));
    fields
        .into_iter()
        .any(|(name, value)| is_marker(name) && value.trim_ascii().eq_ignore_ascii_case(b"true"))
}

ichido_core::debug_only! {
    /// Shows only the status and the sizes, to keep payloads out of logs.
    Response as answer { status, headers: answer.headers.len(), body_bytes: answer.body.len(), is_whole }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(name: &'static str, value: &'static str) -> Response {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))]);
        Response { status: 201, headers, body: Bytes::new(), is_whole: true }
    }

    #[test]
    fn replay_is_recognised_by_its_header() {
        assert!(with("idempotency-replayed", "true").is_replay());
        assert!(with("idempotent-replayed", "True").is_replay());
        for (name, value) in [("idempotency-replayed", "false"), ("idempotency-status", "processing")] {
            assert!(!with(name, value).is_replay(), "{name}: {value}");
        }
    }
}
