//! Operators' steps and the rescue, on PostgreSQL: lock, ask the lifecycle, write.

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, Why};
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::Postgres;
use super::work::count;
use crate::columns::{Columns as _, number, small};
use crate::error::StoreError;
use crate::message::limits::LEASE_MAX;
use crate::message::{Note, QueueName, Stepped};
use crate::micros;
use crate::moment::Moment;
use crate::placement::{Moves, Placed, Stamp, operate, standing_of};
use crate::promised;
use crate::rescue::Lapsed;
use crate::rows::{lapsed_message, queue_name};
use crate::take::{Found, Taken, take};

/// How often a message is looked for while it moves from one table to another.
const ROUNDS_MAX: usize = 3;

impl Postgres {
    /// Takes one message by one event, whatever table it is in; answers also which queue it can be claimed from now.
    pub(crate) async fn step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<(Stepped, Option<QueueName>), StoreError> {
        self.calls.talk(async |connection| self.step_over(connection, id, event, note).await).await
    }

    /// The same over a connection without a transaction.
    pub(super) async fn step_over(
        &self,
        connection: &mut PgConnection,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<(Stepped, Option<QueueName>), StoreError> {
        for _ in 0..ROUNDS_MAX {
            let mut transaction = connection.begin().await?;
            let taken = match take(&mut self.connection(&mut transaction), id).await? {
                Found::Here(taken) => taken,
                Found::Moving => {
                    transaction.rollback().await?;
                    continue;
                }
                Found::Nowhere => return Ok((Stepped::NoSuchMessage, None)),
            };
            let Taken { state, moving, before, now } = taken;
            let event = event(now);
            let states = match operate(state, standing_of(before.as_ref()), event, now) {
                Ok(states) => states,
                Err(why) => {
                    // Awaited, not left to the drop: until then a claim would pass over the row that was taken.
                    transaction.rollback().await?;
                    return Ok((Stepped::Refused(why), None));
                }
            };
            let next = states.1.unwrap_or(states.0);
            if let (State::Sending { fence: holder, .. }, Event::LateSuccess { fence }) = (next, event) {
                if self.keep_proof(&mut transaction, (id, fence), holder, note).await? {
                    transaction.commit().await?;
                    // The message is somebody else's, whose try goes on.
                    return Ok((Stepped::Refused(Why::StaleFence), None));
                }
                transaction.rollback().await?;
                continue;
            }
            let mut moves = Moves::default();
            let stamp = Stamp { fence: None, claimed_at: None, node: None, now };
            moves.add(&moving, state, event, states, note, stamp);
            if let Some(before) = before {
                moves.keep(&moving, event, (state, next), before);
            }
            apply(&mut transaction, &moves, self.skew()).await?;
            transaction.commit().await?;
            self.came_back(&moving.queue);
            return Ok((Stepped::Now(next), (!moves.ready.is_empty()).then_some(moving.queue)));
        }
        Err(StoreError::Busy)
    }

    /// Keeps a late success of a message that somebody else holds; `false` when that one's try has ended meanwhile.
    async fn keep_proof(
        &self,
        connection: &mut PgConnection,
        (id, fence): (Uuid, Fence),
        holder: Fence,
        note: &Note,
    ) -> Result<bool, StoreError> {
        // In a statement of its own, so that the next one sees every end that came before it.
        let lease = sqlx::query(include_str!("sql/lease_lock.sql"))
            .bind(number(holder))
            .fetch_optional(&mut *connection)
            .await?;
        if lease.is_none() {
            return Ok(false);
        }
        let row = sqlx::query(include_str!("sql/proof_add.sql"))
            .bind(id)
            .bind(number(fence))
            .bind(number(holder))
            .bind(self.skew())
            .bind(note.code.map(ErrorCode::as_str))
            .bind(note.status.map(small))
            .bind(note.result_digest.map(|digest| digest.as_bytes().to_vec()))
            .bind(note.receipt.as_deref())
            .bind(note.excerpt.as_deref())
            .bind(note.actor.as_deref())
            .fetch_one(connection)
            .await?;
        Ok(!row.truth("ended")?)
    }

    /// Rescues the messages of one lapsed lease, of these queues if any are named; `None` when none has lapsed.
    ///
    /// `judge` turns what the lease still holds into steps; the driver only locks, reads and writes.
    pub(crate) async fn rescue(
        &self,
        queues: Option<&[QueueName]>,
        judge: &(dyn Fn(&Lapsed) -> Moves + Send + Sync),
    ) -> Result<Option<usize>, StoreError> {
        self.calls.talk(async |connection| self.rescue_over(connection, queues, judge).await).await
    }

    async fn rescue_over(
        &self,
        connection: &mut PgConnection,
        queues: Option<&[QueueName]>,
        judge: &(dyn Fn(&Lapsed) -> Moves + Send + Sync),
    ) -> Result<Option<usize>, StoreError> {
        let mut transaction = connection.begin().await?;
        let queues = queues.map(|queues| queues.iter().map(QueueName::as_str).collect::<Vec<_>>());
        let mut lapsed = None;
        for ends_too_late in [false, true] {
            if lapsed.is_none() {
                let query = sqlx::query(include_str!("sql/rescue_lock.sql"));
                let query = query.bind(self.skew()).bind(queues.as_deref()).bind(ends_too_late);
                lapsed = query.bind(micros(LEASE_MAX)).fetch_optional(&mut *transaction).await?;
            }
        }
        let Some(lease) = lapsed else {
            return Ok(None);
        };
        let fence = lease.fence()?;
        let ids: Vec<Uuid> = lease.try_get("message_ids")?;
        let rows = sqlx::query(include_str!("sql/rescue_left.sql"))
            .bind(&ids)
            .bind(number(fence))
            .bind(lease.truth("suspect")?)
            .fetch_all(&mut *transaction)
            .await?;
        let marks = lease.truth("marks")?;
        let lapsed = Lapsed {
            fence,
            queue: queue_name(lease.text("queue")?)?,
            node: lease.uuid("node")?,
            claimed_at: lease.moment("claimed_at")?,
            now: lease.moment("now")?,
            alone: ids.len() == 1,
            guarantee: promised::guarantee(&lease)?,
            travels_for: promised::travels_for(&lease)?,
            left: rows.iter().map(|row| lapsed_message(row, marks)).collect::<Result<_, _>>()?,
        };
        let moves = judge(&lapsed);
        apply(&mut transaction, &moves, self.skew()).await?;
        sqlx::query(include_str!("sql/lease_over.sql"))
            .bind(vec![number(fence)])
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.held.forget(fence);
        self.came_back(&lapsed.queue);
        Ok(Some(lapsed.left.len()))
    }
}

/// Writes what a set of steps comes to.
pub(crate) async fn apply(connection: &mut PgConnection, moves: &Moves, skew: i64) -> Result<(), StoreError> {
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
        .bind(events().map(|event| event.effect.as_str()).collect::<Vec<_>>())
        .bind(events().map(|event| event.note.code.map(ErrorCode::as_str)).collect::<Vec<_>>())
        .bind(events().map(|event| event.note.status.map(small)).collect::<Vec<_>>())
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
struct Tried {
    suspect: Vec<bool>,
    tries: Vec<i32>,
    deaths: Vec<i32>,
    doubt_since: Vec<Option<Moment>>,
    travels_until: Vec<Option<Moment>>,
    last_fence: Vec<Option<i64>>,
}

impl Tried {
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
    let columns = Tried::of(ready);
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
    let columns = Tried::of(scheduled);
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
    let columns = Tried::of(letters);
    sqlx::query(include_str!("sql/place_letter.sql"))
        .bind(ids(letters))
        .bind(queues(letters))
        .bind(columns.tries)
        .bind(columns.deaths)
        .bind(columns.doubt_since)
        .bind(columns.travels_until)
        .bind(columns.last_fence)
        .bind(letters.iter().map(|placed| placed.place.state).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.effect.as_str()).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.code.as_deref()).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.error.as_deref()).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.since.map(Moment)).collect::<Vec<_>>())
        .bind(letters.iter().map(|placed| placed.place.standing.as_str()).collect::<Vec<_>>())
        .bind(skew)
        .execute(connection)
        .await?;
    Ok(())
}
