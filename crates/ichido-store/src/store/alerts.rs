//! Alerts: what they are made of, and their incidents.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::alert::{About, WINDOW_MAX};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::Store;
use super::outbox::numbered;
use crate::alert::limits::{FIRING_MAX, LETTERS_COUNTED_MAX, PACES_MAX};
use crate::alert::{Alert, NewAlert, alerts};
use crate::columns::Columns as _;
use crate::driver::on;
use crate::error::StoreError;
use crate::message::limits::PAGE_MAX;
use crate::message::{NewMessage, Numbered, QueueName};
use crate::micros;
use crate::node::SharedPace;
use crate::rows::pace;
use crate::statement::{Statement, Value, paired, shared};
use crate::tally::{Counted, SUMS_MAX, Tally, rows, sums};
use crate::transaction::Transaction;

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
        let values = [micros(window).into(), Value::Now, SUMS_MAX.into()];
        sums(&self.driver.all(paired!("tally_sums"), &values).await?)
    }

    /// Forgets one minute's counts that no window looks back to, the oldest; answers how many rows that were, 0 when there are none.
    pub async fn tally_sweep(&self) -> Result<u64, StoreError> {
        let values = [micros(WINDOW_MAX + KEPT_BEYOND).into(), Value::Now];
        self.driver.execute(paired!("tally_sweep"), &values).await
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
        let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let values =
            [Value::Texts(&queues), since.into(), until.into(), i64::from(LETTERS_COUNTED_MAX).into()];
        let rows = self.driver.all(paired!("letter_counts"), &values).await?;
        rows.iter()
            .map(|row| Ok((row.text("queue")?.to_owned(), row.number("count")?.unsigned_abs())))
            .collect()
    }

    /// The paces of all destinations, by their names.
    pub async fn pace_list(&self) -> Result<Vec<(String, SharedPace)>, StoreError> {
        let rows = self.driver.all(shared!("pace_list"), &[i64::from(PACES_MAX).into()]).await?;
        rows.iter().map(|row| Ok((row.text("name")?.to_owned(), pace(row)?))).collect()
    }

    /// Opens an incident and puts in what tells of it, in one transaction; `false` when one is open already, and then nothing is put
    /// in. The example is at [`crate::alert`].
    pub async fn alert_open(&self, alert: &NewAlert, messages: Vec<NewMessage>) -> Result<bool, StoreError> {
        alert.check()?;
        let messages = numbered(messages)?;
        let about = alert.about.to_string();
        let values = [
            alert.id.into(),
            alert.rule.as_str().into(),
            (&*about).into(),
            alert.at.into(),
            alert.reading.value.into(),
            i64::try_from(alert.reading.samples).unwrap_or(i64::MAX).into(),
            alert.terms.above.into(),
            alert.terms.window.map(micros).into(),
        ];
        self.with_messages(shared!("alert_open"), &values, &messages).await
    }

    /// Notes since when an open incident is clear, or that it is not.
    pub async fn alert_clear(&self, id: Uuid, since: Option<Timestamp>) -> Result<(), StoreError> {
        self.driver.execute(shared!("alert_clear"), &[id.into(), since.into()]).await.map(drop)
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
        let values = [id.into(), clear_since.into(), at.into()];
        self.with_messages(shared!("alert_resolve"), &values, &messages).await
    }

    /// The open incidents; at most [`FIRING_MAX`](crate::alert::limits::FIRING_MAX).
    pub async fn alert_firing(&self) -> Result<Vec<Alert>, StoreError> {
        alerts(&self.driver.all(shared!("alert_firing"), &[i64::from(FIRING_MAX).into()]).await?)
    }

    /// Incidents, the last to be opened first, open or over. `after` is [`Alert::opened_at`] and the id of the last one of the page
    /// before. At most [`PAGE_MAX`] are listed.
    pub async fn alert_list(
        &self,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Alert>, StoreError> {
        let (opened_at, id) = after.unwrap_or((Timestamp::MAX, Uuid::max()));
        let limit = i64::from(limit.min(PAGE_MAX));
        alerts(&self.driver.all(shared!("alert_list"), &[opened_at.into(), id.into(), limit.into()]).await?)
    }

    /// Forgets at most `limit` incidents that were over before a moment; answers how many.
    pub async fn alert_forget(&self, resolved_before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let Some(now) = self.forget_until().await? else { return Ok(0) };
        let values = [now.moved(resolved_before).into(), i64::from(limit).into()];
        self.driver.execute(paired!("alert_forget"), &values).await
    }

    /// Changes one incident and puts messages in, in one transaction; neither, where there was nothing to change.
    async fn with_messages(
        &self,
        change: Statement,
        values: &[Value<'_>],
        messages: &[Numbered],
    ) -> Result<bool, StoreError> {
        let work = async |transaction: &mut Transaction<'_>| {
            if transaction.connection().execute(change, values).await? == 0 {
                return Ok(None);
            }
            transaction.enqueue(messages).await.map(Some)
        };
        let is_done = self.driver.transact(work).await?.is_some();
        for (_, message) in messages.iter().filter(|_| is_done) {
            self.queue_wake(&message.queue);
        }
        Ok(is_done)
    }
}
