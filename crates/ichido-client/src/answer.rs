//! An answer, as the caller gets it.

use bytes::Bytes;
use http::HeaderMap;
use ichido_core::json::{Document, Pointer};
use ichido_core::ledger::Profile;
use ichido_http::client::FullResponse;

/// What a server answered.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body, up to the bound.
    pub body: Bytes,
    /// Whether that is all of the body. If not, it was longer than is read; the status still stands.
    pub is_whole: bool,
}

/// Problem details (RFC 9457), as far as they are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemDetails {
    /// One word that programs compare: the member `code`.
    pub code: Option<String>,
    /// What it is, in general.
    pub title: Option<String>,
    /// What is wrong this time, and what to do.
    pub detail: Option<String>,
}

impl From<FullResponse> for Answer {
    fn from(response: FullResponse) -> Self {
        let FullResponse { status, headers, body, is_whole } = response;
        Self { status, headers, body, is_whole }
    }
}

impl Answer {
    /// Whether the server says that it did nothing now, and that this is the outcome of the first request under the key (SPEC C5):
    /// `Idempotency-Replayed: true`, or Stripe's `Idempotent-Replayed`.
    pub fn is_replay(&self) -> bool {
        says_replay(self.fields())
    }

    /// The text at a place of the body, if that is JSON and there is one: `/id`.
    pub fn text_at(&self, pointer: &str) -> Option<String> {
        if !self.is_whole {
            return None;
        }
        let document = Document::parse(&self.body, self.body.len()).ok()?;
        let text = document.at(&Pointer::parse(pointer).ok()?)?.as_str()?;
        Some(text.into_owned())
    }

    /// What is wrong, in the server's own words; nothing of it where it has none.
    pub fn problem(&self) -> ProblemDetails {
        ProblemDetails {
            code: self.text_at("/code"),
            title: self.text_at("/title"),
            detail: self.text_at("/detail"),
        }
    }

    /// The fields as the rules of the core read them.
    pub(crate) fn fields(&self) -> Vec<(&str, &[u8])> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
    }
}

/// Whether one of these fields is the marker of a replay, of whichever profile: none of them means anything else elsewhere.
pub(crate) fn says_replay<'a>(fields: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> bool {
    let markers = [Profile::Ichido, Profile::Ietf, Profile::Stripe].map(|of| of.numbers().replay_marker);
    let is_marker = |name: &str| markers.iter().any(|marker| marker.eq_ignore_ascii_case(name));
    fields
        .into_iter()
        .any(|(name, value)| is_marker(name) && value.trim_ascii().eq_ignore_ascii_case(b"true"))
}

ichido_core::debug_only! {
    /// Payloads stay out of logs: only the status and the sizes are shown.
    Answer as answer { status, headers: answer.headers.len(), body_bytes: answer.body.len(), is_whole }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(name: &'static str, value: &'static str) -> Answer {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))]);
        Answer { status: 201, headers, body: Bytes::new(), is_whole: true }
    }

    #[test]
    fn a_replay_is_known_by_its_marker() {
        assert!(with("idempotency-replayed", "true").is_replay());
        assert!(with("idempotent-replayed", "True").is_replay());
        for (name, value) in [("idempotency-replayed", "false"), ("idempotency-status", "processing")] {
            assert!(!with(name, value).is_replay(), "{name}: {value}");
        }
    }
}
