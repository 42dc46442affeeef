//! What came of the work decides what is stored: by its effect, not by its status number.

use crate::fence::Fence;
use crate::time::Timestamp;

use super::admission::{Phase, Record, Settled};
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

/// Decides what is stored, released or held.
pub fn settle(outcome: Outcome, policy: &Policy, now: Timestamp) -> Settlement {
    let keep = |outcome| Settlement::Keep {
        outcome,
        expires_at: now.plus(policy.ttl()),
    };
    match outcome {
        Outcome::NothingDone | Outcome::NotBegun => Settlement::Release,
        Outcome::Responded { status: 200..=399 } => keep(Settled::Applied),
        Outcome::Responded { status } if proves_nothing_done(status) => Settlement::Release,
        Outcome::Responded { status: 400..=499 } => keep(Settled::Refused),
        Outcome::Responded { .. } | Outcome::StillRunning | Outcome::Panicked | Outcome::Lost => {
            match policy.mode() {
                // Transactional: rolled back. (A COMMIT of unknown fate is read back first; should it have won
                // after all, the release finds no claim to release.) Keyed: the upstream remembers the key,
                // so the next request with it gets the outcome.
                EffectMode::Transactional | EffectMode::Keyed => Settlement::Release,
                EffectMode::Opaque => Settlement::Hold,
            }
        }
    }
}

/// Statuses that refuse a request before anything is done with it, and may be different next time:
/// who asks (401, 403, 407), too slow, too large or too fast to be read (408, 413, 425, 429), the wrong
/// server (421), a lock held by another (423).
const fn proves_nothing_done(status: u16) -> bool {
    matches!(status, 401 | 403 | 407 | 408 | 413 | 421 | 423 | 425 | 429)
}

/// What becomes of a settle that arrives for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is the owner's: take it. Marking a claim unknown does not take it away from its owner.
    Accept,
    /// It was settled already: answer with what is stored.
    AlreadySettled,
    /// Somebody else owns it now: change nothing, answer with the winner's result.
    Stale,
}

/// Whether the holder of `fence` may still settle `record`.
pub fn late_settle(record: &Record, fence: Fence) -> Late {
    match record.phase {
        _ if record.fence != fence => Late::Stale,
        Phase::Claimed { .. } | Phase::Unknown => Late::Accept,
        Phase::Settled { .. } => Late::AlreadySettled,
    }
}
