//! Alerts and their incidents.

use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::Alerts;
use super::messages::numbered;
use crate::alert::limits::MAX_FIRING;
use crate::alert::{Alert, NewAlert, alerts};
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::message::limits::MAX_PAGE;
use crate::message::{NewMessage, NumberedMessage};
use crate::micros;
use crate::statement::{SqlValue, Statement, paired, shared};
use crate::transaction::Transaction;

impl<'s> Alerts<'s> {
    /// Opens an incident and enqueues the messages about it, in one transaction.
    ///
    /// Returns `false` if one is open already; then nothing is enqueued. [`crate::alert`] has an example.
    pub fn open(self, alert: &'s NewAlert, messages: Vec<NewMessage>) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            alert.check()?;
            let messages = numbered(messages)?;
            let about = alert.about.to_string();
            let values = [
                alert.id.into(),
                alert.rule.as_str().into(),
                (&*about).into(),
                alert.opened_at.into(),
                alert.reading.value.into(),
                i64::try_from(alert.reading.samples).unwrap_or(i64::MAX).into(),
                alert.terms.above.into(),
                alert.terms.window.map(micros).into(),
            ];
            self.with_messages(shared!("alert_open"), &values, &messages).await
        })
    }

    /// Records when an open incident cleared, or that it is not clear.
    pub fn clear(self, id: Uuid, since: Option<Timestamp>) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            self.0.driver.execute(shared!("alert_clear"), &[id.into(), since.into()]).await.map(drop)
        })
    }

    /// Resolves a clear incident and enqueues the messages about it, in one transaction.
    ///
    /// Returns `false` if it is resolved already or has recurred; then nothing is enqueued.
    pub fn resolve(
        self,
        id: Uuid,
        clear_since: Timestamp,
        at: Timestamp,
        messages: Vec<NewMessage>,
    ) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            let messages = numbered(messages)?;
            let values = [id.into(), clear_since.into(), at.into()];
            self.with_messages(shared!("alert_resolve"), &values, &messages).await
        })
    }

    /// Lists the open incidents; at most [`MAX_FIRING`](crate::alert::limits::MAX_FIRING).
    pub fn firing(self) -> StoreFuture<'s, Vec<Alert>> {
        Box::pin(async move {
            alerts(&self.0.driver.all(shared!("alert_firing"), &[i64::from(MAX_FIRING).into()]).await?)
        })
    }

    /// Lists incidents, open or resolved, the most recently opened first. `after` is [`NewAlert::opened_at`] and the id of the
    /// last one of the previous page. At most [`MAX_PAGE`].
    pub fn list(self, after: Option<(Timestamp, Uuid)>, limit: u32) -> StoreFuture<'s, Vec<Alert>> {
        Box::pin(async move {
            let (opened_at, id) = after.unwrap_or((Timestamp::MAX, Uuid::max()));
            let limit = i64::from(limit.min(MAX_PAGE));
            alerts(
                &self
                    .0
                    .driver
                    .all(shared!("alert_list"), &[opened_at.into(), id.into(), limit.into()])
                    .await?,
            )
        })
    }

    /// Deletes at most `limit` incidents that were resolved before a time. Returns how many.
    pub fn delete_resolved(self, resolved_before: Timestamp, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let Some(now) = self.0.forget_until().await? else { return Ok(0) };
            let values = [now.moved(resolved_before).into(), i64::from(limit).into()];
            self.0.driver.execute(paired!("alert_forget"), &values).await
        })
    }

    /// Changes one incident and enqueues messages in one transaction. Does neither if there was nothing to change.
    async fn with_messages(
        self,
        change: Statement,
        values: &[SqlValue<'_>],
        messages: &[NumberedMessage],
    ) -> Result<bool, StoreError> {
        let work = async |transaction: &mut Transaction<'_>| {
            if transaction.connection().execute(change, values).await? == 0 {
                return Ok(None);
            }
            transaction.enqueue(messages).await.map(Some)
        };
        let is_done = self.0.driver.transact(work).await?.is_some();
        for (_, message) in messages.iter().filter(|_| is_done) {
            self.0.queues().wake(&message.queue);
        }
        Ok(is_done)
    }
}
