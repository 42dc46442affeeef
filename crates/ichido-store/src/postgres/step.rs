//! Operators' steps and the rescue, on PostgreSQL: lock, ask the lifecycle, write.

use std::num::NonZeroU32;

use ichido_core::lifecycle::{Begun, Event, History, State};
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use super::ledger::{fence, number};
use super::moment::Moment;
use super::work::{count, history_of, status};
use super::{Postgres, lock};
use crate::error::StoreError;
use crate::message::{Note, QueueName, Stepped};
use crate::placement::{Moves, Moving, Placed, Stamp, effect_from, effect_name, operate};
use crate::rescue::{Lapsed, LapsedMessage};

/// How often a message is looked for while it moves from one table to another.
const ROUNDS_MAX: usize = 3;

impl Postgres {
    /// Takes one message by one event, whatever table it is in.
    pub(crate) async fn step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<Stepped, StoreError> {
        for _ in 0..ROUNDS_MAX {
            let mut transaction = self.pool().begin().await?;
            let taken = match self.take(&mut transaction, id).await? {
                Found::Here(taken) => taken,
                Found::Moving => {
                    transaction.rollback().await?;
                    continue;
                }
                Found::Nowhere => return Ok(Stepped::NoSuchMessage),
            };
            let Taken { state, moving, since, now } = taken;
            let event = event(now);
            let states = match operate(state, event, now) {
                Ok(states) => states,
                Err(why) => {
                    // Awaited, not left to the drop: until then a claim would pass over the row that was taken.
                    transaction.rollback().await?;
                    return Ok(Stepped::Refused(why));
                }
            };
            let next = states.1.unwrap_or(states.0);
            let mut moves = Moves::default();
            let stamp = Stamp { fence: None, claimed_at: None, node: None, now };
            moves.add(&moving, state, event, states, note, stamp);
            if state.name() == next.name() {
                // Something was learnt of it; it did not die again.
                moves.letters.iter_mut().for_each(|letter| letter.place.since = since);
            }
            apply(&mut transaction, &moves, self.skew()).await?;
            transaction.commit().await?;
            // What comes back is older than the mark.
            lock(&self.marks).remove(&moving.queue);
            return Ok(Stepped::Now(next));
        }
        Err(StoreError::Busy)
    }

    /// Takes the row that holds a message out of its table.
    async fn take(&self, connection: &mut PgConnection, id: Uuid) -> Result<Found, StoreError> {
        let Some(message) = sqlx::query(include_str!("sql/step_message.sql"))
            .bind(id)
            .bind(self.skew())
            .fetch_optional(&mut *connection)
            .await?
        else {
            return Ok(Found::Nowhere);
        };
        let queue: &str = message.try_get("queue")?;
        let priority: i16 = message.try_get("priority")?;
        let allowed: i32 = message.try_get("tries_allowed")?;
        let now = message.try_get::<Moment, _>("now")?.0;
        let due = message.try_get::<Moment, _>("due")?.0;
        let moving =
            Moving { id, queue: queue_name(queue)?, priority: u8::try_from(priority).unwrap_or(u8::MAX) };
        let mut since = None;
        let state = if let Some(row) =
            sqlx::query(include_str!("sql/step_letter.sql")).bind(id).fetch_optional(&mut *connection).await?
        {
            since = Some(row.try_get::<Moment, _>("since")?.0);
            let history = history_of(&row, allowed)?;
            let effect = effect_from(row.try_get("effect")?).ok_or_else(|| corrupt("an unknown effect"))?;
            match row.try_get("state")? {
                "parked" => State::Parked { history },
                _ => State::Dead { effect, history },
            }
        } else if let Some(row) = sqlx::query(include_str!("sql/step_scheduled.sql"))
            .bind(id)
            .fetch_optional(&mut *connection)
            .await?
        {
            let history = history_of(&row, allowed)?;
            let due = row.try_get::<Moment, _>("due")?.0;
            match row.try_get("state")? {
                "failed" => State::Failed { due, history },
                _ => State::Queued { due, history },
            }
        } else if let Some(row) = sqlx::query(include_str!("sql/step_ready.sql"))
            .bind(id)
            .bind(queue)
            .bind(priority)
            .fetch_optional(&mut *connection)
            .await?
        {
            State::Queued { due, history: history_of(&row, allowed)? }
        } else {
            match self.elsewhere(connection, id, allowed).await? {
                Some(state) => state,
                None => return Ok(Found::Moving),
            }
        };
        Ok(Found::Here(Taken { state, moving, since, now }))
    }

    /// In no table that can be claimed or decided: finished, or in a worker's hands.
    async fn elsewhere(
        &self,
        connection: &mut PgConnection,
        id: Uuid,
        allowed: i32,
    ) -> Result<Option<State>, StoreError> {
        let last =
            sqlx::query(include_str!("sql/step_last.sql")).bind(id).fetch_optional(&mut *connection).await?;
        if let Some(row) = last {
            let effect = effect_from(row.try_get("effect")?).ok_or_else(|| corrupt("an unknown effect"))?;
            match row.try_get("to_state")? {
                "sent" => return Ok(Some(State::Sent)),
                "cancelled" => {
                    return Ok(Some(State::Cancelled { effect, history: history_of(&row, allowed)? }));
                }
                _ => (),
            }
        }
        let lease =
            sqlx::query(include_str!("sql/step_lease.sql")).bind(id).fetch_optional(connection).await?;
        let Some(row) = lease else { return Ok(None) };
        let allowed = u32::try_from(allowed).ok().and_then(NonZeroU32::new);
        Ok(Some(State::Sending {
            fence: fence(&row)?,
            claimed_at: row.try_get::<Moment, _>("claimed_at")?.0,
            begun: Begun::NotTracked,
            // What was tried is asked of nobody here: an operator's event leads nowhere from this state.
            history: History::new(allowed.ok_or_else(|| corrupt("no try is allowed"))?),
        }))
    }

    /// Rescues the messages of one lapsed lease; `None` when none has lapsed.
    ///
    /// `judge` turns what the lease still holds into steps; the driver only locks, reads and writes.
    pub(crate) async fn rescue(
        &self,
        judge: &(dyn Fn(&Lapsed) -> Moves + Send + Sync),
    ) -> Result<Option<usize>, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let Some(lease) = sqlx::query(include_str!("sql/rescue_lock.sql"))
            .bind(self.skew())
            .fetch_optional(&mut *transaction)
            .await?
        else {
            return Ok(None);
        };
        let fence = fence(&lease)?;
        let ids: Vec<Uuid> = lease.try_get("message_ids")?;
        let rows = sqlx::query(include_str!("sql/rescue_left.sql"))
            .bind(&ids)
            .bind(number(fence))
            .bind(lease.try_get::<bool, _>("suspect")?)
            .fetch_all(&mut *transaction)
            .await?;
        let marks: bool = lease.try_get("marks")?;
        let mut left = Vec::with_capacity(rows.len());
        for row in &rows {
            let begun = match (marks, row.try_get("begun")?) {
                (false, _) => Begun::NotTracked,
                (true, true) => Begun::Yes,
                (true, false) => Begun::NotYet,
            };
            let before = history_of(row, row.try_get("tries_allowed")?)?;
            left.push(LapsedMessage {
                id: row.try_get("id")?,
                priority: u8::try_from(row.try_get::<i16, _>("priority")?).unwrap_or(u8::MAX),
                begun,
                history: History { tries: before.tries.saturating_add(1), ..before },
            });
        }
        let lapsed = Lapsed {
            fence,
            queue: queue_name(lease.try_get("queue")?)?,
            node: lease.try_get("node")?,
            claimed_at: lease.try_get::<Moment, _>("claimed_at")?.0,
            now: lease.try_get::<Moment, _>("now")?.0,
            alone: ids.len() == 1,
            left,
        };
        let moves = judge(&lapsed);
        apply(&mut transaction, &moves, self.skew()).await?;
        sqlx::query(include_str!("sql/lease_over.sql"))
            .bind(vec![number(fence)])
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        lock(&self.held).remove(&fence);
        // What comes back is older than the mark.
        lock(&self.marks).remove(&lapsed.queue);
        Ok(Some(lapsed.left.len()))
    }
}

/// Where a message was found.
enum Found {
    Here(Taken),
    /// On its way from one table to another.
    Moving,
    Nowhere,
}

/// A message taken out of its table.
struct Taken {
    state: State,
    moving: Moving,
    /// When it died or was parked, if it has.
    since: Option<Timestamp>,
    now: Timestamp,
}

fn queue_name(name: &str) -> Result<QueueName, StoreError> {
    QueueName::parse(name).ok_or_else(|| corrupt("a queue's name is none"))
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "messages", detail: detail.to_owned() }
}

/// Writes what a set of steps comes to.
pub(super) async fn apply(connection: &mut PgConnection, moves: &Moves, skew: i64) -> Result<(), StoreError> {
    add_events(connection, moves, skew).await?;
    place_ready(connection, &moves.ready).await?;
    place_scheduled(connection, moves).await?;
    place_letters(connection, moves, skew).await?;
    let deltas: Vec<_> = moves.deltas.iter().filter(|(_, delta)| **delta != 0).collect();
    if !deltas.is_empty() {
        sqlx::query(include_str!("sql/count_add.sql"))
            .bind(deltas.iter().map(|((queue, _), _)| queue.as_str()).collect::<Vec<_>>())
            .bind(deltas.iter().map(|((_, state), _)| *state).collect::<Vec<_>>())
            .bind(deltas.iter().map(|(_, delta)| **delta).collect::<Vec<_>>())
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn add_events(connection: &mut PgConnection, moves: &Moves, skew: i64) -> Result<(), StoreError> {
    if moves.events.is_empty() {
        return Ok(());
    }
    let events = || moves.events.iter();
    let since = |doubt: Option<ichido_core::lifecycle::Doubt>| doubt.map(|doubt| Moment(doubt.since));
    let until = |doubt: Option<ichido_core::lifecycle::Doubt>| doubt.map(|doubt| Moment(doubt.travels_until));
    sqlx::query(include_str!("sql/event_add.sql"))
        .bind(events().map(|event| event.message_id).collect::<Vec<_>>())
        .bind(events().map(|event| event.fence.map(number)).collect::<Vec<_>>())
        .bind(events().map(|event| event.step).collect::<Vec<_>>())
        .bind(events().map(|event| event.claimed_at.map(Moment)).collect::<Vec<_>>())
        .bind(events().map(|event| event.from).collect::<Vec<_>>())
        .bind(events().map(|event| event.to).collect::<Vec<_>>())
        .bind(events().map(|event| event.kind).collect::<Vec<_>>())
        .bind(events().map(|event| count(event.tries)).collect::<Vec<_>>())
        .bind(events().map(|event| count(event.deaths)).collect::<Vec<_>>())
        .bind(events().map(|event| since(event.doubt)).collect::<Vec<_>>())
        .bind(events().map(|event| until(event.doubt)).collect::<Vec<_>>())
        .bind(events().map(|event| effect_name(event.effect)).collect::<Vec<_>>())
        .bind(events().map(|event| event.note.code.map(ErrorCode::as_str)).collect::<Vec<_>>())
        .bind(events().map(|event| status(event.note.status)).collect::<Vec<_>>())
        .bind(
            events()
                .map(|event| event.note.result_digest.map(|digest| digest.as_bytes().to_vec()))
                .collect::<Vec<_>>(),
        )
        .bind(events().map(|event| event.note.receipt.as_deref()).collect::<Vec<_>>())
        .bind(events().map(|event| event.note.excerpt.as_deref()).collect::<Vec<_>>())
        .bind(events().map(|event| event.node).collect::<Vec<_>>())
        .bind(events().map(|event| event.note.actor.as_deref()).collect::<Vec<_>>())
        .bind(skew)
        .execute(connection)
        .await?;
    Ok(())
}

/// The columns of what has been tried, in the order in which the statements take them.
struct Columns {
    suspect: Vec<bool>,
    tries: Vec<i32>,
    deaths: Vec<i32>,
    doubt_since: Vec<Option<Moment>>,
    travels_until: Vec<Option<Moment>>,
    last_fence: Vec<Option<i64>>,
}

impl Columns {
    fn of<P>(placed: &[Placed<P>]) -> Self {
        let histories = || placed.iter().map(|placed| placed.history);
        Self {
            suspect: histories().map(|history| history.suspect).collect(),
            tries: histories().map(|history| count(history.tries)).collect(),
            deaths: histories().map(|history| count(history.deaths)).collect(),
            doubt_since: histories().map(|history| history.doubt.map(|doubt| Moment(doubt.since))).collect(),
            travels_until: histories()
                .map(|history| history.doubt.map(|doubt| Moment(doubt.travels_until)))
                .collect(),
            last_fence: histories().map(|history| history.last_fence.map(number)).collect(),
        }
    }
}

fn ids<P>(placed: &[Placed<P>]) -> Vec<Uuid> {
    placed.iter().map(|placed| placed.moving.id).collect()
}

fn queues<P>(placed: &[Placed<P>]) -> Vec<&str> {
    placed.iter().map(|placed| placed.moving.queue.as_str()).collect()
}

fn priorities<P>(placed: &[Placed<P>]) -> Vec<i16> {
    placed.iter().map(|placed| i16::from(placed.moving.priority)).collect()
}

async fn place_ready(connection: &mut PgConnection, ready: &[Placed<()>]) -> Result<(), StoreError> {
    if ready.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(ready);
    sqlx::query(include_str!("sql/place_ready.sql"))
        .bind(ids(ready))
        .bind(queues(ready))
        .bind(priorities(ready))
        .bind(columns.suspect)
        .bind(columns.tries)
        .bind(columns.deaths)
        .bind(columns.doubt_since)
        .bind(columns.travels_until)
        .bind(columns.last_fence)
        .execute(connection)
        .await?;
    Ok(())
}

async fn place_scheduled(connection: &mut PgConnection, moves: &Moves) -> Result<(), StoreError> {
    let scheduled = &moves.scheduled;
    if scheduled.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(scheduled);
    sqlx::query(include_str!("sql/place_scheduled.sql"))
        .bind(ids(scheduled))
        .bind(queues(scheduled))
        .bind(priorities(scheduled))
        .bind(columns.suspect)
        .bind(columns.tries)
        .bind(columns.deaths)
        .bind(columns.doubt_since)
        .bind(columns.travels_until)
        .bind(columns.last_fence)
        .bind(scheduled.iter().map(|placed| placed.place.state).collect::<Vec<_>>())
        .bind(scheduled.iter().map(|placed| Moment(placed.place.due)).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

async fn place_letters(connection: &mut PgConnection, moves: &Moves, skew: i64) -> Result<(), StoreError> {
    let letters = &moves.letters;
    if letters.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(letters);
    sqlx::query(include_str!("sql/place_letter.sql"))
        .bind(ids(letters))
        .bind(queues(letters))
        .bind(columns.tries)
        .bind(columns.deaths)
        .bind(columns.doubt_since)
        .bind(columns.travels_until)
        .bind(columns.last_fence)
        .bind(letters.iter().map(|placed| placed.place.state).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| effect_name(placed.place.effect)).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.code).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.error.as_deref()).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.since.map(Moment)).collect::<Vec<_>>())
        .bind(skew)
        .execute(connection)
        .await?;
    Ok(())
}
