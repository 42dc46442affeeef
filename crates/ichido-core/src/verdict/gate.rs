//! The gate before every repetition: could it do the work twice?
// SPEC C4, F2.

use std::time::Duration;

use super::{Effect, Seen};
use crate::clock::age;
use crate::time::Timestamp;

/// Why a repetition of this call would be harmless, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// The call carries an idempotency key that the receiver honours and still remembers.
    Keyed,
    /// Doing it twice is declared harmless: a read, or work that may be paid for twice, such as a model's answer.
    Repeatable,
    /// Neither: only proof that nothing was done makes a repetition safe.
    Neither,
}

/// What a receiver promises about repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// It honours the key for this long from the first call on.
    HonoursKeys {
        /// How long it remembers a key.
        keeps_for: Duration,
    },
    /// Doing it twice is declared harmless.
    Repeatable,
    /// Nothing.
    Nothing,
}

impl Guarantee {
    /// What a call could do now, if the first one whose effect is in doubt was made at `doubt_since`.
    pub fn safety(self, doubt_since: Option<Timestamp>, now: Timestamp) -> Safety {
        match (self, doubt_since) {
            (Self::Repeatable, _) => Safety::Repeatable,
            // Past that time the receiver may have forgotten: the message counts as not covered (SPEC F2). So does one whose
            // first call lies in the future: the clock was set back since, and nobody knows how long ago it was.
            (Self::HonoursKeys { keeps_for }, Some(since))
                if age(since, now).is_none_or(|age| keeps_for <= age) =>
            {
                Safety::Neither
            }
            (Self::HonoursKeys { .. }, _) => Safety::Keyed,
            (Self::Nothing, _) => Safety::Neither,
        }
    }

    /// What both of these promises cover: of two that differ about one call, neither is believed further than the other goes.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::HonoursKeys { keeps_for }, Self::HonoursKeys { keeps_for: other }) => {
                Self::HonoursKeys { keeps_for: keeps_for.min(other) }
            }
            // What is harmless at any time is harmless for as long as a key is remembered.
            (keyed @ Self::HonoursKeys { .. }, Self::Repeatable)
            | (Self::Repeatable, keyed @ Self::HonoursKeys { .. }) => keyed,
            (Self::Repeatable, Self::Repeatable) => Self::Repeatable,
        }
    }
}

/// The repetition is refused, because the effect may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepeatRefused {
    /// Nobody knows whether the work was done, and no key would stop it from being done again.
    #[error(
        "not tried again: the call changes state, carries no idempotency key that the receiver honours, and may already have taken effect; send a key, or ask the receiver what happened"
    )]
    EffectUnknown,
    /// The work was done.
    #[error("not tried again: the work was done")]
    EffectDone,
}

/// May a call be sent again, given what is known of its effect so far?
pub fn may_repeat(safety: Safety, effect: Effect) -> Result<(), RepeatRefused> {
    match (effect, safety) {
        (Effect::NotDone, _) | (_, Safety::Repeatable) | (Effect::Unknown, Safety::Keyed) => Ok(()),
        (Effect::Unknown, Safety::Neither) => Err(RepeatRefused::EffectUnknown),
        (Effect::Done, Safety::Keyed | Safety::Neither) => Err(RepeatRefused::EffectDone),
    }
}

/// May a hop that does not own idempotency (a BFF, a gateway) send a request again by itself?
///
/// It may repeat POST alone, with a key, after a network fault or a 502, 503 or 504. Everything else is
/// the origin's decision: the hop passes the answer on.
// SPEC C4.
pub fn hop_may_repeat(method: &str, has_key: bool, seen: &Seen<'_>) -> bool {
    let passing = match seen {
        Seen::Network(_) => true,
        Seen::Answer(answer) => matches!(answer.status, 502..=504),
        Seen::Named(_) | Seen::UnusableAnswer => false,
    };
    method == "POST" && has_key && passing
}
