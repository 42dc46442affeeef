//! A write transaction with one point in time.

use ichido_core::time::Timestamp;
use ichido_http::clock;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Row as _, Sqlite, Transaction};

use super::OfflineQueue;
use super::age::FileClock;
use super::entry::{micros, to_micros};
use super::error::QueueError;

/// A write transaction. Dropping it without a commit changes nothing.
pub(super) struct WriteTransaction {
    transaction: Transaction<'static, Sqlite>,
    /// The clock, read under the write lock, so processes see readings in order.
    pub(super) watch: FileClock,
}

impl OfflineQueue {
    pub(super) async fn write(&self) -> Result<WriteTransaction, QueueError> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let watch = read_watch(&mut transaction).await?.look(clock::now());
        Ok(WriteTransaction { transaction, watch })
    }
}

impl WriteTransaction {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    /// Commits. The changes are on disk when it returns.
    pub(super) async fn commit(mut self) -> Result<(), QueueError> {
        write_watch(&mut self.transaction, self.watch).await?;
        Ok(self.transaction.commit().await?)
    }

    pub(super) async fn rollback(self) -> Result<(), QueueError> {
        Ok(self.transaction.rollback().await?)
    }
}

pub(super) async fn read_watch(connection: &mut SqliteConnection) -> Result<FileClock, QueueError> {
    let row = sqlx::query(include_str!("sql/watch_read.sql")).fetch_optional(connection).await?;
    let row = row.ok_or_else(|| QueueError::damaged("the file's clock is missing"))?;
    let set_backs: i64 = row.try_get("set_backs")?;
    Ok(FileClock {
        last: Timestamp::from_micros(row.try_get("last_us")?),
        passed: micros(row.try_get("passed_us")?)?,
        set_backs: u32::try_from(set_backs).map_err(|_| QueueError::damaged("set_backs is out of range"))?,
    })
}

pub(super) async fn write_watch(
    connection: &mut SqliteConnection,
    watch: FileClock,
) -> Result<(), QueueError> {
    sqlx::query(include_str!("sql/watch_write.sql"))
        .bind(watch.last.as_micros())
        .bind(to_micros(watch.passed))
        .bind(i64::from(watch.set_backs))
        .execute(connection)
        .await?;
    Ok(())
}
