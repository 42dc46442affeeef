//! Operators' steps and the rescue, on SQLite: read, ask the lifecycle, write, in one transaction of the single writer.

use ichido_core::lifecycle::{Event, State, Why};
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::work::lease_over;
use super::{Sqlite, Writing};
use crate::columns::{Columns, number, small};
use crate::error::StoreError;
use crate::hex;
use crate::json::{self, Row};
use crate::message::limits::LEASE_MAX;
use crate::message::{Note, QueueName, Stepped};
use crate::placement::{EventRow, Moves, Placed, Stamp, operate, standing_of};
use crate::promised;
use crate::rescue::{Lapsed, lapsed_ends};
use crate::rows::{lapsed_message, queue_name};
use crate::take::{Found, Taken, take};

impl Sqlite {
    /// Takes one message by one event, whatever table it is in; answers also which queue it can be claimed from now.
    pub(crate) async fn step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<(Stepped, Option<QueueName>), StoreError> {
        let mut writing = self.write().await?;
        let stepped = step(&mut writing, id, event, note).await?;
        writing.commit().await?;
        Ok(stepped)
    }

    /// Rescues the messages of one lapsed lease, of these queues if any are named; `None` when none has lapsed.
    ///
    /// `judge` turns what the lease still holds into steps; the driver only reads and writes.
    pub(crate) async fn rescue(
        &self,
        queues: Option<&[QueueName]>,
        judge: &(dyn Fn(&Lapsed) -> Moves + Send + Sync),
    ) -> Result<Option<usize>, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now;
        let Some(lease) = self.lapsed(&mut writing, queues).await? else {
            return Ok(None);
        };
        let fence = lease.fence()?;
        let rows = sqlx::query(include_str!("sql/rescue_left.sql"))
            .bind(number(fence))
            .bind(lease.truth("suspect")?)
            .fetch_all(writing.connection())
            .await?;
        let marks = lease.truth("marks")?;
        let lapsed = Lapsed {
            fence,
            queue: queue_name(lease.text("queue")?)?,
            node: lease.uuid("node")?,
            claimed_at: lease.moment("claimed_at")?,
            now,
            alone: lease.number("held")? == 1,
            guarantee: promised::guarantee(&lease)?,
            travels_for: promised::travels_for(&lease)?,
            left: rows.iter().map(|row| lapsed_message(row, marks)).collect::<Result<_, _>>()?,
        };
        apply(&mut writing, &judge(&lapsed)).await?;
        lease_over(&mut writing, std::iter::once(fence)).await?;
        writing.commit().await?;
        self.own.release(fence);
        self.held.forget(fence);
        Ok(Some(lapsed.left.len()))
    }

    /// One lapsed lease.
    async fn lapsed(
        &self,
        writing: &mut Writing,
        queues: Option<&[QueueName]>,
    ) -> Result<Option<SqliteRow>, StoreError> {
        let queues = queues.map(|queues| json::text(queues.iter().map(QueueName::as_str)));
        let alive = json::text(self.own.alive());
        for (from, to) in lapsed_ends(writing.now, LEASE_MAX) {
            let query = sqlx::query(include_str!("sql/rescue_find.sql"));
            let query = query.bind(from).bind(&alive).bind(queues.as_deref()).bind(to);
            if let Some(lease) = query.fetch_optional(writing.connection()).await? {
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }
}

/// Takes one message by one event. A step that is refused leaves everything as it was: other steps of the transaction stand.
pub(super) async fn step(
    writing: &mut Writing,
    id: Uuid,
    event: impl Fn(Timestamp) -> Event,
    note: &Note,
) -> Result<(Stepped, Option<QueueName>), StoreError> {
    sqlx::query("SAVEPOINT ichido_step").execute(writing.connection()).await?;
    let (mut stepped, mut queue) = (Stepped::NoSuchMessage, None);
    let mut kept = false;
    let taken = match take(&mut writing.either(), id).await? {
        Found::Here(taken) => Some(taken),
        Found::Nowhere => None,
        // Nothing moves under a write transaction, so this is not a moment between two tables.
        Found::Moving => {
            let detail = "a message is in no table".to_owned();
            return Err(StoreError::Corrupt { table: "messages", detail });
        }
    };
    if let Some(Taken { state, moving, before, now }) = taken {
        let event = event(now);
        stepped = match operate(state, standing_of(before.as_ref()), event, now) {
            Err(why) => Stepped::Refused(why),
            Ok((State::Sending { .. }, _)) => {
                keep_proof(writing, id, event, note).await?;
                kept = true;
                // The message is somebody else's, whose try goes on.
                Stepped::Refused(Why::StaleFence)
            }
            Ok(states) => {
                let next = states.1.unwrap_or(states.0);
                let mut moves = Moves::default();
                let stamp = Stamp { fence: None, claimed_at: None, node: None, now };
                moves.add(&moving, state, event, states, note, stamp);
                if let Some(before) = before {
                    moves.keep(&moving, event, (state, next), before);
                }
                apply(writing, &moves).await?;
                queue = (!moves.ready.is_empty()).then_some(moving.queue);
                Stepped::Now(next)
            }
        };
    }
    if !kept && !matches!(stepped, Stepped::Now(_)) {
        // The rows that were taken come back.
        sqlx::query("ROLLBACK TO ichido_step").execute(writing.connection()).await?;
    }
    sqlx::query("RELEASE ichido_step").execute(writing.connection()).await?;
    Ok((stepped, queue))
}

/// Keeps a late success of a message that somebody else holds.
async fn keep_proof(writing: &mut Writing, id: Uuid, event: Event, note: &Note) -> Result<(), StoreError> {
    let Event::LateSuccess { fence } = event else { return Ok(()) };
    let now = writing.now.as_micros();
    sqlx::query(include_str!("sql/proof_add.sql"))
        .bind(id)
        .bind(number(fence))
        .bind(now)
        .bind(note.code.map(ErrorCode::as_str))
        .bind(note.status.map(small))
        .bind(note.result_digest.map(|digest| digest.as_bytes().to_vec()))
        .bind(note.receipt.as_deref())
        .bind(note.excerpt.as_deref())
        .bind(note.actor.as_deref())
        .execute(writing.connection())
        .await?;
    Ok(())
}

/// Writes what a set of steps comes to.
pub(crate) async fn apply(writing: &mut Writing, moves: &Moves) -> Result<(), StoreError> {
    let now = writing.now.as_micros();
    let mut events = Vec::with_capacity(moves.events.len());
    for event in &moves.events {
        let fence = match event.fence {
            Some(fence) => fence,
            None => writing.draw_one()?,
        };
        events.push(event_row(event, number(fence)));
    }
    if !events.is_empty() {
        sqlx::query(include_str!("sql/event_add.sql"))
            .bind(json::text(events))
            .bind(now)
            .execute(writing.connection())
            .await?;
    }
    if !moves.ready.is_empty() {
        let rows = moves.ready.iter().map(history_row);
        writing.run(include_str!("sql/place_ready.sql"), json::text(rows)).await?;
    }
    if !moves.scheduled.is_empty() {
        let rows = moves.scheduled.iter().map(|placed| {
            let mut row = history_row(placed);
            row.extend([json!(placed.place.state), json!(placed.place.due.as_micros())]);
            row
        });
        writing.run(include_str!("sql/place_scheduled.sql"), json::text(rows)).await?;
    }
    if !moves.letters.is_empty() {
        let rows = moves.letters.iter().map(|placed| {
            let mut row = history_row(placed);
            let letter = &placed.place;
            row.extend([json!(letter.state), json!(letter.effect.as_str())]);
            row.extend([
                json!(letter.code),
                json!(letter.error),
                json!(letter.since.map(Timestamp::as_micros)),
                json!(letter.standing.as_str()),
            ]);
            row
        });
        sqlx::query(include_str!("sql/place_letter.sql"))
            .bind(json::text(rows))
            .bind(now)
            .execute(writing.connection())
            .await?;
    }
    let deltas = moves.deltas.iter().filter(|(_, delta)| **delta != 0);
    count_add(writing, deltas.map(|((queue, state), delta)| (queue.as_str(), *state, i64::from(*delta))))
        .await
}

/// Changes counts of a queue's states.
pub(super) async fn count_add<'a>(
    writing: &mut Writing,
    deltas: impl IntoIterator<Item = (&'a str, &'a str, i64)>,
) -> Result<(), StoreError> {
    let rows: Vec<Value> =
        deltas.into_iter().map(|(queue, state, delta)| json!([queue, state, delta])).collect();
    if !rows.is_empty() {
        writing.run(include_str!("sql/count_add.sql"), json::text(rows)).await?;
    }
    Ok(())
}

/// An event's columns, in the order in which the statement takes them.
fn event_row(event: &EventRow, fence: i64) -> Value {
    json!([
        json::id(event.message_id),
        fence,
        event.step,
        event.claimed_at.map(Timestamp::as_micros),
        event.from,
        event.to,
        event.kind,
        event.tries,
        event.deaths,
        event.doubt.map(|doubt| doubt.since.as_micros()),
        event.doubt.map(|doubt| doubt.travels_until.as_micros()),
        event.effect.as_str(),
        event.note.code.map(ErrorCode::as_str),
        event.note.status.map(small),
        event.note.result_digest.map(|digest| hex(digest.as_bytes())),
        event.note.receipt,
        event.note.excerpt,
        event.node.map(json::id),
        event.note.actor,
    ])
}

/// The columns that every moving row has, in the order in which the statements take them.
fn history_row<P>(placed: &Placed<P>) -> Row {
    let (moving, history) = (&placed.moving, &placed.history);
    vec![
        json!(json::id(moving.id)),
        json!(moving.queue.as_str()),
        json!(moving.priority),
        json!(i32::from(history.suspect)),
        json!(history.tries),
        json!(history.deaths),
        json!(history.doubt.map(|doubt| doubt.since.as_micros())),
        json!(history.doubt.map(|doubt| doubt.travels_until.as_micros())),
        json!(history.last_fence.map(number)),
    ]
}
