//! The idempotency key that a body repeats in a member of its own.
//!
//! Guarantee: a body without a key, or one that is not JSON, agrees with every key.
//!
//! A receiver that finds two different keys in one request refuses it. Checking here refuses the message while the caller can
//! still fix it.

// Spec: D11, D18.

use std::borrow::Cow;

use ichido::worker::OutboundKey;
use ichido_core::json::{Document, Pointer};
use ichido_core::key::IdempotencyKey;
use ichido_store::message::limits::MAX_REQUEST_BYTES;

/// Where a body may repeat its key.
const POINTER: &str = "/idempotency_key";

/// Returns the key in a body, if it is JSON and has one.
fn in_body<'a>(document: Option<&Document<'a>>) -> Option<Cow<'a, str>> {
    document?.at(&Pointer::parse(POINTER).ok()?)?.as_str()
}

/// Checks that the key in the body, if there is one, is the message's key.
pub fn agrees(key: &IdempotencyKey, body: &[u8]) -> Result<(), &'static str> {
    agrees_in(key, Document::parse(body, MAX_REQUEST_BYTES).ok().as_ref())
}

/// Checks the same in a body that is parsed already; `None` is not JSON.
pub(crate) fn agrees_in(key: &IdempotencyKey, document: Option<&Document<'_>>) -> Result<(), &'static str> {
    match in_body(document) {
        Some(repeated) if key.agrees_with_body(&repeated).is_err() => Err(
            "the body's idempotency_key differs from the key; pass the same one with --key, or remove it from the body",
        ),
        _ => Ok(()),
    }
}

/// Returns a warning if a queue sends a different key than the body contains.
pub fn warning(name: &str, key: OutboundKey, body: &[u8]) -> Option<String> {
    if key == OutboundKey::Own || in_body(Document::parse(body, MAX_REQUEST_BYTES).ok().as_ref()).is_none() {
        return None;
    }
    Some(format!(
        "ichido: warning: the body has an idempotency_key, but the queue {name} sends a key derived from it: a receiver that compares \
         the two refuses the request; set outbound_key = \"own\" under [queues.{name}], or remove the key from the body\n"
    ))
}
