//! Alerts: what they are made of, and their incidents.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::alert::{About, WINDOW_MAX};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::Store;
use super::outbox::numbered;
use crate::alert::{Alert, NewAlert};
use crate::bounded;
use crate::driver::{on, read};
use crate::error::StoreError;
use crate::message::{NewMessage, Numbered, QueueName, limits};
use crate::node::SharedPace;
use crate::tally::{Counted, Tally, rows};

/// How long counts are kept beyond the longest window.
const KEPT_BEYOND: Duration = Duration::from_mins(5);

impl Store {
    /// The counts of this process, to count more.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Adds what this process has counted to the counts of this minute. What could not be added is counted again; after an answer that
    /// was lost on the way it is not, since it may be there.
    pub async fn tally_flush(&self) -> Result<(), StoreError> {
        let taken = self.tally.take();
        let rows = rows(&taken);
        if rows.is_empty() {
            return Ok(());
        }
        let added = on!(&*self.driver, driver => driver.tally_add(&rows).await);
        if added.is_err() && !matches!(added, Err(StoreError::Unknown(_))) {
            drop(rows);
            self.tally.give_back(taken);
        }
        added
    }

    /// What was counted on all nodes in the minutes that began within the window.
    pub async fn tally_sums(&self, window: Duration) -> Result<BTreeMap<About, Counted>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.tally_sums(bounded(window)).await) }).await
    }

    /// Forgets one minute's counts that no window looks back to, the oldest; answers how many rows that were, 0 when there are none.
    pub async fn tally_sweep(&self) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.tally_sweep(WINDOW_MAX + KEPT_BEYOND).await)
    }

    /// How many messages of each of these queues died from `since` to before `until`, and are dead still, whether or not a person is
    /// done with them. At most
    /// [`LETTERS_COUNTED_MAX`](crate::alert::limits::LETTERS_COUNTED_MAX) are counted of each kind.
    pub async fn letter_counts(
        &self,
        queues: &[QueueName],
        since: Timestamp,
        until: Timestamp,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.letter_counts(queues, since, until).await) })
            .await
    }

    /// The paces of all destinations, by their names.
    pub async fn pace_list(&self) -> Result<Vec<(String, SharedPace)>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.pace_list().await) }).await
    }

    /// Opens an incident and puts in what tells of it, in one transaction; `false` when one is open already, and then nothing is put
    /// in. The example is at [`crate::alert`].
    pub async fn alert_open(&self, alert: &NewAlert, messages: Vec<NewMessage>) -> Result<bool, StoreError> {
        alert.check()?;
        let messages = numbered(messages)?;
        let opened = on!(&*self.driver, driver => driver.alert_open(alert, &messages).await)?;
        self.wake_for(opened, &messages);
        Ok(opened)
    }

    /// Notes since when an open incident is clear, or that it is not.
    pub async fn alert_clear(&self, id: Uuid, since: Option<Timestamp>) -> Result<(), StoreError> {
        on!(&*self.driver, driver => driver.alert_clear(id, since).await)
    }

    /// Ends an incident that has been clear since then, and puts in what tells of it, in one transaction; `false` when it is over
    /// already or has come back, and then nothing is put in.
    pub async fn alert_resolve(
        &self,
        id: Uuid,
        clear_since: Timestamp,
        at: Timestamp,
        messages: Vec<NewMessage>,
    ) -> Result<bool, StoreError> {
        let messages = numbered(messages)?;
        let resolved =
            on!(&*self.driver, driver => driver.alert_resolve(id, clear_since, at, &messages).await)?;
        self.wake_for(resolved, &messages);
        Ok(resolved)
    }

    /// The open incidents; at most [`FIRING_MAX`](crate::alert::limits::FIRING_MAX).
    pub async fn alert_firing(&self) -> Result<Vec<Alert>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.alert_firing().await) }).await
    }

    /// Incidents, the last to be opened first, open or over. `after` is [`Alert::opened_at`] and the id of the last one of the page
    /// before. At most [`limits::PAGE_MAX`] are listed.
    pub async fn alert_list(
        &self,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Alert>, StoreError> {
        let after = after.unwrap_or((Timestamp::MAX, Uuid::max()));
        let limit = i64::from(limit.min(limits::PAGE_MAX));
        read(|| async { on!(&*self.driver, driver => driver.alert_list(after, limit).await) }).await
    }

    /// Forgets at most `limit` incidents that were over before a moment; answers how many.
    pub async fn alert_forget(&self, resolved_before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let Some(now) = self.forget_until().await? else { return Ok(0) };
        on!(&*self.driver, driver => driver.alert_forget(now.moved(resolved_before), limit).await)
    }

    fn wake_for(&self, is_done: bool, messages: &[Numbered]) {
        for (_, message) in messages.iter().filter(|_| is_done) {
            self.queue_wake(&message.queue);
        }
    }
}
