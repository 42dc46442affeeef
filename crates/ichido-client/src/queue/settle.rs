//! The marks around a try: that it is made, before a byte leaves; and what came of it, before the next begins.

use std::time::Duration;

use ichido_core::verdict::Effect;

use super::Queue;
use super::entry::{EntryId, Head, Reason, State, in_micros};
use super::error::QueueError;
use super::next::{self, After, Before, SENDS_MAX};
use super::writing::Writing;

/// What is to be done.
pub(super) enum Turn {
    /// There is nothing.
    Nothing,
    /// Not yet.
    Wait(Duration),
    /// This entry was put aside.
    Aside { head: Head, state: State, reason: Reason },
    /// This entry is marked as being sent, and must be.
    Send(Head),
}

impl Queue {
    /// Whose turn it is. For the one that holds the destination's lock.
    pub(super) async fn turn(
        &self,
        destination: &str,
        keys_kept_for: Duration,
        try_time: Duration,
    ) -> Result<Turn, QueueError> {
        let mut writing = self.write().await?;
        recover(&mut writing, destination).await?;
        let row = sqlx::query(include_str!("sql/entry_head.sql")).bind(destination);
        let Some(row) = row.fetch_optional(writing.connection()).await? else {
            writing.commit().await?;
            return Ok(Turn::Nothing);
        };
        let head = Head::read(&row)?;
        let turn = match next::before(&head.known, writing.watch, keys_kept_for, try_time) {
            // Whoever waits has looked at the clock, and what it said is kept: one that is set back in a long wait is seen.
            Before::Wait(wait) => Turn::Wait(wait),
            Before::Send => {
                mark(&mut writing, &head).await?;
                Turn::Send(head)
            }
            Before::Hold(why) => {
                let reason = Reason::new(why.code(), &why.to_string());
                put_aside(&mut writing, head, State::Held, reason).await?
            }
            Before::Fail => {
                let text = format!("it was sent {SENDS_MAX} times, and no outcome was learnt");
                put_aside(&mut writing, head, State::Failed, Reason::new("sends_spent", &text)).await?
            }
        };
        writing.commit().await?;
        Ok(turn)
    }

    /// What came of the try of an entry that was marked.
    pub(super) async fn settle(&self, head: &Head, after: &After, reason: &Reason) -> Result<(), QueueError> {
        let mut writing = self.write().await?;
        let attempts = head.known.attempts;
        let open = |attempts, wait, effect| Stand { state: State::Waiting, attempts, wait, effect };
        let stand = match *after {
            After::Remove => {
                let removed = sqlx::query(include_str!("sql/entry_remove.sql")).bind(head.id.0);
                one(head.id, removed.execute(writing.connection()).await?.rows_affected())?;
                return writing.commit().await;
            }
            After::Offline => {
                unmark(&mut writing, head).await?;
                return writing.commit().await;
            }
            // That it is at work means that it was sent.
            After::Ask { wait } => open(attempts, wait, Effect::Unknown),
            After::Again { wait, effect } => open(attempts.saturating_add(1), wait, effect),
            After::Fail { effect, .. } => Stand {
                state: State::Failed,
                attempts: attempts.saturating_add(1),
                wait: Duration::ZERO,
                effect,
            },
        };
        let due = writing.watch.passed.saturating_add(stand.wait);
        let settled = sqlx::query(include_str!("sql/entry_settle.sql"))
            .bind(head.id.0)
            .bind(stand.state.as_str())
            .bind(i64::from(stand.attempts))
            .bind(in_micros(due))
            .bind(stand.effect.as_str())
            .bind(&reason.code)
            .bind(&reason.text)
            .execute(writing.connection())
            .await?;
        one(head.id, settled.rows_affected())?;
        writing.commit().await
    }

    /// What a sender left that is gone. For the one that holds the destination's lock.
    pub(super) async fn recover(&self, destination: &str) -> Result<(), QueueError> {
        let mut writing = self.write().await?;
        recover(&mut writing, destination).await?;
        writing.commit().await
    }
}

/// How an entry stands after a try.
struct Stand {
    state: State,
    attempts: u32,
    wait: Duration,
    effect: Effect,
}

async fn recover(writing: &mut Writing, destination: &str) -> Result<(), QueueError> {
    let recovered = sqlx::query(include_str!("sql/entry_recover.sql")).bind(destination);
    recovered.execute(writing.connection()).await?;
    Ok(())
}

async fn mark(writing: &mut Writing, head: &Head) -> Result<(), QueueError> {
    let now = writing.watch.mark();
    let marked = sqlx::query(include_str!("sql/entry_mark.sql"))
        .bind(head.id.0)
        .bind(now.at.as_micros())
        .bind(in_micros(now.passed))
        .bind(i64::from(now.set_backs))
        .execute(writing.connection())
        .await?;
    one(head.id, marked.rows_affected())
}

async fn unmark(writing: &mut Writing, head: &Head) -> Result<(), QueueError> {
    let first = head.known.first_sent;
    let unmarked = sqlx::query(include_str!("sql/entry_unmark.sql"))
        .bind(head.id.0)
        .bind(i64::from(head.known.sends))
        .bind(i64::from(head.sends_all))
        .bind(first.map(|first| first.at.as_micros()))
        .bind(first.map(|first| in_micros(first.passed)))
        .bind(first.map(|first| i64::from(first.set_backs)))
        .bind(head.cause.as_str())
        .bind(head.known.is_released)
        .execute(writing.connection())
        .await?;
    one(head.id, unmarked.rows_affected())
}

async fn put_aside(
    writing: &mut Writing,
    head: Head,
    state: State,
    reason: Reason,
) -> Result<Turn, QueueError> {
    let put = sqlx::query(include_str!("sql/entry_set_aside.sql"))
        .bind(head.id.0)
        .bind(state.as_str())
        .bind(&reason.code)
        .bind(&reason.text)
        .execute(writing.connection())
        .await?;
    one(head.id, put.rows_affected())?;
    Ok(Turn::Aside { head, state, reason })
}

/// The lock is ours, so that nobody else changes an entry that is being sent.
fn one(id: EntryId, rows: u64) -> Result<(), QueueError> {
    if rows == 1 {
        Ok(())
    } else {
        Err(QueueError::damaged(format!("entry {id} was changed by somebody without the lock")))
    }
}
