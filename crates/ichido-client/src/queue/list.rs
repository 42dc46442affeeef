//! Lists what is in the queue.

use ichido_http::clock;
use sqlx::Row as _;

use super::entry::{Entry, EntryId, State, state_of};
use super::error::QueueError;
use super::write_transaction::read_watch;
use super::{MAX_PAGE, OfflineQueue};

/// Selects entries; all conditions must match.
#[derive(Clone, Debug, Default)]
pub struct EntryFilter {
    /// Only entries after this one.
    pub after: Option<EntryId>,
    /// Only entries in this state.
    pub state: Option<State>,
    /// Only entries for this destination.
    pub destination: Option<String>,
}

/// The number of entries of a destination in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryCount {
    /// The destination.
    pub destination: String,
    /// The state.
    pub state: State,
    /// The number of entries.
    pub entries: u64,
}

impl OfflineQueue {
    /// Lists entries in order of acceptance, at most `limit` and [`MAX_PAGE`] of them.
    pub async fn list(&self, filter: &EntryFilter, limit: u32) -> Result<Vec<Entry>, QueueError> {
        let mut reading = self.pool.begin().await?;
        let passed = read_watch(&mut reading).await?.look(clock::now()).passed;
        let rows = sqlx::query(include_str!("sql/entry_list.sql"))
            .bind(filter.after.map_or(i64::MIN, EntryId::get))
            .bind(filter.state.map(State::as_str))
            .bind(filter.destination.as_deref())
            .bind(i64::from(limit.min(MAX_PAGE)))
            .fetch_all(&mut *reading)
            .await?;
        rows.iter().map(|row| Entry::read(row, passed)).collect()
    }

    /// Counts entries by destination and state, without zeros.
    pub async fn counts(&self) -> Result<Vec<EntryCount>, QueueError> {
        let rows = sqlx::query(include_str!("sql/entry_counts.sql")).fetch_all(&self.pool).await?;
        let count = |row| {
            let entries: i64 = sqlx::sqlite::SqliteRow::try_get(row, "entries")?;
            Ok(EntryCount {
                destination: sqlx::sqlite::SqliteRow::try_get(row, "destination")?,
                state: state_of(row)?,
                entries: entries.unsigned_abs(),
            })
        };
        rows.iter().map(count).collect()
    }
}
