//! Counts arriving messages by result.
//!
//! The counts show how many have a key, how many arrived before, and whose retries those are.

// Spec: A14.

use http::{HeaderMap, HeaderValue};
use ichido_core::client_attempt::{self, ClientAttempt};
use uuid::Uuid;

use super::problem::{Code, Problem};

/// By queue, result, and attempt of the client.
const ARRIVALS: &str = "ichido_arrivals_total";

pub(super) fn describe() {
    metrics::describe_counter!(
        ARRIVALS,
        "Messages that arrived, by result: new, same (a replay), conflict, keyless, refused"
    );
}

/// Counts a message that was sent to a known queue.
pub(super) fn count(queue: &str, headers: &HeaderMap, ended: Result<&(Uuid, bool), &Problem>) {
    let was = match ended {
        Ok((_, false)) => "new",
        Ok((_, true)) => "same",
        Err(problem) => match problem.code {
            Code::KeyConflict => "conflict",
            Code::KeyMissing => "keyless",
            _ => "refused",
        },
    };
    let which = ClientAttempt::read(headers.get(client_attempt::FIELD).map(HeaderValue::as_bytes)).as_str();
    metrics::counter!(ARRIVALS, "queue" => queue.to_owned(), "result" => was, "attempt" => which)
        .increment(1);
}
