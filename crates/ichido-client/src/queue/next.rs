//! What to do with an entry, before a try and after it: the decisions, without a clock, a file or a socket.
//!
//! Guarantee: an entry that was once sent is not sent by itself when the server may have forgotten its key, nor when nobody knows how old
//! it is (SPEC A13). A try counts as failed only where the server was reached, or may have been. None is made more often than
//! [`SENDS_MAX`] without a person's word, however it ends, our own process included.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_core::verdict::{Effect, NetworkFault};

use super::age::{ClockMark, FileClock};
use crate::next::{NextStep, Why};

/// The most sends of an entry without a person's word, those included that only asked whether it is over, and those that our own process did
/// not survive.
pub const SENDS_MAX: u32 = 100;
/// The first wait of a queue that cannot reach its destination; each next one is twice as long.
pub const OFFLINE_WAIT_MIN: Duration = Duration::from_secs(1);
/// The longest of them, before the tenth that chance may add.
pub const OFFLINE_WAIT_MAX: Duration = Duration::from_mins(1);
/// The longest that a server may ask to be left alone (`Retry-After`). Whoever asks for more is not asked again without a person's word.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

const GROWING: Retry = Retry {
    schedule: Schedule::Exponential { base: OFFLINE_WAIT_MIN, factor: 2, cap: OFFLINE_WAIT_MAX },
    jitter: Jitter::Add(0.1),
    // A network comes back when it does: nobody counts.
    tries: NonZeroU32::MAX,
};

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHistory {
    /// Tries that failed since a person's last word, or since it was accepted.
    pub attempts: u32,
    /// All sends since then.
    pub sends: u32,
    /// When it was sent first of all, if ever.
    pub first_sent: Option<ClockMark>,
    /// How much must have passed before the next try.
    pub due: Duration,
    /// Whether a person said that it be sent once more, however old it is.
    pub is_released: bool,
    /// What is known of its effect.
    pub effect: Effect,
}

/// What to do with the entry that is next in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeSend {
    /// Mark it, and send it.
    Send,
    /// Nothing yet.
    Wait(Duration),
    /// Leave it to a person.
    Hold(HoldReason),
    /// It was sent [`SENDS_MAX`] times.
    Fail,
}

/// Why an entry is left to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoldReason {
    /// The server may have forgotten the key.
    #[error(
        "it was sent before, and longer ago than the server keeps keys: sent again, it could be done twice. Look whether it was done; then \
         release or discard it"
    )]
    KeysForgotten,
    /// The clock was set back.
    #[error(
        "it was sent before, and the clock was set back since, so that nobody knows whether the server still keeps its key. Look whether it \
         was done; then release or discard it"
    )]
    AgeUnknown,
}

impl HoldReason {
    /// The word for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::KeysForgotten => "keys_forgotten",
            Self::AgeUnknown => "age_unknown",
        }
    }
}

/// What to do after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSend {
    /// It was done: the entry goes.
    Remove,
    /// It never left: as if it had not been tried.
    Offline,
    /// The server is still at it, and is asked again.
    Ask {
        /// After how long.
        wait: Duration,
    },
    /// The try failed, and there will be another.
    Retry {
        /// After how long.
        wait: Duration,
        /// What is known of the effect now.
        effect: Effect,
    },
    /// It is marked failed.
    Fail {
        /// Why there is no other try; `None` where the server refused it.
        why: Option<Why>,
        /// What is known of the effect.
        effect: Effect,
    },
}

/// Decides before a try. `keys_kept_for` is how long the server remembers, and `try_time` how long the request can be on its way: what is sent
/// now must arrive while it is remembered.
///
/// ```
/// use std::time::Duration;
/// use ichido_client::queue::age::FileClock;
/// use ichido_client::queue::next::{self, BeforeSend, HoldReason, EntryHistory};
/// use ichido_core::time::Timestamp;
/// use ichido_core::verdict::Effect;
///
/// let at = |hours: i64| Timestamp::from_secs(1_800_000_000 + hours * 3_600);
/// let then = FileClock::begin(at(0));
/// let history = EntryHistory {
///     attempts: 1,
///     sends: 1,
///     first_sent: Some(then.mark()),
///     due: Duration::ZERO,
///     is_released: false,
///     effect: Effect::Unknown,
/// };
/// let (kept, on_its_way) = (Duration::from_hours(72), Duration::from_secs(30));
/// assert_eq!(next::before(&history, then.look(at(71)), kept, on_its_way), BeforeSend::Send);
/// assert_eq!(next::before(&history, then.look(at(72)), kept, on_its_way), BeforeSend::Hold(HoldReason::KeysForgotten));
/// ```
pub fn before(
    history: &EntryHistory,
    watch: FileClock,
    keys_kept_for: Duration,
    try_time: Duration,
) -> BeforeSend {
    let to_wait = history.due.saturating_sub(watch.passed);
    if !to_wait.is_zero() {
        return BeforeSend::Wait(to_wait);
    }
    if let Some(first_sent) = history.first_sent.filter(|_| !history.is_released) {
        match watch.since(first_sent) {
            None => return BeforeSend::Hold(HoldReason::AgeUnknown),
            Some(age) if keys_kept_for <= age.saturating_add(try_time) => {
                return BeforeSend::Hold(HoldReason::KeysForgotten);
            }
            Some(_) => {}
        }
    }
    if SENDS_MAX <= history.sends { BeforeSend::Fail } else { BeforeSend::Send }
}

/// Decides after a try, given what the client's own rules say of it ([`crate::next::decide`]) and, where there was no whole answer, why.
/// `history` is what was known before the try.
pub fn after(history: &EntryHistory, decided: NextStep, fault: Option<NetworkFault>) -> AfterSend {
    if fault.is_some_and(|fault| !fault.may_have_arrived() && fault != NetworkFault::HeldBack) {
        return AfterSend::Offline;
    }
    match decided {
        NextStep::Done => AfterSend::Remove,
        NextStep::Refused { effect, .. } => AfterSend::Fail { why: None, effect },
        NextStep::GiveUp { why, effect } => AfterSend::Fail { why: Some(why), effect },
        // Whoever is at work answers, and no try has failed. It is asked ever less often: it may take its time.
        NextStep::Retry { wait, tries } if tries.failed == history.attempts => {
            AfterSend::Ask { wait: wait.max(growing(history.sends.saturating_sub(history.attempts), 0.0)) }
        }
        NextStep::Retry { wait, tries } => AfterSend::Retry { wait, effect: tries.effect },
    }
}

/// How long a queue waits that did not get through to its destination for the `nth` time in a row, from 0. `dice` is uniform in [0, 1): those
/// who lost the network together do not come back together.
pub fn growing(nth: u32, dice: f64) -> Duration {
    GROWING.wait(NonZeroU32::MIN.saturating_add(nth), dice, None)
}

#[cfg(test)]
mod tests;
