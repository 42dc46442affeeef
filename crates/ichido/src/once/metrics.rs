//! Metrics by operation. No label contains a key or an identity.

use http::StatusCode;
use ichido_core::client_attempt::ClientAttempt;
use metrics::{SharedString, Unit, counter, describe_counter};

ichido_core::words! {
    /// The result of a request; each request counts once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Result {
        /// It ran.
        First = "first",
        /// It received a stored outcome.
        Replayed = "replayed",
        /// Its key belongs to a different request.
        Mismatched = "mismatched",
        /// The first request is still running.
        InFlight = "in_flight",
        /// The outcome is unknown.
        Unknown = "unknown",
        /// It was done before, and its response was not stored.
        NotStored = "not_stored",
        /// It was refused because of its key, its body or its caller.
        Refused = "refused",
        /// The store failed.
        Unavailable = "unavailable",
        /// It had no key and needed none.
        Keyless = "keyless",
    }
}

impl Result {
    /// Returns whether the same request had arrived before; `None` if unknown.
    pub(crate) const fn is_repeated(self) -> Option<bool> {
        match self {
            Self::First | Self::Mismatched => Some(false),
            Self::Replayed | Self::InFlight | Self::Unknown | Self::NotStored => Some(true),
            Self::Refused | Self::Unavailable | Self::Keyless => None,
        }
    }
}

/// Counts a request by the client's attempt, its result and whether it succeeded.
pub(crate) fn count_request(
    operation: &str,
    attempt: ClientAttempt,
    result: Result,
    status: Option<StatusCode>,
) {
    let is_answer = matches!(result, Result::First | Result::Replayed | Result::Keyless);
    let is_success = is_answer && status.is_some_and(|status| status.is_success() || status.is_redirection());
    let labels = [
        ("operation", operation.to_owned().into()),
        ("result", result.as_str().into()),
        ("attempt", attempt.as_str().into()),
        ("success", SharedString::from(if is_success { "true" } else { "false" })),
    ];
    counter!(REQUESTS, &labels).increment(1);
}

/// The requests.
const REQUESTS: &str = "ichido_once_requests_total";
/// A duplicate waited for the first request.
pub(crate) const WAITED: &str = "ichido_once_waited_total";
/// A key had expired and ran as new.
pub(crate) const EXPIRED: &str = "ichido_once_expired_total";
/// An outcome is unknown.
pub(crate) const HELD: &str = "ichido_once_held_total";
/// A claim ended after another one had taken over.
pub(crate) const OVERTAKEN: &str = "ichido_once_overtaken_total";

/// Describes the layer's metrics to the installed recorder.
pub fn describe_metrics() {
    for (name, what) in [
        (
            REQUESTS,
            "Requests, by operation, result (first, replayed, mismatched, in_flight, …), the client's attempt and whether they succeeded",
        ),
        (WAITED, "Duplicates that waited for the first request, by operation"),
        (EXPIRED, "Keys that had expired and ran as new, by operation"),
        (HELD, "Requests whose outcome is unknown, by operation"),
        (OVERTAKEN, "Claims that ended after another one had taken over, by operation"),
    ] {
        describe_counter!(name, Unit::Count, what);
    }
    crate::unknown_outcomes::describe_metrics();
}

/// Increments one of these counters.
pub(crate) fn count(what: &'static str, operation: &str) {
    counter!(what, "operation" => operation.to_owned()).increment(1);
}
