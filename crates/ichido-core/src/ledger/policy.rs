//! The policy of an operation: its class, how it takes effect, how long its keys are kept.

use std::time::Duration;

use crate::key::{IdempotencyKey, KeyError};
use crate::retry::Retry;
use crate::words;

use super::profile::Profile;

/// The limits of a policy's numbers.
pub mod limits {
    use std::time::Duration;

    /// How long a key is kept by default.
    // SPEC A2.
    pub const TTL_DEFAULT: Duration = Duration::from_hours(72);
    /// The minimum time to keep the key of an irreversible or external effect, unless a reason is given.
    // SPEC C7.
    pub const MIN_TTL_OF_EFFECTS: Duration = Duration::from_hours(24);
    /// The maximum time to keep a key: ten years.
    pub const MAX_TTL: Duration = Duration::from_hours(10 * 366 * 24);
    /// The maximum time a duplicate waits for the first request's outcome.
    pub const MAX_IN_FLIGHT_WAIT: Duration = Duration::from_mins(1);
    /// How long an upstream remembers a key by default.
    pub const UPSTREAM_KEEPS_KEYS_DEFAULT: Duration = Duration::from_hours(24);
    /// How long after its claim a call may still take effect, by default.
    pub const SETTLE_GRACE_DEFAULT: Duration = Duration::from_mins(10);
    /// The maximum time after its claim that a call may still take effect: a week.
    pub const MAX_SETTLE_GRACE: Duration = Duration::from_hours(7 * 24);
    /// The assumed maximum duration of a client's call if the retrying client is unknown.
    pub const MAX_CLIENT_CALL: Duration = Duration::from_secs(30);
    /// The assumed maximum wait that a client is asked for if the retrying client is unknown.
    pub const MAX_CLIENT_HINT: Duration = Duration::from_mins(10);
    /// The default lease of a claim.
    pub const LEASE_DEFAULT: Duration = Duration::from_secs(30);
    /// The shortest lease: with less, a claim would lapse between two renewals on a busy machine.
    pub const MIN_LEASE: Duration = Duration::from_secs(1);
    /// The longest lease: a crashed owner blocks its key for this long.
    pub const MAX_LEASE: Duration = Duration::from_hours(1);
}

/// The kind of work an operation does.
///
/// It determines the minimum time a key is kept.
///
/// It does not determine how the outcome becomes durable: whatever its class, an operation that declares no
/// [`OperationGuarantee`] counts as [`OperationGuarantee::None`], because an unknown effect is never guessed.
// SPEC C10, C7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Changes nothing. Reads are not deduplicated, so it has no policy.
    // SPEC C11.
    Read,
    /// Changes our own state.
    Mutate,
    /// Cannot be undone.
    Irreversible,
    /// Acts on an external system: an order, a message, a charge.
    #[default]
    ExternalEffect,
}

words! {
    /// How an operation's outcome becomes durable, in order: a later mode allows fewer reruns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum OperationGuarantee {
        /// The effect and its outcome commit in one transaction: without an outcome, nothing happened.
        Transactional = "transactional",
        /// A repetition does no harm: a lost outcome is found by running again.
        Idempotent = "idempotent",
        /// The upstream honours the key: asking again with the same key returns a lost outcome.
        Keyed = "keyed",
        /// Neither: a lost outcome is unknown. This is the default.
        None = "none",
    }
}

/// What to do about an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    /// Run it again: harmless where the effect rolled back, or where the upstream honours the key.
    RunAgain,
    /// Ask the upstream, by key, what happened.
    Reconcile,
    /// Hold the key until a person decides.
    Hold,
}

/// Whether a request must carry a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNeed {
    /// A request without a key is refused and nothing is done.
    Required,
    /// A request without a key runs unprotected.
    Optional,
}

/// The requested policy; `None` means the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyDraft {
    /// The kind of work.
    pub class: Class,
    /// The profile its responses follow.
    pub profile: Profile,
    /// How its outcome becomes durable; `None` is [`OperationGuarantee::None`].
    pub guarantee: Option<OperationGuarantee>,
    /// What to do about an unknown outcome; `None` holds operations without a guarantee and reruns the others.
    pub on_unknown: Option<OnUnknown>,
    /// Whether a request must carry a key.
    pub key: Option<KeyNeed>,
    /// How long a settled key is kept.
    pub ttl: Option<Duration>,
    /// Why the key of an irreversible or external effect may be kept for less than 24 hours.
    // SPEC C7.
    pub short_ttl_reason: Option<String>,
    /// For how long equal content counts as the same action, whatever its key.
    // SPEC A7.
    pub dedupe_window: Option<Duration>,
    /// How long anyone may still retry under a key: clients, the outbox, an operator's requeue.
    ///
    /// `None` is a client on its default schedule: [`Retry::CLIENT`]'s horizon with calls of at most
    /// [`limits::MAX_CLIENT_CALL`] and hints of at most [`limits::MAX_CLIENT_HINT`].
    pub retry_horizon: Option<Duration>,
    /// How long the upstream remembers a key, if it honours keys.
    ///
    /// After that a lost outcome is unknown.
    // SPEC F2.
    pub keeps_keys_for: Option<Duration>,
    /// How long after its claim a call may still take effect.
    ///
    /// Nobody may decide "not done" before that.
    pub settle_grace: Option<Duration>,
    /// How long a duplicate waits for the first request's outcome.
    pub in_flight_wait: Option<Duration>,
    /// How long a claim is valid without renewal.
    pub lease: Option<Duration>,
}

impl PolicyDraft {
    /// Creates a draft with all defaults.
    ///
    /// The guarantee is [`OperationGuarantee::None`] for every class: an operation whose effect commits with its outcome, or whose
    /// upstream honours the key, must declare it.
    pub fn new(class: Class) -> Self {
        Self { class, ..Self::default() }
    }
}

/// The rules of one operation, without contradictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    class: Class,
    profile: Profile,
    mode: OperationGuarantee,
    on_unknown: OnUnknown, // Invariant: never RunAgain where mode is None, always where it is Transactional.
    key_need: KeyNeed,
    ttl: Duration, // Invariant: at least the retry horizon.
    dedupe_window: Option<Duration>,
    keeps_keys_for: Duration,
    settle_grace: Duration,
    in_flight_wait: Duration,
    lease: Duration,
}

/// Why a draft is not a valid policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A read has nothing to protect.
    #[error("a read is not deduplicated; remove the layer from it, or declare the class of its effect")]
    ReadIsNotDeduplicated,
    /// The key of an effect that cannot be undone would expire within a day.
    #[error(
        "keys of an irreversible or external effect must be kept for at least 24 hours, but the TTL is {ttl:?}; raise it, or give a reason (short_ttl_reason)"
    )]
    TtlTooShort {
        /// The requested time.
        ttl: Duration,
    },
    /// The time is zero or more than ten years.
    #[error("the TTL of keys is {ttl:?}; it must be above 0 and at most ten years")]
    TtlOutOfRange {
        /// The requested time.
        ttl: Duration,
    },
    /// It could take effect twice.
    #[error(
        "an operation without a guarantee whose outcome is unknown may already have taken effect, so it must not run again; reconcile it with a call, or hold it for a person"
    )]
    NoGuaranteeRunsAgain,
    /// There would be nothing to hold or to reconcile.
    #[error(
        "a transactional operation without an outcome did not happen; remove on_unknown, or declare another mode"
    )]
    TransactionalIsNeverUnknown,
    /// A retry could arrive after the key expires.
    #[error(
        "{what} is {window:?}, but callers may retry with the same key for {horizon:?}; make it at least that long"
    )]
    ShorterThanRetries {
        /// Which of the two windows.
        what: &'static str,
        /// Its length.
        window: Duration,
        /// How long retries continue.
        horizon: Duration,
    },
    /// A duplicate would wait too long.
    #[error(
        "a duplicate may wait at most {:?} for the first request's outcome, but in_flight_wait is {wait:?}",
        limits::MAX_IN_FLIGHT_WAIT
    )]
    InFlightWaitTooLong {
        /// The requested wait.
        wait: Duration,
    },
    /// The lease is too short to renew, or so long that a crash blocks the key.
    #[error(
        "the lease must be between {:?} and {:?}, but is {lease:?}",
        limits::MIN_LEASE,
        limits::MAX_LEASE
    )]
    LeaseOutOfRange {
        /// The requested lease.
        lease: Duration,
    },
    /// The time for a call to take effect is zero or too long.
    #[error(
        "settle_grace must be above 0 and at most {:?}, but is {settle_grace:?}",
        limits::MAX_SETTLE_GRACE
    )]
    SettleGraceOutOfRange {
        /// The requested time.
        settle_grace: Duration,
    },
    /// The upstream forgets the key before the first claim can lapse, so the key protects no second claim.
    #[error(
        "the upstream keeps keys for {keeps_for:?}, which is less than the lease of {lease:?}, so it would never prevent a repetition; shorten the lease, or declare the guarantee none"
    )]
    UpstreamForgetsTooSoon {
        /// How long the upstream keeps keys.
        keeps_for: Duration,
        /// The lease of a claim.
        lease: Duration,
    },
}

/// All errors of a draft, displayed one per line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct PolicyErrors(Vec<PolicyError>); // Invariant: not empty.

impl std::ops::Deref for PolicyErrors {
    type Target = [PolicyError];

    fn deref(&self) -> &[PolicyError] {
        &self.0
    }
}

impl IntoIterator for PolicyErrors {
    type Item = PolicyError;
    type IntoIter = std::vec::IntoIter<PolicyError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

fn lines(errors: &[PolicyError]) -> String {
    errors.iter().map(PolicyError::to_string).collect::<Vec<_>>().join("\n")
}

impl Policy {
    /// Fills in the defaults and reports all contradictions together.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido_core::ledger::{Class, OperationGuarantee, OnUnknown, Policy, PolicyDraft};
    ///
    /// let policy = Policy::build(PolicyDraft::new(Class::ExternalEffect))?;
    /// assert_eq!(policy.on_unknown(), OnUnknown::Hold, "nothing was declared, so nothing is guessed");
    ///
    /// let hasty = PolicyDraft {
    ///     guarantee: Some(OperationGuarantee::Keyed),
    ///     ttl: Some(Duration::from_mins(10)),
    ///     ..PolicyDraft::new(Class::ExternalEffect)
    /// };
    /// let errors = Policy::build(hasty).unwrap_err();
    /// assert_eq!(errors.len(), 2, "under 24 hours, and shorter than a client may retry:\n{errors}");
    /// # Ok::<(), ichido_core::ledger::PolicyErrors>(())
    /// ```
    pub fn build(draft: PolicyDraft) -> Result<Self, PolicyErrors> {
        let mode = draft.guarantee.unwrap_or(OperationGuarantee::None);
        let policy = Self {
            class: draft.class,
            profile: draft.profile,
            mode,
            on_unknown: draft.on_unknown.unwrap_or(mode.default_on_unknown()),
            key_need: draft.key.unwrap_or(KeyNeed::Required),
            ttl: draft.ttl.unwrap_or(limits::TTL_DEFAULT),
            dedupe_window: draft.dedupe_window,
            keeps_keys_for: draft.keeps_keys_for.unwrap_or(limits::UPSTREAM_KEEPS_KEYS_DEFAULT),
            settle_grace: draft.settle_grace.unwrap_or(limits::SETTLE_GRACE_DEFAULT),
            in_flight_wait: draft.in_flight_wait.unwrap_or(draft.profile.numbers().in_flight_wait),
            lease: draft.lease.unwrap_or(limits::LEASE_DEFAULT),
        };
        let has_reason = draft.short_ttl_reason.is_some_and(|reason| !reason.trim().is_empty());
        let horizon = draft.retry_horizon.unwrap_or_else(client_horizon);
        let errors = policy.contradictions(has_reason, horizon);
        if errors.is_empty() { Ok(policy) } else { Err(PolicyErrors(errors)) }
    }

    fn contradictions(&self, has_short_ttl_reason: bool, horizon: Duration) -> Vec<PolicyError> {
        let mut errors = Vec::new();
        if self.class == Class::Read {
            errors.push(PolicyError::ReadIsNotDeduplicated);
        }
        if self.ttl.is_zero() || limits::MAX_TTL < self.ttl {
            errors.push(PolicyError::TtlOutOfRange { ttl: self.ttl });
        } else if self.class.is_permanent() && self.ttl < limits::MIN_TTL_OF_EFFECTS && !has_short_ttl_reason
        {
            errors.push(PolicyError::TtlTooShort { ttl: self.ttl });
        }
        if self.mode == OperationGuarantee::None && self.on_unknown == OnUnknown::RunAgain {
            errors.push(PolicyError::NoGuaranteeRunsAgain);
        }
        if self.mode == OperationGuarantee::Transactional && self.on_unknown != OnUnknown::RunAgain {
            errors.push(PolicyError::TransactionalIsNeverUnknown);
        }
        for (what, window) in [("ttl", Some(self.ttl)), ("dedupe_window", self.dedupe_window)] {
            if let Some(window) = window.filter(|window| *window < horizon) {
                errors.push(PolicyError::ShorterThanRetries { what, window, horizon });
            }
        }
        if limits::MAX_IN_FLIGHT_WAIT < self.in_flight_wait {
            errors.push(PolicyError::InFlightWaitTooLong { wait: self.in_flight_wait });
        }
        if !(limits::MIN_LEASE..=limits::MAX_LEASE).contains(&self.lease) {
            errors.push(PolicyError::LeaseOutOfRange { lease: self.lease });
        }
        if self.settle_grace.is_zero() || limits::MAX_SETTLE_GRACE < self.settle_grace {
            errors.push(PolicyError::SettleGraceOutOfRange { settle_grace: self.settle_grace });
        }
        let keeps_for = self.keeps_keys_for;
        if self.mode == OperationGuarantee::Keyed && (keeps_for.is_zero() || keeps_for < self.lease) {
            errors.push(PolicyError::UpstreamForgetsTooSoon { keeps_for, lease: self.lease });
        }
        errors
    }

    /// Returns the kind of work.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Returns the profile its responses follow.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns how its outcome becomes durable.
    pub const fn guarantee(&self) -> OperationGuarantee {
        self.mode
    }

    /// Returns what to do about an unknown outcome.
    pub const fn on_unknown(&self) -> OnUnknown {
        self.on_unknown
    }

    /// Returns whether a request must carry a key.
    pub const fn key_need(&self) -> KeyNeed {
        self.key_need
    }

    /// Returns the key from [`crate::key::read`], or an error if it is missing and the operation needs one.
    pub fn require(&self, found: Option<IdempotencyKey>) -> Result<Option<IdempotencyKey>, KeyError> {
        match (self.key_need, found) {
            (KeyNeed::Required, None) => Err(KeyError::Missing),
            (KeyNeed::Required | KeyNeed::Optional, found) => Ok(found),
        }
    }

    /// Returns how long a settled key is kept.
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns for how long equal content counts as the same action.
    pub const fn dedupe_window(&self) -> Option<Duration> {
        self.dedupe_window
    }

    /// Returns how long the upstream remembers a key.
    pub const fn keeps_keys_for(&self) -> Duration {
        self.keeps_keys_for
    }

    /// Returns how long after its claim a call may still take effect.
    pub const fn settle_grace(&self) -> Duration {
        self.settle_grace
    }

    /// Returns how long a duplicate waits for the first request's outcome.
    pub const fn in_flight_wait(&self) -> Duration {
        self.in_flight_wait
    }

    /// Returns how long a claim is valid without renewal.
    pub const fn lease(&self) -> Duration {
        self.lease
    }
}

impl Class {
    /// Returns whether the effect is permanent, so forgetting the key early is dangerous.
    pub const fn is_permanent(self) -> bool {
        matches!(self, Self::Irreversible | Self::ExternalEffect)
    }
}

impl OperationGuarantee {
    /// Returns the stricter of two modes: the one that allows fewer reruns.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        self.max(other)
    }

    const fn default_on_unknown(self) -> OnUnknown {
        match self {
            Self::Transactional | Self::Idempotent | Self::Keyed => OnUnknown::RunAgain,
            Self::None => OnUnknown::Hold,
        }
    }
}

/// Returns how long a client with the default schedule, [`Retry::CLIENT`], keeps retrying.
pub fn client_horizon() -> Duration {
    Retry::CLIENT.horizon(limits::MAX_CLIENT_CALL, limits::MAX_CLIENT_HINT)
}
