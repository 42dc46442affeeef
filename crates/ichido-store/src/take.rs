//! Taking a message out of the table that holds it, for an operator's step.

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, Why};
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use crate::columns::{Columns as _, number, small};
use crate::error::StoreError;
use crate::message::Note;
use crate::placement::{Before, Moves, Moving, Stamp, operate, standing_of};
use crate::rows::{
    final_state, held_state, history_of, letter_before, letter_state, priority, queue_name, scheduled_state,
};
use crate::statement::{Connection, Value, paired, shared};

/// Where a message was found.
pub(crate) enum Found {
    Here(Taken),
    /// On its way from one table to another.
    Moving,
    Nowhere,
}

/// A message taken out of its table.
pub(crate) struct Taken {
    pub(crate) state: State,
    pub(crate) moving: Moving,
    /// What it was as a letter, if it was one.
    pub(crate) before: Option<Before>,
    pub(crate) now: Timestamp,
}

/// What an event makes of a message that was taken out of its table.
pub(crate) enum Step {
    Refused(Why),
    /// It succeeded under an earlier claim, and `holder` has claimed it since: the success is stored as a proof.
    Proof {
        fence: Fence,
        holder: Fence,
    },
    /// It moves on.
    Moved {
        moves: Box<Moves>,
        next: State,
        moving: Moving,
    },
}

impl Taken {
    /// Applies an event to the message; the lifecycle decides.
    pub(crate) fn step(self, event: Event, note: &Note) -> Step {
        let Self { state, moving, before, now } = self;
        let states = match operate(state, standing_of(before.as_ref()), event, now) {
            Ok(states) => states,
            Err(why) => return Step::Refused(why),
        };
        let next = states.1.unwrap_or(states.0);
        if let (State::Sending { fence: holder, .. }, Event::LateSuccess { fence }) = (next, event) {
            return Step::Proof { fence, holder };
        }
        let mut moves = Moves::default();
        let stamp = Stamp { fence: None, claimed_at: None, node: None, now };
        moves.add(&moving, state, event, states, note, stamp);
        if let Some(before) = before {
            moves.keep(&moving, event, (state, next), before);
        }
        Step::Moved { moves: Box::new(moves), next, moving }
    }
}

/// Stores a late success of a message under the claim that it belongs to. Returns `false` if the holder's attempt has ended meanwhile,
/// which only PostgreSQL finds.
pub(crate) async fn add_proof(
    connection: &mut Connection<'_>,
    id: Uuid,
    (fence, holder): (Fence, Fence),
    note: &Note,
) -> Result<bool, StoreError> {
    let values = [
        id.into(),
        number(fence).into(),
        Value::Now,
        note.code.map(ErrorCode::as_str).into(),
        note.status.map(small).into(),
        note.result_digest.as_ref().map(|digest| &digest.as_bytes()[..]).into(),
        note.receipt.as_deref().into(),
        note.excerpt.as_deref().into(),
        note.actor.as_deref().into(),
        number(holder).into(),
    ];
    let row = connection.optional(paired!("proof_add"), &values).await?;
    Ok(!row.map(|row| row.truth("ended")).transpose()?.unwrap_or(false))
}

/// Takes the row that holds a message out of its table.
pub(crate) async fn take(connection: &mut Connection<'_>, id: Uuid) -> Result<Found, StoreError> {
    let Some(message) = connection.optional(paired!("step_message"), &[id.into(), Value::Now]).await? else {
        return Ok(Found::Nowhere);
    };
    let allowed = message.count("tries_allowed")?;
    let moving = Moving { id, queue: queue_name(message.text("queue")?)?, priority: priority(&message)? };
    let place = [id.into(), moving.queue.as_str().into(), message.small("priority")?.into()];
    let mut before = None;
    let state = if let Some(row) = connection.optional(shared!("step_letter"), &[id.into()]).await? {
        before = Some(letter_before(&row)?);
        letter_state(&row, allowed)?
    } else if let Some(row) = connection.optional(shared!("step_scheduled"), &[id.into()]).await? {
        scheduled_state(&row, allowed)?
    } else if let Some(row) = connection.optional(shared!("step_ready"), &place).await? {
        State::Queued { due: message.moment("due")?, history: history_of(&row, allowed)? }
    } else {
        match elsewhere(connection, id, allowed).await? {
            Some(state) => state,
            None => return Ok(Found::Moving),
        }
    };
    Ok(Found::Here(Taken { state, moving, before, now: message.moment("now")? }))
}

/// In no table that can be claimed or decided: finished, or in a worker's hands.
async fn elsewhere(
    connection: &mut Connection<'_>,
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
