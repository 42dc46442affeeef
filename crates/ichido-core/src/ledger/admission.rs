//! Decides what to do with a request, given the record stored under its key.

use crate::clock::{Now, age, lease_has_lapsed};
use crate::fence::Fence;
use crate::fingerprint::Fingerprint;
use crate::time::Timestamp;
use crate::words;

use super::policy::{OnUnknown, OperationGuarantee, Policy, limits};

/// What the store holds under a key, without the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The fingerprint of the first request under the key.
    pub fingerprint: Fingerprint,
    /// The fence of the last claim.
    pub fence: Fence,
    /// When the action was first claimed. An upstream remembers its key from this moment.
    pub first_claimed_at: Timestamp,
    /// When the action was last claimed.
    ///
    /// Its call may be in transit for a while after this.
    pub claimed_at: Timestamp,
    /// When the call of the last claim was answered, if it was and its outcome is unknown all the same.
    pub answered_at: Option<Timestamp>,
    /// The strictest mode it was claimed under so far.
    ///
    /// The operation may have a different mode by now.
    pub mode: OperationGuarantee,
    /// How far the action has progressed.
    pub phase: RecordPhase,
}

impl Record {
    /// Creates the record of a new claim ([`Admission::Run`]).
    pub fn claimed(fingerprint: Fingerprint, fence: Fence, now: Timestamp, policy: &Policy) -> Self {
        let phase = RecordPhase::Claimed { lease_until: now.plus(policy.lease()) };
        Self {
            fingerprint,
            fence,
            first_claimed_at: now,
            claimed_at: now,
            answered_at: None,
            mode: policy.guarantee(),
            phase,
        }
    }
}

/// How far an action has progressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPhase {
    /// An attempt is in flight.
    Claimed {
        /// When the claim lapses unless it is renewed.
        lease_until: Timestamp,
    },
    /// The action started and its outcome is unknown.
    Unknown,
    /// The action finished and its outcome is stored.
    Settled {
        /// Whether it was applied or refused.
        outcome: Settled,
        /// How much of the response can be replayed.
        kept: StoredBody,
        /// When the key expires.
        expiry: Expiry,
    },
}

words! {
    /// How an action finished.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Settled {
        /// It took effect.
        Applied = "applied",
        /// It was refused for a reason that does not change on a retry.
        Refused = "refused",
    }
}

/// How much of a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredBody {
    /// The whole response.
    Whole,
    /// Status and headers only: the body was streamed or too large.
    WithoutBody,
}

/// When a settled key expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// At this moment.
    At(Timestamp),
    /// Not yet: a message that waits, is parked or may be requeued still uses the key.
    // SPEC A5.
    HeldByMessage,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Run it as a new request.
    ///
    /// Claim it with one insert that fails if a record exists (or replaces exactly `replaces`). If the insert fails,
    /// another request was faster: read the record and call [`admit`] again.
    Run {
        /// The expired record under this key.
        ///
        /// The claim replaces it only if it has not changed.
        replaces: Option<Fence>,
    },
    /// Run it again under a new fence, because the previous owner is gone.
    TakeOver {
        /// The claim that lapsed or whose outcome was lost.
        from: Fence,
    },
    /// Return the stored response.
    Replay,
    /// It took effect, but the body was not stored: report that and run nothing.
    ReplayNotKept,
    /// It is in flight: wait for its outcome, then respond as the profile says.
    Wait {
        /// When the current claim lapses.
        lease_until: Timestamp,
    },
    /// A different request used the key: refuse it and reveal nothing.
    Mismatch,
    /// The owner is gone and the outcome is unknown: record that, then respond as for [`Admission::Unknown`].
    MarkUnknown {
        /// The claim that lapsed.
        fence: Fence,
    },
    /// The outcome is unknown: report that and run nothing. [`Policy::on_unknown`] says who finds out.
    Unknown,
}

/// Decides what happens to a request, given the record stored under its key.
///
/// The order matters. An expired key counts as new, whatever request used it. A different request is refused before it
/// learns that the key is in flight or unknown, because waiting would not help it.
///
/// A record expires by [`Now::expired_until`], so setting the wall clock ahead makes no key new.
// SPEC A5.
pub fn admit(
    found: Option<&Record>,
    fingerprint: Fingerprint,
    policy: &Policy,
    now: impl Into<Now>,
) -> Admission {
    let Some(record) = found else {
        return Admission::Run { replaces: None };
    };
    let now: Now = now.into();
    if may_sweep(record, now.expired_until()) {
        return Admission::Run { replaces: Some(record.fence) };
    }
    if record.fingerprint != fingerprint {
        return Admission::Mismatch;
    }
    let now = now.wall;
    let runs_again = may_run_again(record, policy, now);
    match record.phase {
        RecordPhase::Settled { kept: StoredBody::Whole, .. } => Admission::Replay,
        RecordPhase::Settled { kept: StoredBody::WithoutBody, .. } => Admission::ReplayNotKept,
        RecordPhase::Claimed { lease_until } if !lease_has_lapsed(lease_until, now, limits::MAX_LEASE) => {
            Admission::Wait { lease_until }
        }
        RecordPhase::Claimed { .. } | RecordPhase::Unknown if runs_again => {
            Admission::TakeOver { from: record.fence }
        }
        RecordPhase::Claimed { .. } => Admission::MarkUnknown { fence: record.fence },
        RecordPhase::Unknown => Admission::Unknown,
    }
}

/// Returns whether running a lapsed or lost action again cannot apply it twice.
///
/// That is so if it was rolled back, if a repetition does no harm, or if its upstream honours the key and still remembers it, which cannot be known
/// of a claim in the future. An action that was claimed under a stricter mode than today's is judged by that mode.
fn may_run_again(record: &Record, policy: &Policy, now: Timestamp) -> bool {
    policy.on_unknown() == OnUnknown::RunAgain
        && match record.mode.stricter(policy.guarantee()) {
            OperationGuarantee::Transactional | OperationGuarantee::Idempotent => true,
            OperationGuarantee::Keyed => {
                age(record.first_claimed_at, now).is_some_and(|age| age < policy.keeps_keys_for())
            }
            OperationGuarantee::None => false,
        }
}

/// Returns whether a record may be deleted.
///
/// Only settled records expire, and none that a message still uses.
pub fn may_sweep(record: &Record, now: Timestamp) -> bool {
    match record.phase {
        RecordPhase::Settled { expiry: Expiry::At(expires_at), .. } => expires_at <= now,
        RecordPhase::Settled { expiry: Expiry::HeldByMessage, .. }
        | RecordPhase::Claimed { .. }
        | RecordPhase::Unknown => false,
    }
}
