//! Decisions of a person about an entry.

use sqlx::Row as _;

use super::OfflineQueue;
use super::entry::{EntryId, State, state_of};
use super::error::QueueError;
use super::lock::Lock;
use super::write_transaction::WriteTransaction;

impl OfflineQueue {
    /// Puts a failed entry back in the queue under the same key, with new attempts.
    ///
    /// If it is too old for that, it is held when its turn comes.
    pub async fn retry(&self, id: EntryId) -> Result<(), QueueError> {
        self.requeue(id, State::Failed, false, "only a failed entry can be retried; release a held one").await
    }

    /// Sends a held entry once more, although the server may have forgotten its key.
    ///
    /// The person knows that it was not done, or that doing it twice is harmless.
    pub async fn release(&self, id: EntryId) -> Result<(), QueueError> {
        self.requeue(id, State::Held, true, "only a held entry can be released; retry a failed one").await
    }

    /// Removes an entry, whatever happened at the server. An entry that is being sent stays.
    pub async fn discard(&self, id: EntryId) -> Result<(), QueueError> {
        self.recover_if_abandoned(id).await?;
        let mut tx = self.write().await?;
        let state = state_and_destination(&mut tx, id).await?.0;
        let discarded =
            sqlx::query(include_str!("sql/entry_discard.sql")).bind(id.0).execute(tx.connection()).await?;
        if discarded.rows_affected() == 0 {
            return Err(QueueError::WrongState {
                id,
                state,
                asked: "it is in flight; stop the sender first",
            });
        }
        tx.commit().await?;
        self.notify_senders();
        Ok(())
    }

    async fn requeue(
        &self,
        id: EntryId,
        from: State,
        is_released: bool,
        asked: &'static str,
    ) -> Result<(), QueueError> {
        let mut tx = self.write().await?;
        let state = state_and_destination(&mut tx, id).await?.0;
        if state != from {
            return Err(QueueError::WrongState { id, state, asked });
        }
        sqlx::query(include_str!("sql/entry_again.sql"))
            .bind(id.0)
            .bind(is_released)
            .bind(from.as_str())
            .execute(tx.connection())
            .await?;
        tx.commit().await?;
        self.notify_senders();
        Ok(())
    }

    /// Returns an entry to waiting if the sender that was sending it is gone.
    async fn recover_if_abandoned(&self, id: EntryId) -> Result<(), QueueError> {
        let mut tx = self.write().await?;
        let (state, destination) = state_and_destination(&mut tx, id).await?;
        tx.rollback().await?;
        if state != State::Sending {
            return Ok(());
        }
        match Lock::take(&self.file, &destination) {
            Ok(lock) => {
                self.recover(&destination).await?;
                drop(lock);
                Ok(())
            }
            Err(QueueError::SenderBusy) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

async fn state_and_destination(
    tx: &mut WriteTransaction,
    id: EntryId,
) -> Result<(State, String), QueueError> {
    let row =
        sqlx::query(include_str!("sql/entry_state.sql")).bind(id.0).fetch_optional(tx.connection()).await?;
    let row = row.ok_or(QueueError::UnknownEntry(id))?;
    Ok((state_of(&row)?, row.try_get("destination")?))
}
