//! What operators do to other things than messages, each an entry of the trail.

use ichido_core::ledger::{Policy, RecordName, Resolution, resolve};
use uuid::Uuid;

use super::Store;
use super::keys::{RESOLVE_ROUNDS_MAX, resolved_outcome};
use crate::action::{Action, ActionRow, action_row};
use crate::check;
use crate::columns::Columns as _;
use crate::driver::{on, read};
use crate::error::StoreError;
use crate::ledger::{KeyOutcome, KeyResolved, KeySettle, KeySettled, Response};
use crate::message::{QueueName, limits};
use crate::record::settled_name;
use crate::statement::{Value, paired, shared};
use crate::transaction::Transaction;

impl Store {
    /// Stops (`paused`) or resumes the claiming of a queue, on all nodes, and records who did. What is claimed goes on; messages are
    /// still taken in.
    pub async fn queue_pause(
        &self,
        queue: &QueueName,
        paused: bool,
        by: Option<&str>,
    ) -> Result<(), StoreError> {
        check::text("the name of who pauses", by.unwrap_or_default(), limits::EXCERPT_BYTES_MAX)?;
        let work = async |transaction: &mut Transaction<'_>| {
            let mut connection = transaction.connection();
            let before = connection.optional(paired!("queue_paused"), &[queue.as_str().into()]).await?;
            let was = before.map(|row| row.truth("paused")).transpose()?.unwrap_or(false);
            let values = [queue.as_str().into(), paused.into(), by.into(), Value::Now];
            connection.execute(paired!("queue_pause"), &values).await?;
            transaction.record(&Action::pause(queue, was, paused, by)).await.map(Some)
        };
        self.driver.transact(work).await?;
        if !paused {
            self.queue_wake(queue);
        }
        Ok(())
    }

    /// The same as [`Store::key_resolve`] by a person, recorded with what it changes, in one transaction.
    pub async fn key_decide(
        &self,
        name: &RecordName,
        resolution: Resolution,
        response: Option<Response>,
        policy: &Policy,
        by: &str,
    ) -> Result<KeyResolved, StoreError> {
        check::text("the name of who decides", by, limits::EXCERPT_BYTES_MAX)?;
        for _ in 0..RESOLVE_ROUNDS_MAX {
            let looking = read(|| async { on!(&*self.driver, driver => driver.key_find(name).await) });
            let Some((found, now)) = looking.await? else {
                return Ok(KeyResolved::Missing);
            };
            let settlement = match resolve(&found.record, resolution, policy, now) {
                Ok(settlement) => settlement,
                Err(error) => return Ok(KeyResolved::Refused(error)),
            };
            let outcome = resolved_outcome(settlement, resolution, response.clone(), policy);
            let to = match &outcome {
                KeyOutcome::Keep { settled, .. } => settled_name(*settled),
                KeyOutcome::Release => "released",
                KeyOutcome::Hold => "unknown",
            };
            let settle = KeySettle { name: name.clone(), fence: found.record.fence, outcome };
            settle.check()?;
            let (settle, action) = (settle.bounded(), Action::decision(name, to, by));
            let work = async |transaction: &mut Transaction<'_>| match transaction.settle(&settle).await? {
                KeySettled::Stands => transaction.record(&action).await.map(Some),
                // Not ours to settle: its owner reported late, or somebody took it over. The next look sees it.
                _ => Ok(None),
            };
            if self.driver.transact(work).await?.is_some() {
                self.key_wake(name, settle.fence);
                return Ok(KeyResolved::Stands);
            }
        }
        Err(StoreError::Busy)
    }

    /// Records an action that changes nothing by itself, such as the beginning and the end of something long.
    pub async fn action_add(&self, action: &Action) -> Result<(), StoreError> {
        action.check()?;
        let work = async |transaction: &mut Transaction<'_>| transaction.record(action).await.map(Some);
        self.driver.transact(work).await.map(drop)
    }

    /// Actions, the last one first; `before` is [`ActionRow::number`] of the last one of the page before. At most
    /// [`limits::PAGE_MAX`].
    pub async fn action_list(&self, before: Option<u64>, limit: u32) -> Result<Vec<ActionRow>, StoreError> {
        let before = before.and_then(|number| i64::try_from(number).ok()).unwrap_or(i64::MAX);
        let limit = i64::from(limit.min(limits::PAGE_MAX));
        let rows = self.driver.all(shared!("action_list"), &[before.into(), limit.into()]).await?;
        rows.iter().map(action_row).collect()
    }

    /// The actions of one subject, in order.
    pub async fn actions_of(&self, subject: Uuid) -> Result<Vec<ActionRow>, StoreError> {
        let rows = self.driver.all(shared!("action_of"), &[subject.into()]).await?;
        rows.iter().map(action_row).collect()
    }
}
