//! Writes the rows planned for lifecycle steps, on either database.

use ichido_core::lifecycle::Doubt;
use ichido_core::verdict::ErrorCode;

use crate::columns::{count, number, small};
use crate::db_timestamp::DbTimestamp;
use crate::error::StoreError;
use crate::failure_group::deltas;
use crate::message::Note;
use crate::placement::{EventRow, LetterColumns, PlacedMessage, RowChanges};
use crate::statement::{Column, DbConnection, SqlValue, Statement, column, paired};

/// Writes the rows of a set of steps. On SQLite each event must have a fence by now.
pub(crate) async fn apply(connection: &mut DbConnection<'_>, changes: &RowChanges) -> Result<(), StoreError> {
    insert(connection, paired!("event_add"), &events(&changes.events), &[SqlValue::Now]).await?;
    insert(connection, paired!("place_ready"), &claimable(&changes.ready), &[]).await?;
    let mut scheduled = claimable(&changes.scheduled);
    scheduled.push(column(&changes.scheduled, |placed| placed.row.state));
    scheduled.push(column(&changes.scheduled, |placed| DbTimestamp(placed.row.due)));
    insert(connection, paired!("place_scheduled"), &scheduled, &[]).await?;
    insert(connection, paired!("place_dead_letter"), &letters(&changes.letters), &[SqlValue::Now]).await?;
    if !changes.restarted.is_empty() {
        connection.execute(paired!("cancellation_end"), &[SqlValue::Ids(&changes.restarted)]).await?;
    }
    let groups = deltas(changes);
    let columns = [
        column(&groups, |delta| delta.key.id),
        column(&groups, |delta| delta.key.queue.as_str()),
        column(&groups, |delta| delta.key.code.as_deref()),
        column(&groups, |delta| &*delta.key.template),
        column(&groups, |delta| delta.by),
        column(&groups, |delta| delta.has_failed),
    ];
    insert(connection, paired!("group_delta_add"), &columns, &[SqlValue::Now]).await?;
    let counts = changes.deltas.iter().map(|((queue, state), delta)| (queue.as_str(), *state, *delta));
    add_counts(connection, counts).await
}

/// Changes the counts of messages by queue and state.
pub(crate) async fn add_counts<'a>(
    connection: &mut DbConnection<'_>,
    deltas: impl IntoIterator<Item = (&'a str, &'a str, i32)>,
) -> Result<(), StoreError> {
    let deltas: Vec<_> = deltas.into_iter().filter(|(.., delta)| *delta != 0).collect();
    let columns = [
        column(&deltas, |(queue, ..)| *queue),
        column(&deltas, |(_, state, _)| *state),
        column(&deltas, |(.., delta)| *delta),
    ];
    insert(connection, paired!("count_add"), &columns, &[]).await
}

/// Writes rows, if there are any, with a statement that takes them and then the values.
async fn insert(
    connection: &mut DbConnection<'_>,
    statement: Statement,
    columns: &[Column<'_>],
    values: &[SqlValue<'_>],
) -> Result<(), StoreError> {
    if columns.first().is_none_or(|column| column.len() == 0) {
        return Ok(());
    }
    let values = [&[SqlValue::Rows(columns)], values].concat();
    connection.execute(statement, &values).await.map(drop)
}

fn events(events: &[EventRow]) -> [Column<'_>; 22] {
    [
        column(events, |event| event.message_id),
        column(events, |event| event.fence.map(number)),
        column(events, |event| event.step),
        column(events, |event| event.claimed_at.map(DbTimestamp)),
        column(events, |event| event.from),
        column(events, |event| event.to),
        column(events, |event| event.kind),
        column(events, |event| count(event.attempts)),
        column(events, |event| count(event.deaths)),
        column(events, |event| event.doubt.map(since)),
        column(events, |event| event.doubt.map(until)),
        column(events, |event| event.effect.as_str()),
        column(events, |event| event.note.code.map(ErrorCode::as_str)),
        column(events, |event| event.note.status.map(small)),
        column(events, |event| event.note.result_digest.as_ref().map(|digest| &digest.as_bytes()[..])),
        column(events, |event| event.note.receipt.as_deref()),
        column(events, |event| event.note.excerpt.as_deref()),
        column(events, |event| event.node),
        column(events, |event| event.note.actor.as_deref()),
        column(events, |event| body_of(&event.note)),
        column(events, |event| type_of(&event.note)),
        column(events, |event| bytes_of(&event.note)),
    ]
}

/// Returns the column `response`.
pub(crate) fn body_of(note: &Note) -> Option<&[u8]> {
    note.response.as_ref()?.body.as_deref()
}

/// Returns the column `response_type`.
pub(crate) fn type_of(note: &Note) -> Option<&str> {
    note.response.as_ref().map(|response| &*response.content_type)
}

/// Returns the column `response_bytes`, which is negative if there were more.
pub(crate) fn bytes_of(note: &Note) -> Option<i32> {
    note.response.as_ref().map(|response| {
        let bytes = i32::try_from(response.bytes).unwrap_or(i32::MAX);
        if response.is_whole { bytes } else { -bytes }
    })
}

/// Returns the columns that every row has.
fn moving<P>(placed: &[PlacedMessage<P>]) -> Vec<Column<'_>> {
    vec![
        column(placed, |placed| placed.moving.id),
        column(placed, |placed| placed.moving.queue.as_str()),
        column(placed, |placed| count(placed.history.attempts)),
        column(placed, |placed| count(placed.history.deaths)),
        column(placed, |placed| placed.history.doubt.map(since)),
        column(placed, |placed| placed.history.doubt.map(until)),
        column(placed, |placed| placed.history.last_fence.map(number)),
    ]
}

/// Returns the columns of a row that can be claimed.
fn claimable<P>(placed: &[PlacedMessage<P>]) -> Vec<Column<'_>> {
    let mut columns = moving(placed);
    columns.push(column(placed, |placed| i16::from(placed.moving.priority)));
    columns.push(column(placed, |placed| placed.history.suspect));
    columns
}

fn letters(letters: &[PlacedMessage<LetterColumns>]) -> Vec<Column<'_>> {
    let mut columns = moving(letters);
    columns.extend([
        column(letters, |letter| letter.row.state),
        column(letters, |letter| letter.row.effect.as_str()),
        column(letters, |letter| letter.row.code.as_deref()),
        column(letters, |letter| letter.row.error.as_deref()),
        column(letters, |letter| letter.row.since.map(DbTimestamp)),
        column(letters, |letter| letter.row.disposition.as_str()),
        column(letters, |letter| letter.row.group.id),
    ]);
    columns
}

fn since(doubt: Doubt) -> DbTimestamp {
    DbTimestamp(doubt.since)
}

fn until(doubt: Doubt) -> DbTimestamp {
    DbTimestamp(doubt.in_flight_until)
}
