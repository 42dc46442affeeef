//! Operators' actions that change no other row, and the list of all actions.

use uuid::Uuid;

use super::Actions;
use crate::action::{ActionRow, AuditAction, action_row};
use crate::future::StoreFuture;
use crate::message::limits;
use crate::statement::shared;
use crate::transaction::Transaction;

impl<'s> Actions<'s> {
    /// Records an action that changes no other row, such as the start of a bulk operation or its end.
    pub fn record(self, action: &'s AuditAction) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            action.check()?;
            let work = async |transaction: &mut Transaction<'_>| transaction.record(action).await.map(Some);
            self.0.driver.transact(work).await.map(drop)
        })
    }

    /// Lists actions, newest first. `before` is [`ActionRow::number`] of the last one of the previous page. At most
    /// [`limits::MAX_PAGE`].
    pub fn list(self, before: Option<u64>, limit: u32) -> StoreFuture<'s, Vec<ActionRow>> {
        Box::pin(async move {
            let before = before.and_then(|number| i64::try_from(number).ok()).unwrap_or(i64::MAX);
            let limit = i64::from(limit.min(limits::MAX_PAGE));
            let rows = self.0.driver.all(shared!("action_list"), &[before.into(), limit.into()]).await?;
            rows.iter().map(action_row).collect()
        })
    }

    /// Lists the actions of one subject, in order.
    pub fn of(self, subject: Uuid) -> StoreFuture<'s, Vec<ActionRow>> {
        Box::pin(async move {
            let rows = self.0.driver.all(shared!("action_of"), &[subject.into()]).await?;
            rows.iter().map(action_row).collect()
        })
    }
}
