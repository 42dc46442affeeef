//! Marks an attempt before a byte leaves, and records its outcome before the next one.

use std::time::Duration;

use ichido_core::verdict::Effect;

use super::OfflineQueue;
use super::entry::{EntryId, NextEntry, Reason, State, to_micros};
use super::error::QueueError;
use super::next::{self, AfterSend, BeforeSend, MAX_SENDS};
use super::write_transaction::WriteTransaction;

/// The next task of the sender.
pub(super) enum Turn {
    /// There is nothing.
    Nothing,
    /// Not yet.
    Wait(Duration),
    /// This entry was set aside.
    SetAside { entry: NextEntry, state: State, reason: Reason },
    /// This entry is marked as sending and must be sent.
    Send(NextEntry),
}

impl OfflineQueue {
    /// Picks the next step. The caller must hold the destination's lock.
    pub(super) async fn turn(
        &self,
        destination: &str,
        keeps_keys_for: Duration,
        try_time: Duration,
    ) -> Result<Turn, QueueError> {
        let mut tx = self.write().await?;
        recover(&mut tx, destination).await?;
        let row = sqlx::query(include_str!("sql/entry_head.sql")).bind(destination);
        let Some(row) = row.fetch_optional(tx.connection()).await? else {
            tx.commit().await?;
            return Ok(Turn::Nothing);
        };
        let entry = NextEntry::read(&row)?;
        let turn = match next::before(&entry.history, tx.watch, keeps_keys_for, try_time) {
            // The clock reading is stored while waiting too, so setting it back during a long wait is detected.
            BeforeSend::Wait(wait) => Turn::Wait(wait),
            BeforeSend::Send => {
                mark(&mut tx, &entry).await?;
                Turn::Send(entry)
            }
            BeforeSend::Hold(why) => {
                let reason = Reason::new(why.code(), &why.to_string());
                set_aside(&mut tx, entry, State::Held, reason).await?
            }
            BeforeSend::Fail => {
                let text = format!("it was sent {MAX_SENDS} times, and its outcome is still unknown");
                set_aside(&mut tx, entry, State::Failed, Reason::new("sends_spent", &text)).await?
            }
        };
        tx.commit().await?;
        Ok(turn)
    }

    /// Records the outcome of a marked attempt.
    pub(super) async fn settle(
        &self,
        entry: &NextEntry,
        after: &AfterSend,
        reason: &Reason,
    ) -> Result<(), QueueError> {
        let mut tx = self.write().await?;
        let attempts = entry.history.attempts;
        let open = |attempts, wait, effect| EntryUpdate { state: State::Waiting, attempts, wait, effect };
        let update = match *after {
            AfterSend::Remove => {
                let removed = sqlx::query(include_str!("sql/entry_remove.sql")).bind(entry.id.0);
                expect_one_row(entry.id, removed.execute(tx.connection()).await?.rows_affected())?;
                return tx.commit().await;
            }
            AfterSend::Offline => {
                unmark(&mut tx, entry).await?;
                return tx.commit().await;
            }
            // A server that is working has received the request.
            AfterSend::Ask { wait } => open(attempts, wait, Effect::Unknown),
            AfterSend::Retry { wait, effect } => open(attempts.saturating_add(1), wait, effect),
            AfterSend::Fail { effect, .. } => EntryUpdate {
                state: State::Failed,
                attempts: attempts.saturating_add(1),
                wait: Duration::ZERO,
                effect,
            },
        };
        let due = tx.watch.passed.saturating_add(update.wait);
        let settled = sqlx::query(include_str!("sql/entry_settle.sql"))
            .bind(entry.id.0)
            .bind(update.state.as_str())
            .bind(i64::from(update.attempts))
            .bind(to_micros(due))
            .bind(update.effect.as_str())
            .bind(&reason.code)
            .bind(&reason.text)
            .execute(tx.connection())
            .await?;
        expect_one_row(entry.id, settled.rows_affected())?;
        tx.commit().await
    }

    /// Recovers entries of a sender that is gone. The caller must hold the destination's lock.
    pub(super) async fn recover(&self, destination: &str) -> Result<(), QueueError> {
        let mut tx = self.write().await?;
        recover(&mut tx, destination).await?;
        tx.commit().await
    }
}

/// The new state of an entry after an attempt.
struct EntryUpdate {
    state: State,
    attempts: u32,
    wait: Duration,
    effect: Effect,
}

async fn recover(tx: &mut WriteTransaction, destination: &str) -> Result<(), QueueError> {
    let recovered = sqlx::query(include_str!("sql/entry_recover.sql")).bind(destination);
    recovered.execute(tx.connection()).await?;
    Ok(())
}

async fn mark(tx: &mut WriteTransaction, entry: &NextEntry) -> Result<(), QueueError> {
    let now = tx.watch.mark();
    let marked = sqlx::query(include_str!("sql/entry_mark.sql"))
        .bind(entry.id.0)
        .bind(now.at.as_micros())
        .bind(to_micros(now.passed))
        .bind(i64::from(now.set_backs))
        .execute(tx.connection())
        .await?;
    expect_one_row(entry.id, marked.rows_affected())
}

async fn unmark(tx: &mut WriteTransaction, entry: &NextEntry) -> Result<(), QueueError> {
    let first = entry.history.first_sent;
    let unmarked = sqlx::query(include_str!("sql/entry_unmark.sql"))
        .bind(entry.id.0)
        .bind(i64::from(entry.history.sends))
        .bind(i64::from(entry.sends_all))
        .bind(first.map(|first| first.at.as_micros()))
        .bind(first.map(|first| to_micros(first.passed)))
        .bind(first.map(|first| i64::from(first.set_backs)))
        .bind(entry.cause.as_str())
        .bind(entry.history.is_released)
        .execute(tx.connection())
        .await?;
    expect_one_row(entry.id, unmarked.rows_affected())
}

async fn set_aside(
    tx: &mut WriteTransaction,
    entry: NextEntry,
    state: State,
    reason: Reason,
) -> Result<Turn, QueueError> {
    let put = sqlx::query(include_str!("sql/entry_set_aside.sql"))
        .bind(entry.id.0)
        .bind(state.as_str())
        .bind(&reason.code)
        .bind(&reason.text)
        .execute(tx.connection())
        .await?;
    expect_one_row(entry.id, put.rows_affected())?;
    Ok(Turn::SetAside { entry, state, reason })
}

/// We hold the lock, so nobody else changes an entry that is being sent.
fn expect_one_row(id: EntryId, rows: u64) -> Result<(), QueueError> {
    if rows == 1 {
        Ok(())
    } else {
        Err(QueueError::damaged(format!("entry {id} was changed by a process without the lock")))
    }
}
