//! Looks up a call at its receiver: `GET`, by key.
//!
//! Guarantee: the result is done or not done only if a rule matches a response that is not about another key. Everything
//! else, including no response, remains unknown.
// Spec: F2.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::Full;
use ichido_core::key::IdempotencyKey;
use ichido_core::text::percent_encoded;
use ichido_core::verdict::Echo;
use ichido_http::client::{CallLimits, HttpClient};
use ichido_store::message::Note;

use super::super::ReconcileOutcome;
use super::response::{ResponsePattern, ResponseReader, document};
use super::{IDEMPOTENCY_KEY, endpoint, key_field};

ichido_core::words! {
    /// The meaning of a lookup's response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ReconcileMeaning {
        /// It was done.
        Done = "done",
        /// It was not done, and no call made so far will do it.
        NotDone = "not_done",
        /// Inconclusive.
        Unknown = "unknown",
    }
}

/// The placeholder of the key in the URL.
pub(super) const KEY_PLACEHOLDER: &str = "{key}";

/// Where and how a receiver is queried.
pub(super) struct ReconcileEndpoint {
    pub(super) client: HttpClient<Full<Bytes>>,
    /// Path and query, with [`KEY_PLACEHOLDER`] for the key, if it is part of them.
    pub(super) template: String,
    pub(super) rules: Vec<(ResponsePattern, ReconcileMeaning)>,
}

impl ReconcileEndpoint {
    pub(super) async fn ask(
        &self,
        key: &IdempotencyKey,
        headers: &HeaderMap,
        limits: &CallLimits,
        reader: &ResponseReader,
    ) -> ReconcileOutcome {
        let Some(request) = self.request(key, headers) else {
            return unknown("cannot look up the effect: the key does not fit into the URL");
        };
        let response = match self.client.exchange(request, limits).await {
            Ok(response) => response,
            Err(error) => return unknown(error.why),
        };
        let document = document(&response);
        let rule = self.rules.iter().find(|(pattern, _)| pattern.matches(response.status, document.as_ref()));
        let echo = reader.echo(key, &response, document.as_ref());
        let note = reader.evidence(&response, document.as_ref());
        let found = rule.map_or(ReconcileMeaning::Unknown, |(_, found)| *found);
        let is_ours = match echo {
            Echo::Same => true,
            // Even if echoes are promised, only "done" has something to echo; "not done" has nothing to carry.
            Echo::Absent => found != ReconcileMeaning::Done || !reader.promises_echo(),
            Echo::Other => false,
        };
        match found {
            ReconcileMeaning::Done if is_ours => {
                ReconcileOutcome::Done { note: Note { excerpt: None, ..note } }
            }
            ReconcileMeaning::NotDone if is_ours => {
                let note = Note { result_digest: None, receipt: None, response: None, ..note };
                ReconcileOutcome::NotDone { note }
            }
            ReconcileMeaning::Done | ReconcileMeaning::NotDone | ReconcileMeaning::Unknown => {
                ReconcileOutcome::Unknown { note: Note { response: None, ..note } }
            }
        }
    }

    fn request(&self, key: &IdempotencyKey, headers: &HeaderMap) -> Option<Request<Full<Bytes>>> {
        let is_dots = matches!(key.as_str(), "." | "..");
        // As path segments these lead elsewhere, however they are encoded.
        if is_dots && self.template.contains(KEY_PLACEHOLDER) {
            return None;
        }
        let target = self.template.replace(KEY_PLACEHOLDER, &encoded(key.as_str()));
        let target: Uri = target.parse().ok()?;
        let mut request = endpoint::request(&self.client, Method::GET, target, headers, Bytes::new());
        request.headers_mut().insert(IDEMPOTENCY_KEY, key_field(key)?);
        Some(request)
    }
}

/// The result for a destination without a lookup.
pub(super) fn lookup_unsupported() -> ReconcileOutcome {
    unknown("cannot look up the effect: the destination has no reconcile settings")
}

fn unknown(why: impl Into<String>) -> ReconcileOutcome {
    ReconcileOutcome::Unknown { note: Note { excerpt: Some(why.into()), ..Note::default() } }
}

/// Encodes a key so that none of its characters has a meaning in a URL.
fn encoded(key: &str) -> String {
    percent_encoded(key, b"-._~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_fully_encoded_in_url() {
        assert_eq!(encoded("a-b_c.d~9"), "a-b_c.d~9");
        assert_eq!(encoded("a/../b?c#d%2F{key}"), "a%2F..%2Fb%3Fc%23d%252F%7Bkey%7D");
    }
}
