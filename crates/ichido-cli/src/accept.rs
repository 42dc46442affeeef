//! What every way into the outbox has in common: over HTTP, and straight on the store.
//!
//! Guarantee: one message has one digest, whichever way it comes, so that a key that was used the one way is known the other way.

use ichido_core::digest::{BodyRules, Digest};
use ichido_core::json::JsonError;
use ichido_store::message::limits::REQUEST_BYTES_MAX;

/// For whom a message is where nobody says: the same on both ways.
pub(crate) const IDENTITY_DEFAULT: &str = "local";

/// The digest of a request (SPEC C9): canonical for JSON, by its bytes for all else. JSON of doubtful meaning is refused.
pub(crate) fn digest(content_type: &str, body: &[u8]) -> Result<Digest, JsonError> {
    let rules = BodyRules { bytes_max: REQUEST_BYTES_MAX, ..BodyRules::default() };
    Digest::of_body(content_type, body, &rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_known_by_its_meaning_and_all_else_by_its_bytes() {
        let of = |content_type, body: &[u8]| digest(content_type, body).unwrap();
        let (spaced, plain) = (br#"{"qty": 1.0, "a":2}"#.as_slice(), br#"{"a":2,"qty":1}"#.as_slice());
        assert_eq!(of("application/json", spaced), of("application/json; charset=utf-8", plain));
        assert_ne!(of("text/plain", spaced), of("text/plain", plain));
        assert!(digest("application/json", br#"{"a":1,"a":2}"#).is_err(), "two meanings");
        let large = format!("\"{}\"", "x".repeat(2 << 20));
        assert!(digest("application/json", large.as_bytes()).is_ok(), "as large as a message may be");
    }
}
