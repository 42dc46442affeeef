//! What came of the work decides what is stored: by its effect, not by its status number.

use crate::fence::Fence;
use crate::time::Timestamp;

use super::admission::{Expiry, Kept, Phase, Record, Settled};
use super::policy::{EffectMode, Policy};

/// What came of running a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response came.
    Responded {
        /// Its status.
        status: u16,
    },
    /// A response came, and its sender vouches that nothing was done, whatever the status.
    NothingDone,
    /// The work never began: the connection could not be made, or the claim came too late.
    NotBegun,
    /// The upstream has an idempotency layer of its own and is still at it (SPEC C6).
    StillRunning,
    /// The handler panicked.
    Panicked,
    /// No response, or not a whole one: a time-out, a broken connection, a COMMIT of unknown fate.
    Lost,
}

/// What to do with the claim.
///
/// In transactional mode the caller's writes commit together with [`Settled::Applied`] and roll back with
/// everything else: a refusal is stored, its writes are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Store the response under the key.
    Keep {
        /// Which way it was finished.
        outcome: Settled,
        /// When the key may be forgotten.
        expires_at: Timestamp,
    },
    /// Give the key back: it is proved that nothing happened, or running it again is harmless.
    Release,
    /// Keep the claim as unknown: never expired, never run again, settled by evidence or by a person.
    Hold,
}

impl Settlement {
    /// The record's next phase, given how much of the response was stored; `None` where the record goes away.
    pub const fn phase(self, kept: Kept) -> Option<Phase> {
        match self {
            Self::Keep { outcome, expires_at } => {
                Some(Phase::Settled { outcome, kept, expiry: Expiry::At(expires_at) })
            }
            Self::Hold => Some(Phase::Unknown),
            Self::Release => None,
        }
    }
}

/// Where the holder of a fence stands with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The record is its own to settle. Marking a claim unknown does not take it away from its owner.
    Owner,
    /// It was settled already: answer with what is stored.
    AlreadySettled,
    /// Somebody else owns it now: change nothing, answer with the winner's result.
    Stale,
}

/// Whether the holder of `fence` may still settle `record`. Late is not too late, as long as nobody took over.
pub fn may_settle(record: &Record, fence: Fence) -> Standing {
    match record.phase {
        _ if record.fence != fence => Standing::Stale,
        Phase::Claimed { .. } | Phase::Unknown => Standing::Owner,
        Phase::Settled { .. } => Standing::AlreadySettled,
    }
}

/// Decides what is stored, released or held.
///
/// Ask [`may_settle`] first, in the same transaction as the write: this function does not look at the fence.
pub fn settle(outcome: Outcome, policy: &Policy, now: Timestamp) -> Settlement {
    let keep = |outcome| Settlement::Keep { outcome, expires_at: now.plus(policy.ttl()) };
    match outcome {
        Outcome::NothingDone | Outcome::NotBegun => Settlement::Release,
        Outcome::Responded { status: 200..=399 } => keep(Settled::Applied),
        Outcome::Responded { status } if proves_nothing_done(status) => Settlement::Release,
        // "Too slow" from the work itself says nothing of what was done by then; the layer's own 408, before the
        // work, is `NotBegun`.
        Outcome::Responded { status: 400..=407 | 409..=499 } => keep(Settled::Refused),
        Outcome::Responded { .. } | Outcome::StillRunning | Outcome::Panicked | Outcome::Lost => {
            match policy.mode() {
                // Rolled back. A COMMIT of unknown fate is read back first; should it have won after all, the
                // release finds no claim to release.
                EffectMode::Transactional => Settlement::Release,
                // Held, so that the key stays bound to this request. Where the upstream still remembers the key,
                // the next request under it takes over and gets the outcome.
                EffectMode::Keyed | EffectMode::Opaque => Settlement::Hold,
            }
        }
    }
}

/// Statuses that refuse a request before anything is done with it, and may be different next time:
/// who asks (401, 403, 407), too large, too early or too fast (413, 425, 429), the wrong server (421), a lock held
/// by another (423).
const fn proves_nothing_done(status: u16) -> bool {
    matches!(status, 401 | 403 | 407 | 413 | 421 | 423 | 425 | 429)
}

/// What was found out about an action of unknown outcome, by a reconcile call or by a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It took effect.
    Applied,
    /// It was refused.
    Refused,
    /// Nothing was done: the key is free again.
    NothingDone,
}

/// Why what was found out does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Its outcome is not unknown.
    #[error("the outcome of this key is not unknown; there is nothing to resolve")]
    NotUnknown,
    /// The call may still be travelling.
    #[error("the call may still take effect; decide that nothing was done no sooner than {from}")]
    TooEarly {
        /// From when it counts.
        from: Timestamp,
    },
}

/// Settles an action of unknown outcome by what was found out (SPEC F2).
///
/// That it took effect, or was refused, counts at once. That nothing was done counts only when the call can no
/// longer be travelling.
pub fn resolve(
    record: &Record,
    resolution: Resolution,
    policy: &Policy,
    now: Timestamp,
) -> Result<Settlement, ResolveError> {
    if record.phase != Phase::Unknown {
        return Err(ResolveError::NotUnknown);
    }
    let from = record.claimed_at.plus(policy.settles_within());
    let keep = |outcome| Settlement::Keep { outcome, expires_at: now.plus(policy.ttl()) };
    match resolution {
        Resolution::Applied => Ok(keep(Settled::Applied)),
        Resolution::Refused => Ok(keep(Settled::Refused)),
        Resolution::NothingDone if now < from => Err(ResolveError::TooEarly { from }),
        Resolution::NothingDone => Ok(Settlement::Release),
    }
}
