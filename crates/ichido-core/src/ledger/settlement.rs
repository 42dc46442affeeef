//! Decides what to store after the work ran, by its effect rather than by its status.

use std::time::Duration;

use crate::fence::Fence;
use crate::time::Timestamp;
use crate::verdict::ends_call;

use super::admission::{Expiry, Record, RecordPhase, Settled, StoredBody};
use super::policy::{OperationGuarantee, Policy};

/// The outcome of running a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// A response arrived.
    Responded {
        /// Its status.
        status: u16,
    },
    /// A response arrived, and its sender guarantees that nothing was done, whatever the status.
    NothingDone,
    /// The work never started: the connection failed, or the claim came too late.
    NotStarted,
    /// The upstream has its own idempotency layer and is still processing the request.
    // SPEC C6.
    StillRunning,
    /// The handler panicked.
    Panicked,
    /// No complete response: a timeout, a broken connection or a COMMIT whose result is unknown.
    Lost,
}

impl RequestOutcome {
    /// Returns whether the call was answered, so it can no longer be in transit.
    // SPEC F2.
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Responded { status } if ends_call(status))
    }
}

/// What to do with the claim.
///
/// In transactional mode the caller's writes commit together with [`Settled::Applied`] and roll back in every other
/// case: a refusal is stored, its writes are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Store the response under the key.
    Keep {
        /// Whether it was applied or refused.
        outcome: Settled,
        /// When the key expires.
        expires_at: Timestamp,
    },
    /// Release the key: nothing happened, or running it again is harmless.
    Release,
    /// Keep the claim as unknown: it never expires or runs again until evidence or a person settles it.
    Hold,
}

impl Settlement {
    /// Returns the record's next phase, or `None` if the record is deleted.
    pub const fn phase(self, kept: StoredBody) -> Option<RecordPhase> {
        match self {
            Self::Keep { outcome, expires_at } => {
                Some(RecordPhase::Settled { outcome, kept, expiry: Expiry::At(expires_at) })
            }
            Self::Hold => Some(RecordPhase::Unknown),
            Self::Release => None,
        }
    }
}

/// The relation between the holder of a fence and a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleRight {
    /// The holder may settle the record.
    ///
    /// Marking a claim unknown does not take it away from its owner.
    Owner,
    /// The record is already settled: return the stored response.
    AlreadySettled,
    /// Another claim owns it now: change nothing and return the winner's result.
    Stale,
}

/// Returns whether the holder of `fence` may still settle `record`.
///
/// A late holder may, as long as nobody took over.
pub fn may_settle(record: &Record, fence: Fence) -> SettleRight {
    match record.phase {
        _ if record.fence != fence => SettleRight::Stale,
        RecordPhase::Claimed { .. } | RecordPhase::Unknown => SettleRight::Owner,
        RecordPhase::Settled { .. } => SettleRight::AlreadySettled,
    }
}

/// Decides whether to store, release or hold.
///
/// Call [`may_settle`] first, in the same transaction as the write: this function ignores the fence.
pub fn settle(outcome: RequestOutcome, policy: &Policy, now: Timestamp) -> Settlement {
    let keep = |outcome| Settlement::Keep { outcome, expires_at: now.plus(policy.ttl()) };
    match outcome {
        RequestOutcome::NothingDone | RequestOutcome::NotStarted => Settlement::Release,
        RequestOutcome::Responded { status: 200..=399 } => keep(Settled::Applied),
        RequestOutcome::Responded { status } if proves_nothing_done(status) => Settlement::Release,
        // A 408 from the work itself says nothing about what was done by then; the layer's own 408, sent before the
        // work, is `NotStarted`.
        RequestOutcome::Responded { status: 400..=407 | 409..=499 } => keep(Settled::Refused),
        RequestOutcome::Responded { .. }
        | RequestOutcome::StillRunning
        | RequestOutcome::Panicked
        | RequestOutcome::Lost => {
            match policy.guarantee() {
                // A transaction was rolled back. A COMMIT with an unknown result is read back first; if it succeeded
                // after all, the release finds no claim to release. Whatever an idempotent request did, the next one
                // may do it again.
                OperationGuarantee::Transactional | OperationGuarantee::Idempotent => Settlement::Release,
                // Held, so the key stays bound to this request. While the upstream remembers the key, the next request
                // under it takes over and gets the outcome.
                OperationGuarantee::Keyed | OperationGuarantee::None => Settlement::Hold,
            }
        }
    }
}

/// Statuses that refuse a request before any work is done and may differ next time.
///
/// They concern the caller (401, 403, 407), size, time or rate (413, 425, 429), the wrong server (421) and a lock that
/// another request holds (423).
const fn proves_nothing_done(status: u16) -> bool {
    matches!(status, 401 | 403 | 407 | 413 | 421 | 423 | 425 | 429)
}

/// What a reconcile call or a person found out about an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It took effect.
    Applied,
    /// It was refused.
    Refused,
    /// Nothing was done: the key is released.
    NothingDone,
}

/// Why a resolution is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The outcome is already known.
    #[error("the outcome of this key is already known; there is nothing to resolve")]
    NotUnknown,
    /// The call may still be in transit.
    #[error("the call may still take effect; it can be decided as not done only from {from}")]
    TooEarly {
        /// When the resolution is accepted.
        from: Timestamp,
    },
}

/// Returns from when on "nothing done" counts about an action of unknown outcome.
pub fn not_done_from(record: &Record, settle_grace: Duration) -> Timestamp {
    match record.answered_at {
        // It was the only call, and it has ended.
        Some(answered_at) if record.first_claimed_at == record.claimed_at => answered_at,
        _ => record.claimed_at.plus(settle_grace),
    }
}

/// Settles an action of unknown outcome with what was found out.
///
/// "Applied" and "refused" count at once. "Nothing done" counts only when no call can still be in transit: at once if the
/// only call was answered.
// SPEC F2.
pub fn resolve(
    record: &Record,
    resolution: Resolution,
    policy: &Policy,
    now: Timestamp,
) -> Result<Settlement, ResolveError> {
    if record.phase != RecordPhase::Unknown {
        return Err(ResolveError::NotUnknown);
    }
    let from = not_done_from(record, policy.settle_grace());
    let keep = |outcome| Settlement::Keep { outcome, expires_at: now.plus(policy.ttl()) };
    match resolution {
        Resolution::Applied => Ok(keep(Settled::Applied)),
        Resolution::Refused => Ok(keep(Settled::Refused)),
        Resolution::NothingDone if now < from => Err(ResolveError::TooEarly { from }),
        Resolution::NothingDone => Ok(Settlement::Release),
    }
}
