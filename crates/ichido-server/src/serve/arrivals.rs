//! What arrives, counted by what it was (SPEC A14): how much of it has a key, how much had come before, and whose retries those are.

use http::{HeaderMap, HeaderValue};
use ichido_core::tries::{self, Try};
use uuid::Uuid;

use super::problem::{Code, Problem};

/// By queue, by what it was, and by which try of its client it came.
const ARRIVALS: &str = "ichido_arrivals_total";

pub(super) fn describe() {
    metrics::describe_counter!(
        ARRIVALS,
        "Messages that arrived: new, same (had come before), conflict, keyless, refused"
    );
}

/// Counts a message that a queue we know was asked to take.
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
    let which = Try::read(headers.get(tries::FIELD).map(HeaderValue::as_bytes)).as_str();
    metrics::counter!(ARRIVALS, "queue" => queue.to_owned(), "result" => was, "try" => which).increment(1);
}
