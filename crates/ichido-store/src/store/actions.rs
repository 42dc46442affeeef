//! The operators' actions that change nothing by themselves, and the list of all.

use uuid::Uuid;

use super::Actions;
use crate::action::{Action, ActionRow, action_row};
use crate::error::StoreError;
use crate::message::limits;
use crate::statement::shared;
use crate::transaction::Transaction;

impl Actions<'_> {
    /// Records an action that changes nothing by itself, such as the beginning and the end of something long.
    pub async fn add(self, action: &Action) -> Result<(), StoreError> {
        action.check()?;
        let work = async |transaction: &mut Transaction<'_>| transaction.record(action).await.map(Some);
        self.0.driver.transact(work).await.map(drop)
    }

    /// Actions, the last one first; `before` is [`ActionRow::number`] of the last one of the page before. At most
    /// [`limits::PAGE_MAX`].
    pub async fn list(self, before: Option<u64>, limit: u32) -> Result<Vec<ActionRow>, StoreError> {
        let before = before.and_then(|number| i64::try_from(number).ok()).unwrap_or(i64::MAX);
        let limit = i64::from(limit.min(limits::PAGE_MAX));
        let rows = self.0.driver.all(shared!("action_list"), &[before.into(), limit.into()]).await?;
        rows.iter().map(action_row).collect()
    }

    /// The actions of one subject, in order.
    pub async fn of(self, subject: Uuid) -> Result<Vec<ActionRow>, StoreError> {
        let rows = self.0.driver.all(shared!("action_of"), &[subject.into()]).await?;
        rows.iter().map(action_row).collect()
    }
}
