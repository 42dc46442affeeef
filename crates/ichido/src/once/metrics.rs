//! Metrics by operation. No label contains a key or an identity.

use http::StatusCode;
use ichido_core::client_attempt::ClientAttempt;
use ichido_store::counters::Arrival;
use metrics::{Counter, SharedString, Unit, counter, describe_counter};

ichido_core::words! {
    /// The result of a request; each request counts once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Result {
        /// It ran.
        First = "first",
        /// It ran and found that an earlier request had done the same under another key.
        SameContent = "same_content",
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
        /// It had no key: it ran if it needed none, and was refused otherwise.
        Keyless = "keyless",
    }
}

impl Result {
    /// Returns how the request arrived; `None` if unknown.
    pub(crate) const fn arrival(self) -> Option<Arrival> {
        match self {
            Self::First => Some(Arrival::New),
            Self::Mismatched => Some(Arrival::Conflict),
            Self::SameContent | Self::Replayed | Self::InFlight | Self::Unknown | Self::NotStored => {
                Some(Arrival::Repeated)
            }
            Self::Refused | Self::Unavailable | Self::Keyless => None,
        }
    }

    /// Returns whether its handler ran.
    pub(crate) const fn has_run(self) -> bool {
        matches!(self, Self::First | Self::SameContent)
    }

    /// Returns whether the response is the handler's, so its status says whether the request succeeded.
    const fn is_answer(self) -> bool {
        matches!(self, Self::First | Self::SameContent | Self::Replayed | Self::Keyless)
    }
}

/// Counts a request by the client's attempt, its result and whether it succeeded.
pub(crate) fn count_request(
    operation: &str,
    attempt: ClientAttempt,
    result: Result,
    status: Option<StatusCode>,
) {
    let is_ok = status.is_some_and(|status| status.is_success() || status.is_redirection());
    requests(operation, attempt, result, result.is_answer() && is_ok).increment(1);
}

/// Exports every counter of an operation's requests as 0, so a share has its terms from the start and the first request
/// counts as an increase.
pub(crate) fn register_operation(operation: &str) {
    for attempt in ClientAttempt::ALL {
        for result in Result::ALL {
            let successes: &[bool] = if result.is_answer() { &[false, true] } else { &[false] };
            for is_success in successes {
                requests(operation, attempt, result, *is_success).increment(0);
            }
        }
    }
}

fn requests(operation: &str, attempt: ClientAttempt, result: Result, is_success: bool) -> Counter {
    let labels = [
        ("operation", operation.to_owned().into()),
        ("result", result.as_str().into()),
        ("attempt", attempt.as_str().into()),
        ("success", SharedString::from(if is_success { "true" } else { "false" })),
    ];
    counter!(REQUESTS, &labels)
}

/// The requests.
const REQUESTS: &str = "ichido_once_requests_total";
/// A duplicate waited for the first request.
pub(crate) const WAITED: &str = "ichido_once_waited_total";
/// A key had expired and ran as new.
pub(crate) const EXPIRED: &str = "ichido_once_expired_total";
/// An outcome is unknown.
pub(crate) const HELD: &str = "ichido_once_held_total";
/// A run ended after another one with the same key had taken over, or had committed first.
pub(crate) const OVERTAKEN: &str = "ichido_once_overtaken_total";

/// Describes the layer's metrics to the installed recorder.
pub fn describe_metrics() {
    for (name, what) in [
        (
            REQUESTS,
            "Requests, by operation, result (first, same_content, replayed, mismatched, in_flight, …), the client's attempt and whether they succeeded",
        ),
        (WAITED, "Duplicates that waited for the first request, by operation"),
        (EXPIRED, "Keys that had expired and ran as new, by operation"),
        (HELD, "Requests whose outcome is unknown, by operation"),
        (
            OVERTAKEN,
            "Runs that ended after another one with the same key had taken over or committed, by operation",
        ),
    ] {
        describe_counter!(name, Unit::Count, what);
    }
    crate::unknown_outcomes::describe_metrics();
}

/// Increments one of these counters.
pub(crate) fn count(what: &'static str, operation: &str) {
    counter!(what, "operation" => operation.to_owned()).increment(1);
}
