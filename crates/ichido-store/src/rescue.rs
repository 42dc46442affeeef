//! Rescue of messages whose worker is gone.
//!
//! Guarantee: each message that a lapsed lease still holds takes exactly one step, decided by the lifecycle. A message that was
//! settled just before takes none.
//!
//! # Rescue the messages of a dead worker
//!
//! If repeating a call would do harm and the destination does not deduplicate by key, a claim sets `marks`, and the start of
//! each call is marked. The rescue then returns messages whose call had not started to the queue, and parks those that may have
//! been done. For a message that a worker died with before, the call is always marked: only a started call is charged with a
//! death.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//!
//! use ichido_core::key::IdempotencyKey;
//! use ichido_core::retry::Guarantee;
//! use ichido_store::Store;
//! use ichido_store::message::{ClaimOptions, DeadLetterState, NewMessage, QueueName};
//! use ichido_store::rescue::RescueOptions;
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
//! let (guarantee, max_time_in_flight) = (Guarantee::None, Duration::from_mins(10));
//! let terms = ClaimOptions { node: Uuid::now_v7(), lease, start_marks: true, guarantee, max_time_in_flight };
//! let works = store.claims().claim(&queue, NonZeroU32::new(10).ok_or("some")?, terms).await?;
//! // Right before the call: `false` means that the claim was lost, and the call must not be made.
//! assert_eq!(store.claims().mark_started(&[(works[0].id, works[0].fence)]).await?, [true]);
//!
//! // The worker dies. When its lease has expired, any node rescues its messages, one claim at a time. The leases of a node that
//! // sent heartbeats and stopped expire when it is declared dead: see `Nodes::declare_dead`.
//! # store.advance_clock(lease + Duration::from_secs(1));
//! let of_queue =
//!     |_queue: &QueueName| RescueOptions { guarantee, wait: Duration::from_secs(2), max_time_in_flight };
//! let mut rescued = 0;
//! while let Some(count) = store.claims().rescue(of_queue).await? {
//!     rescued += count;
//! }
//! assert_eq!(rescued, 2);
//! let parked = store.dead_letters().list(DeadLetterState::Parked, Some(&queue), None, 100).await?;
//! assert_eq!((parked.len(), parked[0].message.id), (1, works[0].id));
//! # Ok(())
//! # }
//! ```
// SPEC D12, E1, E2.

use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, History, StartMark, State};
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use crate::message::{Note, QueueName};
use crate::placement::{EventStamp, MovedMessage, RowChanges};

/// A lapsed lease with the messages it still holds.
#[derive(Debug)]
pub(crate) struct LapsedLease {
    pub(crate) fence: Fence,
    pub(crate) queue: QueueName,
    pub(crate) node: Uuid,
    pub(crate) claimed_at: Timestamp,
    pub(crate) now: Timestamp,
    /// Whether the lease held only one message.
    pub(crate) alone: bool,
    /// The guarantee, as its holder was configured.
    pub(crate) guarantee: Guarantee,
    /// How long its holder's calls may be in flight.
    pub(crate) max_time_in_flight: Duration,
    pub(crate) left: Vec<LapsedMessage>,
}

#[derive(Debug)]
pub(crate) struct LapsedMessage {
    pub(crate) id: Uuid,
    pub(crate) priority: u8,
    pub(crate) start_mark: StartMark,
    /// Whether an earlier attempt is known to have had its effect.
    pub(crate) proven: bool,
    pub(crate) history: History,
}

/// How to rescue a queue's messages. If the dead worker was configured differently, the more careful setting applies, because
/// the call was made under its settings.
#[derive(Clone, Copy, Debug)]
pub struct RescueOptions {
    /// The destination's guarantee about repeated calls.
    pub guarantee: Guarantee,
    /// The backoff of a message that is charged with a death.
    pub wait: Duration,
    /// How long after its claim a call may be in flight. It is the hard deadline plus the time that the destination takes to
    /// settle.
    pub max_time_in_flight: Duration,
}

/// The outcome of a rescue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// The queue of the claim.
    pub queue: QueueName,
    /// The number of messages it still held.
    pub count: usize,
    /// The messages that are dead now.
    pub dead: Vec<Uuid>,
    /// The messages that are parked now.
    pub parked: Vec<Uuid>,
}

/// Lapsed claims of a queue that nobody rescues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedQueue {
    /// The queue.
    pub queue: QueueName,
    /// The number of claims.
    pub claims: u64,
    /// The number of messages claimed under them; some may have ended before their worker did.
    pub max_messages: u64,
    /// When the first of them lapsed.
    pub since: Timestamp,
}

/// Returns the ranges in which lapsed leases end, in microseconds, both ends included. They are up to now, and beyond the end
/// of any lease taken now.
///
/// This is [`lease_has_lapsed`](ichido_core::clock::lease_has_lapsed) as two ranges, because an index is searched by one range
/// at a time.
pub(crate) fn lapsed_ends(now: Timestamp, longest: Duration) -> [(i64, i64); 2] {
    let beyond = now.plus(longest).as_micros().saturating_add(1);
    [(i64::MIN, now.as_micros()), (beyond, i64::MAX)]
}

/// The maximum number of queues listed at once.
pub(crate) const MAX_UNSERVED: i64 = 100;

/// Plans the steps of all messages that a lapsed lease still holds.
pub(crate) fn judge(lapsed: &LapsedLease, terms: &RescueOptions) -> RowChanges {
    let mut changes = RowChanges::default();
    let guarantee = terms.guarantee.weaker(lapsed.guarantee);
    let max_time_in_flight = terms.max_time_in_flight.max(lapsed.max_time_in_flight);
    for message in &lapsed.left {
        let history = message.history;
        let state = State::Sending {
            fence: lapsed.fence,
            claimed_at: lapsed.claimed_at,
            start_mark: message.start_mark,
            proven: message.proven,
            history,
        };
        let event = Event::WorkerDied {
            fence: lapsed.fence,
            alone: lapsed.alone,
            safety: history.safety(guarantee, lapsed.now),
            due: lapsed.now.plus(terms.wait),
            in_flight_until: lapsed.now.plus(max_time_in_flight),
        };
        let moving = MovedMessage { id: message.id, queue: lapsed.queue.clone(), priority: message.priority };
        let stamp = EventStamp {
            fence: Some(lapsed.fence),
            claimed_at: Some(lapsed.claimed_at),
            node: Some(lapsed.node),
            now: lapsed.now,
        };
        // A message in flight can always lose its worker, so nothing is refused.
        if let Ok(states) = state.advance(event, lapsed.now) {
            let last = states.1.unwrap_or(states.0);
            changes.add(&moving, state, event, states, &death_note(message.start_mark, last), stamp);
        }
    }
    changes
}

/// Explains a message's state after its worker's death, in the audit trail and in the dead letter.
fn death_note(start_mark: StartMark, last: State) -> Note {
    let deaths = match last {
        // An earlier attempt had its effect.
        State::Sent => return Note::default(),
        State::Parked { history } | State::Dead { history, .. } => history.deaths,
        State::Queued { .. } | State::Failed { .. } | State::Sending { .. } | State::Cancelled { .. } => 0,
    };
    let excerpt = match start_mark {
        _ if History::MAX_DEATHS <= deaths => {
            format!("{deaths} workers died while calling the destination with this message")
        }
        StartMark::NotYet => "the worker died before calling the destination".to_owned(),
        StartMark::Written => "the worker died while calling the destination".to_owned(),
        StartMark::NotTracked => "the worker died; it may have called the destination".to_owned(),
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
