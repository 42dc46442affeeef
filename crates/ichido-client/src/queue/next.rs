//! Decides about an entry before and after an attempt, without I/O or a clock.
//!
//! Guarantee: an entry that was sent before is not sent again automatically if the server may have forgotten its key
//! or its age is unknown. An attempt counts as failed only if the server was, or may have been, reached. An entry is
//! sent at most [`MAX_SENDS`] times unless a person decides otherwise, whatever the outcome, including a crash of our
//! own process.
// Spec: A13.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_core::verdict::{Effect, NetworkFault};

use super::age::{ClockMark, FileClock};
use crate::decision::{GiveUpReason, NextStep};

/// The maximum number of sends unless a person decides otherwise.
///
/// It includes requests that only asked for an outcome in flight, and those during which our own process died.
pub const MAX_SENDS: u32 = 100;
/// The first wait for an unreachable destination. Each further wait is twice as long.
pub const MIN_OFFLINE_WAIT: Duration = Duration::from_secs(1);
/// The longest of these waits, before up to a tenth of jitter.
pub const MAX_OFFLINE_WAIT: Duration = Duration::from_mins(1);
/// The longest accepted `Retry-After`. After a longer one, a person must decide about the retry.
pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

const OFFLINE_BACKOFF: Retry = Retry {
    schedule: Schedule::Exponential { base: MIN_OFFLINE_WAIT, factor: 2, cap: MAX_OFFLINE_WAIT },
    jitter: Jitter::Add(0.1),
    // A network outage has no maximum number of attempts.
    max_attempts: NonZeroU32::MAX,
};

/// The stored facts about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHistory {
    /// The failed attempts since a person last decided, or since it was accepted.
    pub attempts: u32,
    /// All sends since then.
    pub sends: u32,
    /// When it was first sent, if ever.
    pub first_sent: Option<ClockMark>,
    /// The elapsed time at which the next attempt is due.
    pub due: Duration,
    /// Whether a person released it for one more send, whatever its age.
    pub is_released: bool,
    /// Its effect, as far as it is known.
    pub effect: Effect,
}

/// The next step for an entry, before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeSend {
    /// Mark it and send it.
    Send,
    /// Wait.
    Wait(Duration),
    /// Hold it for a person.
    Hold(HoldReason),
    /// Fail it: it was sent [`MAX_SENDS`] times.
    Fail,
}

/// Why an entry is held for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoldReason {
    /// The server may have forgotten the key.
    #[error(
        "it was sent before, longer ago than the server keeps keys: sending it again could repeat the effect. Check \
         whether it was done; then release or discard it"
    )]
    KeysForgotten,
    /// The clock was set back.
    #[error(
        "it was sent before, and the clock was set back since, so it is unknown whether the server still keeps its \
         key. Check whether it was done; then release or discard it"
    )]
    AgeUnknown,
}

impl HoldReason {
    /// Returns the code for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::KeysForgotten => "keys_forgotten",
            Self::AgeUnknown => "age_unknown",
        }
    }
}

/// The next step for an entry, after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSend {
    /// It was done: remove the entry.
    Remove,
    /// It never left: undo the attempt.
    Offline,
    /// The server is still working: ask again.
    Ask {
        /// The wait before that.
        wait: Duration,
    },
    /// The attempt failed: retry.
    Retry {
        /// The wait before that.
        wait: Duration,
        /// The effect, as far as it is now known.
        effect: Effect,
    },
    /// Mark it as failed.
    Fail {
        /// Why there is no retry; `None` if the server refused it.
        why: Option<GiveUpReason>,
        /// The effect, as far as it is known.
        effect: Effect,
    },
}

/// Decides before an attempt.
///
/// `keeps_keys_for` is how long the server keeps keys, and `try_time` is the longest time that a request is in
/// transit: a request that is sent now must arrive while the key is known.
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
    keeps_keys_for: Duration,
    try_time: Duration,
) -> BeforeSend {
    let to_wait = history.due.saturating_sub(watch.passed);
    if !to_wait.is_zero() {
        return BeforeSend::Wait(to_wait);
    }
    if let Some(first_sent) = history.first_sent.filter(|_| !history.is_released) {
        match watch.since(first_sent) {
            None => return BeforeSend::Hold(HoldReason::AgeUnknown),
            Some(age) if keeps_keys_for <= age.saturating_add(try_time) => {
                return BeforeSend::Hold(HoldReason::KeysForgotten);
            }
            Some(_) => {}
        }
    }
    if MAX_SENDS <= history.sends { BeforeSend::Fail } else { BeforeSend::Send }
}

/// Decides after an attempt.
///
/// `decided` is the result of the client's own rules ([`crate::decision::decide`]), `fault` is the reason if there was no
/// complete response, and `history` is what was known before the attempt.
pub fn after(history: &EntryHistory, decided: NextStep, fault: Option<NetworkFault>) -> AfterSend {
    if fault.is_some_and(|fault| !fault.may_have_arrived() && fault != NetworkFault::NotSent) {
        return AfterSend::Offline;
    }
    match decided {
        NextStep::Done => AfterSend::Remove,
        NextStep::Refused { effect, .. } => AfterSend::Fail { why: None, effect },
        NextStep::GiveUp { why, effect } => AfterSend::Fail { why: Some(why), effect },
        // A server that is working responds, so the attempt did not fail. It is asked less and less often, because it
        // may take long.
        NextStep::Retry { wait, attempts } if attempts.failed == history.attempts => AfterSend::Ask {
            wait: wait.max(offline_backoff(history.sends.saturating_sub(history.attempts), 0.0)),
        },
        NextStep::Retry { wait, attempts } => AfterSend::Retry { wait, effect: attempts.effect },
    }
}

/// Returns the wait after the `nth` failed connection in a row, from 0.
///
/// `dice` is uniform in [0, 1), so clients that lost the network together do not return together.
pub fn offline_backoff(nth: u32, dice: f64) -> Duration {
    OFFLINE_BACKOFF.wait(NonZeroU32::MIN.saturating_add(nth), dice, None)
}

#[cfg(test)]
mod tests;
