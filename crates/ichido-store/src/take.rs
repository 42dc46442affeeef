//! Taking a message out of the table that holds it, for an operator's step.

use ichido_core::lifecycle::State;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::placement::{Before, Moving};
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
