//! Takes a message out of the table that holds it, for an operator's step.

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, StepRefusal};
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use crate::columns::{Columns as _, number, small};
use crate::error::StoreError;
use crate::message::Note;
use crate::placement::{
    EventStamp, MovedMessage, PriorLetter, RowChanges, apply_operator_event, standing_of,
};
use crate::row_changes::{body_of, bytes_of, type_of};
use crate::rows::{
    final_state, held_state, history_of, letter_before, letter_state, priority, queue_name, scheduled_state,
};
use crate::statement::{DbConnection, SqlValue, paired, shared};

/// The outcome of taking a message.
pub(crate) enum TakeOutcome {
    Here(Box<TakenMessage>),
    /// It is moving from one table to another.
    Moving,
    Missing,
}

/// A message taken out of its table.
pub(crate) struct TakenMessage {
    pub(crate) state: State,
    pub(crate) moving: MovedMessage,
    /// Its state as a dead letter, if it was one.
    pub(crate) before: Option<PriorLetter>,
    pub(crate) now: Timestamp,
}

/// The outcome of an event on a message that was taken out of its table.
pub(crate) enum StepOutcome {
    Refused(StepRefusal),
    /// It succeeded under an earlier claim, and `holder` has claimed it since. The success is stored as a proof.
    Proof {
        fence: Fence,
        holder: Fence,
    },
    /// It moves to another state.
    Moved {
        changes: Box<RowChanges>,
        next: State,
        moving: MovedMessage,
    },
}

impl TakenMessage {
    /// Applies an event to the message; the lifecycle decides.
    pub(crate) fn step(self, event: Event, note: &Note) -> StepOutcome {
        let Self { state, moving, before, now } = self;
        let states = match apply_operator_event(state, standing_of(before.as_ref()), event, now) {
            Ok(states) => states,
            Err(why) => return StepOutcome::Refused(why),
        };
        let next = states.1.unwrap_or(states.0);
        if let (State::Sending { fence: holder, .. }, Event::LateSuccess { fence }) = (next, event) {
            return StepOutcome::Proof { fence, holder };
        }
        let mut changes = RowChanges::default();
        let stamp = EventStamp { fence: None, claimed_at: None, node: None, now };
        changes.add(&moving, state, event, states, note, stamp);
        if let Some(before) = before {
            changes.carry_over(&moving, event, (state, next), before);
        }
        StepOutcome::Moved { changes: Box::new(changes), next, moving }
    }
}

/// Stores a late success of a message under the claim that it belongs to. Returns `false` if the holder's attempt has ended meanwhile,
/// which only PostgreSQL finds.
pub(crate) async fn add_proof(
    connection: &mut DbConnection<'_>,
    id: Uuid,
    (fence, holder): (Fence, Fence),
    note: &Note,
) -> Result<bool, StoreError> {
    let values = [
        id.into(),
        number(fence).into(),
        SqlValue::Now,
        note.code.map(ErrorCode::as_str).into(),
        note.status.map(small).into(),
        note.result_digest.as_ref().map(|digest| &digest.as_bytes()[..]).into(),
        note.receipt.as_deref().into(),
        note.excerpt.as_deref().into(),
        note.actor.as_deref().into(),
        number(holder).into(),
        body_of(note).into(),
        type_of(note).into(),
        bytes_of(note).map(i64::from).into(),
    ];
    let row = connection.optional(paired!("proof_add"), &values).await?;
    Ok(!row.map(|row| row.truth("ended")).transpose()?.unwrap_or(false))
}

/// Takes the row that holds a message out of its table.
pub(crate) async fn take(connection: &mut DbConnection<'_>, id: Uuid) -> Result<TakeOutcome, StoreError> {
    let Some(message) = connection.optional(paired!("step_message"), &[id.into(), SqlValue::Now]).await?
    else {
        return Ok(TakeOutcome::Missing);
    };
    let allowed = message.count("max_attempts")?;
    let moving =
        MovedMessage { id, queue: queue_name(message.text("queue")?)?, priority: priority(&message)? };
    let place = [id.into(), moving.queue.as_str().into(), message.small("priority")?.into()];
    let mut before = None;
    let state = if let Some(row) = connection.optional(shared!("step_dead_letter"), &[id.into()]).await? {
        before = Some(letter_before(&row)?);
        letter_state(&row, allowed)?
    } else if let Some(row) = connection.optional(shared!("step_scheduled"), &[id.into()]).await? {
        scheduled_state(&row, allowed)?
    } else if let Some(row) = connection.optional(shared!("step_ready"), &place).await? {
        State::Queued { due: message.timestamp("due")?, history: history_of(&row, allowed)? }
    } else {
        match elsewhere(connection, id, allowed).await? {
            Some(state) => state,
            None => return Ok(TakeOutcome::Moving),
        }
    };
    let now = message.timestamp("now")?;
    Ok(TakeOutcome::Here(Box::new(TakenMessage { state, moving, before, now })))
}

/// Reads the state of a message that cannot be claimed or decided: finished, or in flight.
async fn elsewhere(
    connection: &mut DbConnection<'_>,
    id: Uuid,
    allowed: i32,
) -> Result<Option<State>, StoreError> {
    let last = connection.optional(shared!("step_last"), &[id.into()]).await?;
    if let Some(state) = last.map(|row| final_state(&row, allowed)).transpose()?.flatten() {
        return Ok(Some(state));
    }
    let lease = connection.optional(paired!("step_lease"), &[id.into()]).await?;
    lease.map(|row| held_state(&row, allowed)).transpose()
}
