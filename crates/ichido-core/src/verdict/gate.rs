//! The check before every repetition: could it apply the work twice?
// SPEC C4, F2.

use std::time::Duration;

use super::{AttemptResponse, Effect};
use crate::clock::age;
use crate::time::Timestamp;

/// Why a repetition of this call would be harmless, if it would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// The call carries an idempotency key that the receiver honours and still remembers.
    Keyed,
    /// Repeating it is declared harmless.
    ///
    /// Examples are a read, or work that may be paid for twice, such as a model's response.
    Idempotent,
    /// The effect commits with the message's settlement: an attempt that was not settled had none.
    // SPEC H1.
    Transactional,
    /// None of these: only proof that nothing was done makes a repetition safe.
    None,
}

/// What a receiver guarantees about repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// It honours the key for this long after the first call.
    Keyed {
        /// How long it remembers a key.
        keeps_for: Duration,
    },
    /// Repeating it is declared harmless.
    Idempotent,
    /// Its effect is in the store's own database, and commits with the message's settlement or not at all.
    // SPEC H1.
    Transactional,
    /// Nothing.
    None,
}

impl Guarantee {
    /// Returns the name, as settings and the store spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keyed { .. } => "keyed",
            Self::Idempotent => "idempotent",
            Self::Transactional => "transactional",
            Self::None => "none",
        }
    }

    /// Returns whether a repetition is safe, at least for a time: the default of a queue's `requeue`.
    // SPEC D17.
    pub const fn is_repeatable(self) -> bool {
        match self {
            Self::Keyed { .. } | Self::Idempotent | Self::Transactional => true,
            Self::None => false,
        }
    }

    /// Returns what a call could do now, if the first call in doubt was made at `doubt_since`.
    pub fn safety(self, doubt_since: Option<Timestamp>, now: Timestamp) -> Safety {
        match (self, doubt_since) {
            (Self::Idempotent, _) => Safety::Idempotent,
            // Later the receiver may have forgotten the key, so the message counts as not covered (SPEC F2). So does a
            // message whose first call is in the future: the clock was set back, and its age is unknown.
            (Self::Keyed { keeps_for }, Some(since))
                if age(since, now).is_none_or(|age| keeps_for <= age) =>
            {
                Safety::None
            }
            (Self::Keyed { .. }, _) => Safety::Keyed,
            (Self::Transactional, None) => Safety::Transactional,
            // A transactional attempt leaves no doubt, so the doubt is about a call under another guarantee.
            (Self::Transactional, Some(_)) | (Self::None, _) => Safety::None,
        }
    }

    /// Returns the guarantee that both of these cover: if two differ about one call, the weaker one counts.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        match (self, other) {
            (Self::Transactional, Self::Transactional) => Self::Transactional,
            // If one of them is transactional, to it an unsettled call was not done, to the other it may have been: they
            // share nothing.
            (Self::None | Self::Transactional, _) | (_, Self::None | Self::Transactional) => Self::None,
            (Self::Keyed { keeps_for }, Self::Keyed { keeps_for: other }) => {
                Self::Keyed { keeps_for: keeps_for.min(other) }
            }
            // Work that is always harmless to repeat is also harmless while a key is remembered.
            (keyed @ Self::Keyed { .. }, Self::Idempotent)
            | (Self::Idempotent, keyed @ Self::Keyed { .. }) => keyed,
            (Self::Idempotent, Self::Idempotent) => Self::Idempotent,
        }
    }
}

/// The repetition is refused, because the effect may already have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepeatRefused {
    /// The effect is unknown, and no key would prevent a second one.
    #[error(
        "not retried: the call changes state, carries no idempotency key that the receiver deduplicates by, and may already have taken effect; send a key, or ask the receiver what happened"
    )]
    EffectUnknown,
    /// The work was done.
    #[error("not retried: the work was done")]
    EffectDone,
}

/// Checks whether a call may be repeated, given what is known of its effect so far.
pub fn may_repeat(safety: Safety, effect: Effect) -> Result<(), RepeatRefused> {
    match (effect, safety) {
        (Effect::NotDone, _) | (_, Safety::Idempotent) | (Effect::Unknown, Safety::Keyed) => Ok(()),
        (Effect::Unknown, Safety::Transactional | Safety::None) => Err(RepeatRefused::EffectUnknown),
        (Effect::Done, Safety::Keyed | Safety::Transactional | Safety::None) => {
            Err(RepeatRefused::EffectDone)
        }
    }
}

/// Returns whether a hop that does not own idempotency (a BFF, a gateway) may repeat a request.
///
/// It may repeat only POST, with a key, after a network fault or a 502, 503 or 504. Everything else is the origin's
/// decision: the hop passes the response on. So it does if the owner holds the key: a repetition would get 409 instead
/// of the service's own response.
// SPEC C4.
pub fn hop_may_repeat(method: &str, has_key: bool, seen: &AttemptResponse<'_>) -> bool {
    let passing = match seen {
        AttemptResponse::Network(_) => true,
        AttemptResponse::Http(answer) => matches!(answer.status, 502..=504) && !answer.says_held(),
        AttemptResponse::Named(_) | AttemptResponse::UnusableAnswer => false,
    };
    method == "POST" && has_key && passing
}
