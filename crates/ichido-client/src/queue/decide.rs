//! What a person decides about an entry.

use sqlx::Row as _;

use super::Queue;
use super::entry::{EntryId, State, state_of};
use super::error::QueueError;
use super::lock::Lock;
use super::write_transaction::WriteTransaction;

impl Queue {
    /// Puts a failed entry back: its tries begin again, under the same key. Where it is too old for that it is held in its turn.
    pub async fn retry(&self, id: EntryId) -> Result<(), QueueError> {
        self.again(id, State::Failed, false, "only a failed one is tried again, and a held one is released")
            .await
    }

    /// Has a held entry sent once more, although the server may have forgotten its key: a person knows that it was not done, or that twice is
    /// no harm.
    pub async fn release(&self, id: EntryId) -> Result<(), QueueError> {
        self.again(id, State::Held, true, "only a held one is released, and a failed one is tried again")
            .await
    }

    /// Takes an entry out, whatever became of it at the server. One that is being sent is not.
    pub async fn discard(&self, id: EntryId) -> Result<(), QueueError> {
        self.recover_if_abandoned(id).await?;
        let mut tx = self.write().await?;
        let state = found(&mut tx, id).await?.0;
        let discarded =
            sqlx::query(include_str!("sql/entry_discard.sql")).bind(id.0).execute(tx.connection()).await?;
        if discarded.rows_affected() == 0 {
            return Err(QueueError::NotNow {
                id,
                state,
                asked: "it is under way at this moment; stop the sender first",
            });
        }
        tx.commit().await?;
        self.notify_senders();
        Ok(())
    }

    async fn again(
        &self,
        id: EntryId,
        from: State,
        is_released: bool,
        asked: &'static str,
    ) -> Result<(), QueueError> {
        let mut tx = self.write().await?;
        let state = found(&mut tx, id).await?.0;
        if state != from {
            return Err(QueueError::NotNow { id, state, asked });
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

    /// An entry that stands as being sent by somebody who is gone waits again.
    async fn recover_if_abandoned(&self, id: EntryId) -> Result<(), QueueError> {
        let mut tx = self.write().await?;
        let (state, destination) = found(&mut tx, id).await?;
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

async fn found(tx: &mut WriteTransaction, id: EntryId) -> Result<(State, String), QueueError> {
    let row =
        sqlx::query(include_str!("sql/entry_state.sql")).bind(id.0).fetch_optional(tx.connection()).await?;
    let row = row.ok_or(QueueError::NoSuch(id))?;
    Ok((state_of(&row)?, row.try_get("destination")?))
}
