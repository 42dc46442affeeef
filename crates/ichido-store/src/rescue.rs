//! The rescue: what becomes of messages whose worker is gone.
//!
//! Guarantee: each message that a lapsed lease still holds takes exactly one step, decided by the lifecycle; what was
//! settled a moment before takes none.
//!
//! # A worker that dies
//!
//! Where doing it twice would hurt and the destination honours no keys, a claim says `marks`, and the beginning of each call is
//! marked. Then the rescue can tell what had not begun, and goes back to be sent, from what may have been done, and is parked. The
//! call of a message that a worker died with before is always marked: only a call that has begun is charged with a death.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//!
//! use ichido_core::key::IdempotencyKey;
//! use ichido_core::retry::Guarantee;
//! use ichido_store::Store;
//! use ichido_store::message::{ClaimTerms, LetterState, NewMessage, QueueName};
//! use ichido_store::rescue::RescueTerms;
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let queue = QueueName::parse("orders").ok_or("a name")?;
//! for key in ["first", "second"] {
//!     let key = IdempotencyKey::parse(key)?;
//!     store.messages().enqueue(NewMessage::new(queue.clone(), "ann", key, b"one apple".to_vec())).await?;
//! }
//!
//! let lease = Duration::from_secs(30);
//! let (guarantee, travels_for) = (Guarantee::Nothing, Duration::from_mins(10));
//! let terms = ClaimTerms { node: Uuid::now_v7(), lease, marks: true, guarantee, travels_for };
//! let works = store.claims().take(&queue, NonZeroU32::new(10).ok_or("some")?, terms).await?;
//! // Right before the call: `false` means that the claim was lost meanwhile, and the call must not be made.
//! assert_eq!(store.claims().begin(&[(works[0].id, works[0].fence)]).await?, [true]);
//!
//! // The worker dies. When its lease is over, any node rescues what it held, one claim at a time.
//! # store.skew_by(lease + Duration::from_secs(1));
//! let of_queue =
//!     |_queue: &QueueName| RescueTerms { guarantee, wait: Duration::from_secs(2), travels_for };
//! let mut rescued = 0;
//! while let Some(count) = store.claims().rescue(of_queue).await? {
//!     rescued += count;
//! }
//! assert_eq!(rescued, 2);
//! let parked = store.dead_letters().list(LetterState::Parked, Some(&queue), None, 100).await?;
//! assert_eq!((parked.len(), parked[0].message.id), (1, works[0].id));
//! # Ok(())
//! # }
//! ```
// SPEC D12, E1, E2.

use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Begun, Event, History, State};
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use crate::message::{Note, QueueName};
use crate::placement::{EventStamp, MovedMessage, RowChanges};

/// A lease whose time is over, with what it still holds.
#[derive(Debug)]
pub(crate) struct Lapsed {
    pub(crate) fence: Fence,
    pub(crate) queue: QueueName,
    pub(crate) node: Uuid,
    pub(crate) claimed_at: Timestamp,
    pub(crate) now: Timestamp,
    /// Whether the lease held one message only.
    pub(crate) alone: bool,
    /// What its holder believed of repetitions.
    pub(crate) guarantee: Guarantee,
    /// How long its holder's calls may be travelling.
    pub(crate) travels_for: Duration,
    pub(crate) left: Vec<LapsedMessage>,
}

#[derive(Debug)]
pub(crate) struct LapsedMessage {
    pub(crate) id: Uuid,
    pub(crate) priority: u8,
    pub(crate) begun: Begun,
    /// Whether an earlier try is known to have done it.
    pub(crate) proven: bool,
    pub(crate) history: History,
}

/// What a queue's owner says about messages whose worker is gone. Where that worker was told otherwise, the more careful of the two
/// holds: the call was made under what it believed.
#[derive(Clone, Copy, Debug)]
pub struct RescueTerms {
    /// What the queue's destination promises about repetitions.
    pub guarantee: Guarantee,
    /// How long a message that is charged with a death waits before the next try.
    pub wait: Duration,
    /// How long after its claim a call may still be travelling: the hard deadline plus what the destination takes to settle.
    pub travels_for: Duration,
}

/// What a rescue came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// The queue of the claim.
    pub queue: QueueName,
    /// How many messages it still held.
    pub count: usize,
    /// Those of them that are dead now.
    pub dead: Vec<Uuid>,
    /// Those of them that are parked now.
    pub parked: Vec<Uuid>,
}

/// Claims of a queue that have lapsed, and that nobody rescues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The queue.
    pub queue: QueueName,
    /// How many claims.
    pub claims: u64,
    /// How many messages were claimed under them; some may have ended before their worker did.
    pub messages_max: u64,
    /// When the first of them lapsed.
    pub since: Timestamp,
}

/// Where the ends of lapsed leases lie, in microseconds, first and last: up to now, and beyond the end of any lease that is taken
/// now. [`lease_has_lapsed`](ichido_core::clock::lease_has_lapsed) as two ranges, since an index is searched by one at a time.
pub(crate) fn lapsed_ends(now: Timestamp, longest: Duration) -> [(i64, i64); 2] {
    let beyond = now.plus(longest).as_micros().saturating_add(1);
    [(i64::MIN, now.as_micros()), (beyond, i64::MAX)]
}

/// The most queues that are told of at once.
pub(crate) const UNSERVED_MAX: i64 = 100;

/// The steps of all that a lapsed lease still holds.
pub(crate) fn judge(lapsed: &Lapsed, terms: &RescueTerms) -> RowChanges {
    let mut changes = RowChanges::default();
    let guarantee = terms.guarantee.weaker(lapsed.guarantee);
    let travels_for = terms.travels_for.max(lapsed.travels_for);
    for message in &lapsed.left {
        let history = message.history;
        let state = State::Sending {
            fence: lapsed.fence,
            claimed_at: lapsed.claimed_at,
            begun: message.begun,
            proven: message.proven,
            history,
        };
        let event = Event::WorkerDied {
            fence: lapsed.fence,
            alone: lapsed.alone,
            safety: history.safety(guarantee, lapsed.now),
            due: lapsed.now.plus(terms.wait),
            travels_until: lapsed.now.plus(travels_for),
        };
        let moving = MovedMessage { id: message.id, queue: lapsed.queue.clone(), priority: message.priority };
        let stamp = EventStamp {
            fence: Some(lapsed.fence),
            claimed_at: Some(lapsed.claimed_at),
            node: Some(lapsed.node),
            now: lapsed.now,
        };
        // A message in a worker's hands can always lose its worker, so there is nothing to refuse.
        if let Ok(states) = state.advance(event, lapsed.now) {
            let last = states.1.unwrap_or(states.0);
            changes.add(&moving, state, event, states, &death_note(message.begun, last), stamp);
        }
    }
    changes
}

/// Why a message is where it is after the death of its worker, for the audit and for the person who reads the dead letter.
fn death_note(begun: Begun, last: State) -> Note {
    let deaths = match last {
        // An earlier attempt did it.
        State::Sent => return Note::default(),
        State::Parked { history } | State::Dead { history, .. } => history.deaths,
        State::Queued { .. } | State::Failed { .. } | State::Sending { .. } | State::Cancelled { .. } => 0,
    };
    let excerpt = match begun {
        _ if History::DEATHS_MAX <= deaths => {
            format!("{deaths} workers died while they called the destination with this message")
        }
        Begun::NotYet => "the worker died before it called the destination".to_owned(),
        Begun::Yes => "the worker died while it called the destination".to_owned(),
        Begun::NotTracked => "the worker died; it may have called the destination".to_owned(),
    };
    Note { code: Some(ErrorCode::WorkerDied), excerpt: Some(excerpt), ..Note::default() }
}

#[cfg(test)]
mod tests {
    use ichido_core::clock::lease_has_lapsed;

    use super::*;

    #[test]
    fn the_ranges_of_lapsed_leases_are_the_cores_rule() {
        let (now, longest) = (Timestamp::from_secs(1_800_000_000), Duration::from_hours(24));
        let last = now.plus(longest).as_micros();
        for end in [i64::MIN, 0, now.as_micros(), now.as_micros() + 1, last, last + 1, i64::MAX] {
            let found = lapsed_ends(now, longest).iter().any(|(from, to)| (*from..=*to).contains(&end));
            assert_eq!(found, lease_has_lapsed(Timestamp::from_micros(end), now, longest), "{end}");
        }
    }
}
