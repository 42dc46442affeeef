//! The key that a body repeats in a field of its own (SPEC D11, D18).
//!
//! Guarantee: a body without a key, or that is not JSON, agrees with every key.
//!
//! A receiver that finds two different keys in one request refuses it, so that it would die where it could have been mended here.

use ichido::worker::OutboundKey;
use ichido_core::json::{Document, Pointer};
use ichido_core::key::IdempotencyKey;
use ichido_store::message::limits::REQUEST_BYTES_MAX;

/// Where a body may repeat its key.
const POINTER: &str = "/idempotency_key";

/// The key in a body, if it is JSON and has one.
fn in_body(body: &[u8]) -> Option<String> {
    let document = Document::parse(body, REQUEST_BYTES_MAX).ok()?;
    let pointer = Pointer::parse(POINTER).ok()?;
    document.at(&pointer)?.as_str().map(std::borrow::Cow::into_owned)
}

/// The key that a body repeats, if it does, must be the message's.
pub fn agrees(key: &IdempotencyKey, body: &[u8]) -> Result<(), &'static str> {
    match in_body(body) {
        Some(repeated) if key.agrees_with_body(&repeated).is_err() => Err(
            "the body's idempotency_key is another key; give the same one by --key, or take it out of the body",
        ),
        _ => Ok(()),
    }
}

/// What is to be said where a queue sends another key than the body repeats.
pub fn warning(name: &str, key: OutboundKey, body: &[u8]) -> Option<String> {
    if key == OutboundKey::Own || in_body(body).is_none() {
        return None;
    }
    Some(format!(
        "ichido: warning: the body has an idempotency_key, and the queue {name} sends a key that is derived from it: a receiver that compares \
         the two refuses the request; set outbound_key = \"own\" under [queues.{name}], or take the key out of the body\n"
    ))
}
