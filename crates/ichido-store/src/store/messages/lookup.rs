//! Finding messages by their key, or by its hash.
// SPEC C5, D10.

use ichido_core::key::{IdempotencyKey, KeyHash};
use uuid::Uuid;

use super::super::Messages;
use crate::check;
use crate::columns::Columns as _;
use crate::future::StoreFuture;
use crate::message::limits::{MAX_KEY_PAIRS, MAX_KEYS_SCANNED, MAX_PAGE};
use crate::message::{MessageMatches, QueueName};
use crate::statement::{Column, SqlValue, paired, shared};

/// The number of keys that are read at once.
const KEYS_PAGE: u32 = 1_000;

impl<'s> Messages<'s> {
    /// Finds the message of a queue, an identity and a key.
    pub fn find(
        self,
        queue: &'s QueueName,
        identity: &'s str,
        key: &'s IdempotencyKey,
    ) -> StoreFuture<'s, Option<Uuid>> {
        Box::pin(async move {
            check::no_nul("the identity", identity)?;
            let cells = [queue.as_str(), identity, key.as_str()];
            let rows: [Column<'_>; 3] = cells.map(|cell| std::iter::once(cell).collect());
            let found = self.0.driver.optional(paired!("enqueue_find"), &[SqlValue::Rows(&rows)]).await?;
            Ok(found.map(|row| row.uuid("id")).transpose()?)
        })
    }

    /// Finds the messages of a key, whatever their queue and identity, at most [`MAX_PAGE`].
    ///
    /// It visits each pair of queue and identity once, [`MAX_KEY_PAIRS`] of them at most: no index is written for it.
    pub fn find_by_key(self, key: &'s IdempotencyKey) -> StoreFuture<'s, MessageMatches> {
        Box::pin(async move {
            let (pairs, limit) = (i64::from(MAX_KEY_PAIRS), i64::from(MAX_PAGE));
            let values = [key.as_str().into(), pairs.into(), limit.into()];
            let rows = self.0.driver.all(shared!("message_of_key"), &values).await?;
            let ids: Vec<Option<Uuid>> =
                rows.iter().map(|row| row.uuid_or_none("id")).collect::<Result<_, _>>()?;
            let is_complete = ids.len() < MAX_PAGE as usize && ids.iter().all(Option::is_some);
            let ids = ids.into_iter().flatten().collect();
            Ok(MessageMatches { ids, is_complete, ..MessageMatches::default() })
        })
    }

    /// Finds the messages whose keys have a hash, among the newest [`MAX_KEYS_SCANNED`].
    ///
    /// Messages are stored under their keys, not under hashes, so their keys are read one after another.
    pub fn find_by_hash(self, hash: KeyHash) -> StoreFuture<'s, MessageMatches> {
        Box::pin(async move {
            let mut found = MessageMatches::default();
            let mut after = Uuid::max();
            while found.scanned < MAX_KEYS_SCANNED && !found.is_complete {
                let values = [after.into(), i64::from(KEYS_PAGE).into()];
                let rows = self.0.driver.all(shared!("message_keys"), &values).await?;
                for row in &rows {
                    after = row.uuid("id")?;
                    found.scanned += 1;
                    found.since = Some(row.timestamp("created_at")?);
                    // A stored key is valid, and if one is not, its hash was never logged.
                    if IdempotencyKey::parse(row.text("key")?).is_ok_and(|key| key.hash() == hash) {
                        found.ids.push(after);
                    }
                }
                found.is_complete = rows.len() < KEYS_PAGE as usize;
            }
            Ok(found)
        })
    }
}
