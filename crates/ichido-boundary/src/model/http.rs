//! How requests cross a boundary: methods, idempotency, retries and timeouts.

use std::time::Duration;

use super::{Idempotency, Retry};
use crate::member::object;

/// The methods that change state by default.
const STATE_CHANGING_DEFAULT: [&str; 2] = ["POST", "PATCH"];

object! {
    /// How requests cross the boundary.
    Http {
        /// The allowed methods, and which of them change state.
        methods: Methods,
        /// Which party requires the key, and which owns the outcome.
        idempotency: Idempotency,
        /// Whether and when the sender retries.
        retry: Retry,
        /// How long the sender waits.
        timeouts: Timeouts,
    }
}

object! {
    /// Which methods pass, and which of them change state.
    Methods {
        /// The methods that pass. Default: all.
        allowed: Option<Vec<String>>,
        /// The methods that need a key. Default: POST and PATCH.
        state_changing: Option<Vec<String>>,
    }
}

object! {
    /// How long the sender at this boundary waits.
    Timeouts {
        /// How long the sender waits for the receiver in each attempt, in milliseconds.
        upstream_timeout_ms: Option<u64>,
        /// The time limit for all attempts of the sender and the waits between them, in milliseconds.
        client_timeout_ms: Option<u64>,
    }
}

impl Methods {
    /// Returns whether requests with this method pass. Case matters, as in HTTP.
    pub fn allows(&self, method: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == method))
    }

    /// Returns whether requests with this method need a key.
    pub fn changes_state(&self, method: &str) -> bool {
        match &self.state_changing {
            Some(methods) => methods.iter().any(|one| one == method),
            None => STATE_CHANGING_DEFAULT.contains(&method),
        }
    }
}

impl Timeouts {
    /// Returns how long one attempt may take; if only the total time is given, that.
    pub fn attempt_timeout(&self) -> Option<Duration> {
        self.upstream_timeout_ms.or(self.client_timeout_ms).map(Duration::from_millis)
    }

    /// Returns how long all attempts together may take, if the file limits that.
    pub fn total_timeout(&self) -> Option<Duration> {
        self.client_timeout_ms.map(Duration::from_millis)
    }
}
