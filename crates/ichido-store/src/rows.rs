//! Reads rows of messages, the same on both databases.

mod claimed;

use std::num::NonZeroU32;

use ichido_core::audit::entry::EntryId;
use ichido_core::clock::HEARTBEAT_DEADLINE;
use ichido_core::key::{IdempotencyKey, KeySyntax};
use ichido_core::lifecycle::{Doubt, History, StartMark, State, StateName};
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use uuid::Uuid;

use crate::claim_tracker::{ClaimEnd, ClaimEnds};
use crate::columns::{Columns, fence_from};
use crate::dead_letter::{DeadLetterFilter, DeadLetterRow, Disposition, LetterClass, LetterTraits};
use crate::error::StoreError;
use crate::message::{
    DeadLetterState, MessageRow, MessageSchedule, QueueName, ReceiverResponse, StateCount, Transition,
    TransitionPage,
};
use crate::node::{BulkLease, MessageHolder, NodeRow, QueueParallelism, QueuePause, SharedPace};
use crate::placement::PriorLetter;
use crate::rescue::{LapsedMessage, UnservedQueue};

pub(crate) use self::claimed::work;

/// Reads the attempts so far from the columns that every message row has.
pub(crate) fn history_of(row: &impl Columns, max_attempts: i32) -> Result<History, StoreError> {
    Ok(History {
        attempts: row.positive("attempts")?,
        max_attempts: allowed(max_attempts)?,
        deaths: row.positive("deaths")?,
        suspect: row.truth("suspect")?,
        doubt: doubt(row.timestamp_or_none("doubt_since")?, row.timestamp_or_none("in_flight_until")?)?,
        last_fence: row.number_or_none("last_fence")?.map(fence_from).transpose()?,
    })
}

/// Reads a message that a lapsed lease still holds.
pub(crate) fn lapsed_message(row: &impl Columns, marks: bool) -> Result<LapsedMessage, StoreError> {
    let start_mark = match (marks, row.truth("started")?) {
        (false, _) => StartMark::NotTracked,
        (true, true) => StartMark::Written,
        (true, false) => StartMark::NotYet,
    };
    let before = history_of(row, row.count("max_attempts")?)?;
    Ok(LapsedMessage {
        id: row.uuid("id")?,
        priority: priority(row)?,
        start_mark,
        proven: row.truth("proven")?,
        history: History { attempts: before.attempts.saturating_add(1), ..before },
    })
}

/// Reads the lapsed claims of one queue.
pub(crate) fn unserved(row: &impl Columns) -> Result<UnservedQueue, StoreError> {
    Ok(UnservedQueue {
        queue: queue_name(row.text("queue")?)?,
        claims: row.number("claims")?.unsigned_abs(),
        max_messages: row.number("messages")?.unsigned_abs(),
        since: row.timestamp("since")?,
    })
}

/// Reads the state of a dead or parked message.
pub(crate) fn letter_state(row: &impl Columns, max_attempts: i32) -> Result<State, StoreError> {
    let history = history_of(row, max_attempts)?;
    let effect = effect(row)?;
    Ok(match row.text("state")? {
        "parked" => State::Parked { history },
        _ => State::Dead { effect, history },
    })
}

/// Reads what an event may keep of a dead letter.
pub(crate) fn letter_before(row: &impl Columns) -> Result<PriorLetter, StoreError> {
    Ok(PriorLetter {
        since: row.timestamp("since")?,
        disposition: disposition(row)?,
        code: row.text_or_none("code")?,
        error: row.text_or_none("error")?,
        group: row.uuid_or_none("group_id")?,
    })
}

/// Reads a dead letter without its request.
pub(crate) fn letter_row(row: &impl Columns) -> Result<DeadLetterRow, StoreError> {
    Ok(DeadLetterRow {
        id: row.uuid("message_id")?,
        queue: queue_name(row.text("queue")?)?,
        identity: row.text("identity")?.to_owned(),
        key: key(row, "key")?,
        state: match row.text("state")? {
            "parked" => DeadLetterState::Parked,
            _ => DeadLetterState::Dead,
        },
        disposition: disposition(row)?,
        effect: effect(row)?,
        code: row.text_or_none("code")?,
        error: row.text_or_none("error")?,
        group: row.uuid_or_none("group_id")?,
        since: row.timestamp("since")?,
        asked_at: row.timestamp_or_none("asked_at")?,
        created_at: row.timestamp("created_at")?,
        history: history_of(row, row.count("max_attempts")?)?,
        priority: priority(row)?,
        replacement_of: row.uuid_or_none("replacement_of")?,
        item: row.text_or_none("item")?,
        request_bytes: row.number("request_bytes")?.unsigned_abs(),
    })
}

/// Reads letters that a filter of this state and disposition counted.
pub(crate) fn letter_class(row: &impl Columns, filter: &DeadLetterFilter) -> Result<LetterClass, StoreError> {
    let traits = LetterTraits {
        queue: queue_name(row.text("queue")?)?,
        state: filter.state,
        disposition: filter.disposition,
        effect: effect(row)?,
        doubt: doubt(row.timestamp_or_none("doubt_since")?, row.timestamp_or_none("in_flight_until")?)?,
    };
    Ok(LetterClass { traits, code: row.text_or_none("code")?, count: row.number("count")?.unsigned_abs() })
}

fn disposition(row: &impl Columns) -> Result<Disposition, StoreError> {
    Disposition::parse(row.text("closed")?).ok_or_else(|| corrupt("unknown state of a dead letter"))
}

/// Reads the state of a message and its number of attempts.
pub(crate) fn stage_row(row: &impl Columns) -> Result<(Uuid, StateName, u32), StoreError> {
    Ok((row.uuid("id")?, stage(row, "status")?, row.positive("attempts")?))
}

/// Reads the state of a scheduled message.
pub(crate) fn scheduled_state(row: &impl Columns, max_attempts: i32) -> Result<State, StoreError> {
    let history = history_of(row, max_attempts)?;
    let due = row.timestamp("due")?;
    Ok(match row.text("state")? {
        "failed" => State::Failed { due, history },
        _ => State::Queued { due, history },
    })
}

/// Reads the state of a message that is only in history. Returns `None` if it is in flight.
pub(crate) fn final_state(row: &impl Columns, max_attempts: i32) -> Result<Option<State>, StoreError> {
    Ok(match row.text("to_state")? {
        "sent" => Some(State::Sent),
        "cancelled" => {
            Some(State::Cancelled { effect: effect(row)?, history: history_of(row, max_attempts)? })
        }
        _ => None,
    })
}

/// Reads the state of a message in flight, as far as an operator needs it.
pub(crate) fn held_state(row: &impl Columns, max_attempts: i32) -> Result<State, StoreError> {
    Ok(State::Sending {
        fence: row.fence()?,
        claimed_at: row.timestamp("claimed_at")?,
        start_mark: StartMark::NotTracked,
        proven: false,
        // The history is not needed: no operator's event is allowed in this state.
        history: History::new(allowed(max_attempts)?),
    })
}

fn doubt(since: Option<Timestamp>, in_flight_until: Option<Timestamp>) -> Result<Option<Doubt>, StoreError> {
    match (since, in_flight_until) {
        (Some(since), Some(in_flight_until)) => Ok(Some(Doubt { since, in_flight_until })),
        (None, None) => Ok(None),
        _ => Err(corrupt("a doubt has only one of its two timestamps")),
    }
}

fn allowed(attempts: i32) -> Result<NonZeroU32, StoreError> {
    u32::try_from(attempts).ok().and_then(NonZeroU32::new).ok_or_else(|| corrupt("no attempt is allowed"))
}

/// Reads how messages ended under their claims, and which are proven to be done.
pub(crate) fn ends<C: Columns>(rows: &[C]) -> Result<ClaimEnds, StoreError> {
    let mut ends = ClaimEnds::default();
    for row in rows {
        let id = row.uuid("message_id")?;
        if row.truth("proof")? {
            ends.proven.insert(id);
        } else {
            let end = ClaimEnd { kind: row.text("kind")?.to_owned(), to: row.text("to_state")?.to_owned() };
            ends.ended.insert((id, row.fence()?), end);
        }
    }
    Ok(ends)
}

/// Reads a message from a row of the view.
pub(crate) fn message_row(row: &impl Columns) -> Result<MessageRow, StoreError> {
    Ok(MessageRow {
        id: row.uuid("id")?,
        queue: row.text("queue")?.to_owned(),
        identity: row.text("identity")?.to_owned(),
        key: key(row, "idempotency_key")?,
        content_type: row.text("content_type")?.to_owned(),
        request: row.bytes("request")?.to_vec(),
        request_digest: row.digest("request_digest")?,
        status: stage(row, "status")?,
        attempts: row.positive("attempts")?,
        max_attempts: row.positive("max_attempts")?,
        next_attempt: row.timestamp_or_none("next_attempt")?,
        last_error: row.text_or_none("last_error")?,
        last_error_text: row.text_or_none("last_error_text")?,
        effect: effect(row)?,
        priority: priority(row)?,
        hops: row.text_or_none("hops")?,
        trace: row.text_or_none("trace")?,
        trace_id: row.text_or_none("trace_id")?,
        item: row.text_or_none("item")?,
        replacement_of: row.uuid_or_none("replacement_of")?,
        created_at: row.timestamp("created_at")?,
        updated_at: row.timestamp("updated_at")?,
    })
}

/// Returns the transitions that a message's events record, in order, and its current claim.
pub(crate) fn transitions<C: Columns>(rows: &[C], lease: Option<&C>) -> Result<Vec<Transition>, StoreError> {
    let mut transitions: Vec<Transition> = Vec::with_capacity(rows.len() * 2 + 1);
    for row in rows {
        let event = transition(row)?;
        // An attempt is one row: its first transition, the claim, comes from `claimed_at`.
        if let (Some(at), 0) = (row.timestamp_or_none("claimed_at")?, row.small("step")?) {
            transitions.push(claim(at, event.fence, event.node, transitions.last()));
        }
        transitions.push(event);
    }
    if let Some(row) = lease {
        let fence = u64::try_from(row.number("fence")?).ok();
        if transitions.iter().all(|transition| transition.fence != fence) {
            let node = Some(row.uuid("node")?);
            transitions.push(claim(row.timestamp("claimed_at")?, fence, node, transitions.last()));
        }
    }
    Ok(transitions)
}

/// Returns the transitions of the newest `limit` events. One event more says that there are earlier ones.
pub(crate) fn transition_page<C: Columns>(
    rows: &[C],
    lease: Option<&C>,
    limit: usize,
) -> Result<TransitionPage, StoreError> {
    let Some(first) = rows.len().checked_sub(limit).filter(|left_out| 0 < *left_out) else {
        return Ok(TransitionPage { transitions: transitions(rows, lease)?, earlier: None, basis: None });
    };
    let before = transitions(rows.get(..first).unwrap_or_default(), None)?.len();
    let mut page = transitions(rows, lease)?;
    page.drain(..before);
    let earlier = rows.get(first).map(|row| {
        let message = row.uuid("message_id")?;
        Ok::<_, StoreError>(EntryId { message, fence: row.number("fence")?, step: row.small("step")? })
    });
    Ok(TransitionPage { transitions: page, earlier: earlier.transpose()?, basis: None })
}

/// Returns the claim that starts an attempt, after the previous transition.
fn claim(at: Timestamp, fence: Option<u64>, node: Option<Uuid>, before: Option<&Transition>) -> Transition {
    Transition {
        at,
        from: StateName::Queued,
        to: StateName::Sending,
        kind: "claimed".to_owned(),
        fence,
        attempts: before.map_or(0, |before| before.attempts).saturating_add(1),
        effect: before.map_or(Effect::NotDone, |before| before.effect),
        code: None,
        status: None,
        result_digest: None,
        receipt: None,
        excerpt: None,
        response: None,
        node,
        actor: None,
    }
}

pub(crate) fn transition(row: &impl Columns) -> Result<Transition, StoreError> {
    Ok(Transition {
        at: row.timestamp("at")?,
        from: stage(row, "from_state")?,
        to: stage(row, "to_state")?,
        kind: row.text("kind")?.to_owned(),
        fence: u64::try_from(row.number("fence")?).ok(),
        attempts: row.positive("attempts")?,
        effect: effect(row)?,
        code: row.text_or_none("code")?,
        status: row.small_or_none("status")?.and_then(|status| u16::try_from(status).ok()),
        result_digest: row.digest_or_none("result_digest")?,
        receipt: row.text_or_none("receipt")?,
        excerpt: row.text_or_none("excerpt")?,
        response: response(row)?,
        node: row.uuid_or_none("node")?,
        actor: row.text_or_none("actor")?,
    })
}

/// Reads the receiver's response, if the event has one.
fn response(row: &impl Columns) -> Result<Option<ReceiverResponse>, StoreError> {
    let Some(content_type) = row.text_or_none("response_type")? else { return Ok(None) };
    let bytes = row.count("response_bytes")?;
    Ok(Some(ReceiverResponse {
        content_type,
        bytes: usize::try_from(bytes.unsigned_abs()).unwrap_or(usize::MAX),
        is_whole: 0 <= bytes,
        body: row.bytes_or_none("response")?.map(<[u8]>::to_vec),
    }))
}

/// Reads the number of messages of a queue in a state.
pub(crate) fn count(row: &impl Columns) -> Result<StateCount, StoreError> {
    Ok(StateCount {
        queue: row.text("queue")?.to_owned(),
        state: stage(row, "state")?,
        count: row.number("count")?,
    })
}

/// Reads a node.
pub(crate) fn node(row: &impl Columns) -> Result<NodeRow, StoreError> {
    Ok(NodeRow {
        id: row.uuid("id")?,
        name: row.text("name")?.to_owned(),
        started_at: row.timestamp("started_at")?,
        seen_at: row.timestamp("seen_at")?,
        gone: row.truth("gone")?,
    })
}

/// Reads the holder of a message.
pub(crate) fn holder(row: &impl Columns) -> Result<MessageHolder, StoreError> {
    Ok(MessageHolder {
        node: row.uuid("id")?,
        name: row.text_or_none("name")?,
        lease_until: row.timestamp("lease_until")?,
        alive_until: row.timestamp_or_none("seen_at")?.map(|seen_at| seen_at.plus(HEARTBEAT_DEADLINE)),
    })
}

/// Reads a destination's pace.
pub(crate) fn pace(row: &impl Columns) -> Result<SharedPace, StoreError> {
    Ok(SharedPace { version: row.number("version")?, bytes: row.bytes("pace")?.to_vec() })
}

pub(crate) fn bulk_leases(row: &impl Columns) -> Result<BulkLease, StoreError> {
    Ok(BulkLease::new(row.text("task")?, row.uuid("node")?))
}

pub(crate) fn pause(row: &impl Columns) -> Result<QueuePause, StoreError> {
    Ok(QueuePause {
        queue: row.text("name")?.to_owned(),
        paused: row.truth("paused")?,
        by: row.text_or_none("paused_by")?,
        since: row.timestamp("changed_at")?,
    })
}

pub(crate) fn parallelism(row: &impl Columns) -> Result<QueueParallelism, StoreError> {
    let count = u32::try_from(row.number("parallelism")?).ok().and_then(NonZeroU32::new);
    Ok(QueueParallelism {
        queue: row.text("queue")?.to_owned(),
        parallelism: count.unwrap_or(NonZeroU32::MIN),
        by: row.text_or_none("set_by")?,
        since: row.timestamp("set_at")?,
    })
}

/// Returns an id above every message enqueued before a time. A message that ended before it was enqueued before it, too.
pub(crate) fn last_id(moment: Timestamp) -> Uuid {
    /// An id stores its time in 48 bits.
    const MAX_MILLIS: u64 = (1 << 48) - 1;
    let millis = u64::try_from(moment.as_millis()).unwrap_or(0).min(MAX_MILLIS);
    uuid::Builder::from_unix_timestamp_millis(millis, &[0xff; 10]).into_uuid()
}

/// Parses the queue that a column names.
pub(crate) fn queue_name(name: &str) -> Result<QueueName, StoreError> {
    QueueName::parse(name).ok_or_else(|| corrupt("invalid queue name"))
}

/// Reads the priority and the time that a message was enqueued with.
pub(crate) fn message_schedule(row: &impl Columns) -> Result<MessageSchedule, StoreError> {
    Ok(MessageSchedule { priority: priority(row)?, run_at: row.timestamp_or_none("due")? })
}

/// Reads the column `priority`.
pub(crate) fn priority(row: &impl Columns) -> Result<u8, StoreError> {
    Ok(priority_of(row.small("priority")?))
}

fn priority_of(column: i16) -> u8 {
    u8::try_from(column).unwrap_or(u8::MAX)
}

fn key(row: &impl Columns, column: &str) -> Result<IdempotencyKey, StoreError> {
    key_of(row.text(column)?)
}

fn key_of(column: &str) -> Result<IdempotencyKey, StoreError> {
    let key = IdempotencyKey::parse_as(column, KeySyntax::AnyString);
    key.map_err(|error| corrupt(&error.to_string()))
}

fn stage(row: &impl Columns, column: &str) -> Result<StateName, StoreError> {
    StateName::parse(row.text(column)?).ok_or_else(|| corrupt("unknown state"))
}

fn effect(row: &impl Columns) -> Result<Effect, StoreError> {
    Effect::parse(row.text("effect")?).ok_or_else(|| corrupt("unknown effect"))
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "messages", detail: detail.to_owned() }
}
