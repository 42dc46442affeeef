//! What is counted, by operation. No label holds a key or an identity.

use http::StatusCode;
use ichido_core::tries::Try;
use metrics::{SharedString, counter};

ichido_core::words! {
    /// What a request came to; each request counts once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Result {
        /// It ran.
        First = "first",
        /// It got a stored outcome.
        Replayed = "replayed",
        /// Its key belongs to another request.
        Mismatched = "mismatched",
        /// It was told that the first one still runs.
        InFlight = "in_flight",
        /// It was told that nobody knows the outcome.
        Unknown = "unknown",
        /// It was done before, and its response was not kept.
        NotKept = "not_kept",
        /// It was refused for what it is: its key, its body, its caller.
        Refused = "refused",
        /// The store could not say.
        Unavailable = "unavailable",
        /// It brought no key, and needed none.
        Keyless = "keyless",
    }
}

impl Result {
    /// Whether the same request had come before; `None` where that is not known of it.
    pub(crate) const fn is_repeated(self) -> Option<bool> {
        match self {
            Self::First | Self::Mismatched => Some(false),
            Self::Replayed | Self::InFlight | Self::Unknown | Self::NotKept => Some(true),
            Self::Refused | Self::Unavailable | Self::Keyless => None,
        }
    }
}

/// A request was answered: which try of its client it was, what it came to, and whether the answer is of work that was done.
pub(crate) fn count_request(operation: &str, attempt: Try, result: Result, status: Option<StatusCode>) {
    let is_answer = matches!(result, Result::First | Result::Replayed | Result::Keyless);
    let is_success = is_answer && status.is_some_and(|status| status.is_success() || status.is_redirection());
    let labels = [
        ("operation", operation.to_owned().into()),
        ("result", result.as_str().into()),
        ("try", attempt.as_str().into()),
        ("success", SharedString::from(if is_success { "true" } else { "false" })),
    ];
    counter!("ichido_once_requests_total", &labels).increment(1);
}

/// A duplicate waited for the first one.
pub(crate) const WAITED: &str = "ichido_once_waited_total";
/// A key had expired, and ran as new.
pub(crate) const EXPIRED: &str = "ichido_once_expired_total";
/// An outcome is not known.
pub(crate) const HELD: &str = "ichido_once_held_total";
/// An owner ended after somebody else had taken over.
pub(crate) const OVERTAKEN: &str = "ichido_once_overtaken_total";

/// Counts one of these.
pub(crate) fn count(what: &'static str, operation: &str) {
    counter!(what, "operation" => operation.to_owned()).increment(1);
}
