//! A request meets what is stored under its key.

use crate::clock::{Now, age, lease_has_lapsed};
use crate::fence::Fence;
use crate::fingerprint::Fingerprint;
use crate::time::Timestamp;
use crate::words;

use super::policy::{EffectMode, OnUnknown, Policy, limits};

/// What the store holds under a key, less the response itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Of the request that used the key first.
    pub fingerprint: Fingerprint,
    /// Of the last claim.
    pub fence: Fence,
    /// When the action was first claimed: an upstream remembers its key from then on.
    pub first_claimed_at: Timestamp,
    /// When it was last claimed: its call may be travelling for a while from then on.
    pub claimed_at: Timestamp,
    /// The strictest mode that it was claimed under since it began. The operation may have another by now.
    pub mode: EffectMode,
    /// How far it has come.
    pub phase: Phase,
}

impl Record {
    /// The record of a new claim ([`Admission::Run`]).
    pub fn claimed(fingerprint: Fingerprint, fence: Fence, now: Timestamp, policy: &Policy) -> Self {
        let phase = Phase::Claimed { lease_until: now.plus(policy.lease()) };
        Self { fingerprint, fence, first_claimed_at: now, claimed_at: now, mode: policy.mode(), phase }
    }
}

/// How far an action has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Somebody is at it.
    Claimed {
        /// The claim lapses then, unless it is renewed.
        lease_until: Timestamp,
    },
    /// It began, and nobody knows what came of it.
    Unknown,
    /// It is finished, and the outcome is stored.
    Settled {
        /// Which way.
        outcome: Settled,
        /// How much of the response there is to replay.
        kept: Kept,
        /// When the key may be forgotten.
        expiry: Expiry,
    },
}

words! {
    /// Which way an action was finished.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Settled {
        /// It took effect.
        Applied = "applied",
        /// It was refused for a reason that will be the same every time.
        Refused = "refused",
    }
}

/// How much of a response is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All of it.
    Whole,
    /// Status and headers: the body was streamed, or over the bound.
    WithoutBody,
}

/// When a settled key may be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// From this moment on.
    At(Timestamp),
    /// Not yet: a message that waits, is parked or may be requeued still uses the key (SPEC A5).
    HeldByMessage,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Run it as new.
    ///
    /// Claim it by one insert that fails when a record is there (or replaces exactly `replaces`). If it fails,
    /// somebody was faster: read the record and call [`admit`] again.
    Run {
        /// The expired record in the way, which the claim replaces if it is still that one.
        replaces: Option<Fence>,
    },
    /// Run it again in place of an owner that is gone, under a new fence.
    TakeOver {
        /// The claim that lapsed, or whose outcome was lost.
        from: Fence,
    },
    /// Answer with what is stored.
    Replay,
    /// It was done, but the body was not kept: say so, and do nothing.
    ReplayNotKept,
    /// It is in flight: wait for its outcome, then answer as the profile says.
    Wait {
        /// When the present claim lapses.
        lease_until: Timestamp,
    },
    /// The key belongs to a different request: refuse, and show nothing.
    Mismatch,
    /// Its owner is gone and nobody knows the outcome: mark it so, then answer as for [`Admission::Unknown`].
    MarkUnknown {
        /// The claim that lapsed.
        fence: Fence,
    },
    /// Nobody knows the outcome: say so, and run nothing. [`Policy::on_unknown`] says who finds out.
    Unknown,
}

/// Decides what happens to a request, given what is stored under its key.
///
/// The order matters. An expired key counts as new whatever was asked under it (SPEC A5). A different request
/// is told so before it learns that the key is in flight or unknown, because waiting would not help it.
///
/// A record expires by [`Now::expired_until`], so a wall clock that is set ahead makes no key new.
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
        Phase::Settled { kept: Kept::Whole, .. } => Admission::Replay,
        Phase::Settled { kept: Kept::WithoutBody, .. } => Admission::ReplayNotKept,
        Phase::Claimed { lease_until } if !lease_has_lapsed(lease_until, now, limits::LEASE_MAX) => {
            Admission::Wait { lease_until }
        }
        Phase::Claimed { .. } | Phase::Unknown if runs_again => Admission::TakeOver { from: record.fence },
        Phase::Claimed { .. } => Admission::MarkUnknown { fence: record.fence },
        Phase::Unknown => Admission::Unknown,
    }
}

/// Whether running a lapsed or lost action again cannot do it twice: it was rolled back, or its upstream
/// honours the key and still remembers it, which nobody knows of a claim in the future. What was claimed under a stricter mode than today's is judged by that one.
fn may_run_again(record: &Record, policy: &Policy, now: Timestamp) -> bool {
    policy.on_unknown() == OnUnknown::RunAgain
        && match record.mode.stricter(policy.mode()) {
            EffectMode::Transactional => true,
            EffectMode::Keyed => {
                age(record.first_claimed_at, now).is_some_and(|age| age < policy.upstream_keeps_keys_for())
            }
            EffectMode::Opaque => false,
        }
}

/// Whether a record may be forgotten: only what is settled expires, and nothing that a message still uses.
pub fn may_sweep(record: &Record, now: Timestamp) -> bool {
    match record.phase {
        Phase::Settled { expiry: Expiry::At(expires_at), .. } => expires_at <= now,
        Phase::Settled { expiry: Expiry::HeldByMessage, .. } | Phase::Claimed { .. } | Phase::Unknown => {
            false
        }
    }
}
