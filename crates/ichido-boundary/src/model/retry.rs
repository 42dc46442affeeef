//! Whether and when the sender retries.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::json::Kind;
use ichido_core::retry::{MAX_ATTEMPTS, MAX_WAIT};
use ichido_core::verdict::AttemptResponse;

use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema, object};

object! {
    /// Whether and when the sender at this boundary retries automatically.
    Retry {
        /// Whether to retry: `disabled` (also `none`, `off`, `never`) turns retries off; any other value turns them on.
        mode: Option<String>,
        /// The methods that are retried.
        apply_to_methods: Option<Vec<String>>,
        /// The maximum number of attempts, including the first.
        max_attempts: Option<u64>,
        /// The statuses after which the request is retried.
        retry_on_status: Option<Vec<u16>>,
        /// Whether the request is retried if there was no response.
        retry_on_network_error: Option<bool>,
        /// The waits before the second, third and later attempts, in milliseconds. The last one repeats. All of them count
        /// towards the time of the hop above.
        backoff_ms: Option<Backoff>,
        /// What a retry requires.
        retry_gate: RetryGate,
    }
}

object! {
    /// What a retry requires.
    RetryGate {
        // SPEC C4.
        /// Whether a state-changing request is retried only with a key.
        require_idempotency_key_when_state_changing: Option<bool>,
    }
}

/// Waits in milliseconds: one number, or an array of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff(pub Vec<u64>);

impl FromJson for Backoff {
    fn schema() -> Schema {
        Schema::AnyOf(vec![u64::schema(), Vec::<u64>::schema()])
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        match at.kind() {
            Kind::Number => Ok(Self(vec![u64::read(at, context)?])),
            Kind::Array => Vec::read(at, context).map(Self),
            Kind::Null | Kind::Bool | Kind::String | Kind::Object => {
                Err(at.mismatch("an integer number of milliseconds, or an array of them"))
            }
        }
    }
}

/// Words for not retrying.
const OFF: [&str; 5] = ["disabled", "none", "off", "never", "no_retry"];

/// A retry that is switched on, with every number filled in and in range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPlan {
    /// The total number of attempts, including the first; at most [`MAX_ATTEMPTS`].
    pub attempts: NonZeroU32,
    /// The methods that are retried.
    pub methods: Vec<String>,
    /// The statuses after which a request is retried.
    pub statuses: Vec<u16>,
    /// Whether a request is retried if there was no response.
    pub on_network_error: bool,
    /// Whether a state-changing request is retried only with a key.
    pub needs_key: bool,
    waits: Vec<Duration>,
}

impl Retry {
    /// Returns whether the file switches retries off, or does not mention them.
    pub fn is_off(&self) -> bool {
        match &self.mode {
            Some(mode) => OFF.iter().any(|off| off.eq_ignore_ascii_case(mode)),
            None => self.max_attempts.is_none_or(|attempts| attempts <= 1),
        }
    }

    /// Returns the retry as configured; `None` if there is none, or a single attempt.
    pub fn plan(&self) -> Option<RetryPlan> {
        let attempts = self.max_attempts.unwrap_or(1).min(MAX_ATTEMPTS.into());
        let attempts = u32::try_from(attempts).ok().and_then(NonZeroU32::new)?;
        if self.is_off() || attempts == NonZeroU32::MIN {
            return None;
        }
        let waits = self.backoff_ms.iter().flat_map(|backoff| &backoff.0);
        Some(RetryPlan {
            attempts,
            methods: self.apply_to_methods.clone().unwrap_or_default(),
            statuses: self.retry_on_status.clone().unwrap_or_default(),
            on_network_error: self.retry_on_network_error.unwrap_or(false),
            needs_key: self.retry_gate.require_idempotency_key_when_state_changing.unwrap_or(false),
            waits: waits.map(|ms| Duration::from_millis(*ms).min(MAX_WAIT)).collect(),
        })
    }
}

impl RetryPlan {
    /// Returns whether the file allows a request with `method` to be retried after what was `seen`.
    ///
    /// The file's permission is not enough: a hop that does not own idempotency also asks
    /// [`hop_may_repeat`](ichido_core::retry::hop_may_repeat).
    pub fn covers(&self, method: &str, seen: &AttemptResponse<'_>) -> bool {
        let after = match seen {
            AttemptResponse::Network(_) => self.on_network_error,
            AttemptResponse::Http(answer) => self.statuses.contains(&answer.status),
            AttemptResponse::Named(_) | AttemptResponse::UnusableAnswer => false,
        };
        after && self.methods.iter().any(|one| one == method)
    }

    /// Returns the wait after failure `n`, counted from 1, before the next attempt.
    ///
    /// Returns `None` if that was the last.
    pub fn wait_after(&self, failure: NonZeroU32) -> Option<Duration> {
        if self.attempts <= failure {
            return None;
        }
        let index = failure.get() as usize - 1;
        Some(self.waits.get(index).or(self.waits.last()).copied().unwrap_or(Duration::ZERO))
    }

    /// Returns all waits of a request that fails at every attempt.
    ///
    /// Waits of the file that are never used count too: an author who writes one per attempt means all of them.
    pub fn waits_in_all(&self) -> Duration {
        let failures = (1..self.attempts.get()).filter_map(NonZeroU32::new);
        let used = failures.filter_map(|failure| self.wait_after(failure));
        used.chain(self.unused_waits().iter().copied()).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns the waits for which there are too few attempts.
    pub fn unused_waits(&self) -> &[Duration] {
        self.waits.get(self.attempts.get() as usize - 1..).unwrap_or_default()
    }
}
