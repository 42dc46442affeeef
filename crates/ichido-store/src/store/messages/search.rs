//! Listing messages by a filter.
//!
//! Guarantee: a search examines a bounded number of messages, whatever its filter and the size of the store, and says where to
//! continue. It first reads ids from the index that selects best, newest first, and then the messages of these ids.
// SPEC D13, E3.

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use super::super::Messages;
use crate::check;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::message::limits::{MAX_PAGE, MAX_SEARCHED};
use crate::message::{MessageFilter, MessagePage, MessageRow, QueueName};
use crate::rows;
use crate::statement::{SqlValue, paired, shared};

/// How many times more ids than before are read if too few of the messages match.
const GROWTH: u32 = 4;

impl<'s> Messages<'s> {
    /// Lists messages, newest first, with their requests.
    ///
    /// At most [`MAX_PAGE`], whatever `limit` is. [`MessageFilter::after`] selects the next page. If few messages match, it may
    /// read many; [`Messages::search`] does not.
    pub fn list(self, filter: &'s MessageFilter, limit: u32) -> StoreFuture<'s, Vec<MessageRow>> {
        Box::pin(async move { Ok(self.matching(filter, limit, u32::MAX).await?.messages) })
    }

    /// Lists like [`Messages::list`], but examines at most [`MAX_SEARCHED`] messages.
    pub fn search(self, filter: &'s MessageFilter, limit: u32) -> StoreFuture<'s, MessagePage> {
        Box::pin(async move { self.matching(filter, limit, MAX_SEARCHED).await })
    }

    async fn matching(
        self,
        filter: &MessageFilter,
        limit: u32,
        max_examined: u32,
    ) -> Result<MessagePage, StoreError> {
        check::no_nul("the identity", filter.identity.as_deref().unwrap_or_default())?;
        check::no_nul("the trace id", filter.trace_id.as_deref().unwrap_or_default())?;
        check::no_nul("the receipt", filter.receipt.as_deref().unwrap_or_default())?;
        let limit = limit.min(MAX_PAGE);
        let known = self.ids_of_owner(filter).await?;
        let (mut page, mut after, mut count) = (MessagePage::default(), filter.begin(), limit);
        while page.messages.len() < limit as usize {
            count = count.min(max_examined - page.examined).min(MAX_SEARCHED);
            let mut ids: Vec<Uuid> = match &known {
                Some(ids) => ids.iter().copied().filter(|id| *id < after).collect(),
                None => self.candidates(filter, after, count).await?,
            };
            let mut is_last = known.is_some() || ids.len() < count as usize;
            if let Some(prefix) = filter.id
                && let Some(end) = ids.iter().position(|id| *id < prefix.first())
            {
                ids.truncate(end);
                is_last = true;
            }
            page.examined = page.examined.saturating_add(u32::try_from(ids.len()).unwrap_or(u32::MAX));
            after = ids.last().copied().unwrap_or(after);
            let missing = limit - u32::try_from(page.messages.len()).unwrap_or(limit);
            page.messages.extend(self.read(filter, &ids, missing).await?);
            // A full page ends with its last message; those after it were examined for nothing.
            let last = page.messages.last().filter(|_| page.messages.len() == limit as usize);
            let end = last.map_or(after, |last| last.id);
            let is_complete = is_last && end == after;
            page.next = (!is_complete).then_some(end);
            if is_complete || max_examined <= page.examined {
                break;
            }
            count = count.saturating_mul(GROWTH);
        }
        Ok(page)
    }

    /// Returns the messages of the filter's key or identity, newest first; `None` if they are too many, or none is given.
    async fn ids_of_owner(self, filter: &MessageFilter) -> Result<Option<Vec<Uuid>>, StoreError> {
        let (mut ids, is_complete) = match (&filter.key, &filter.identity, &filter.queue) {
            (Some(key), Some(identity), Some(queue)) => {
                (self.find(queue, identity, key).await?.into_iter().collect(), true)
            }
            (Some(key), _, _) => {
                let found = self.find_by_key(key).await?;
                (found.ids, found.is_complete)
            }
            (None, Some(identity), queue) => {
                let queue = queue.as_ref().map(QueueName::as_str);
                let values = [identity.as_str().into(), queue.into(), i64::from(MAX_PAGE).into()];
                let rows = self.0.driver.all(paired!("message_of_identity"), &values).await?;
                let ids: Vec<Uuid> = rows.iter().map(|row| row.uuid("id")).collect::<Result<_, _>>()?;
                let is_complete = ids.len() < MAX_PAGE as usize;
                (ids, is_complete)
            }
            (None, None, _) => return Ok(None),
        };
        ids.sort_unstable_by(|one, other| other.cmp(one));
        Ok(is_complete.then_some(ids))
    }

    /// Reads ids of messages that may match, newest first, from the index that selects best.
    async fn candidates(
        self,
        filter: &MessageFilter,
        after: Uuid,
        count: u32,
    ) -> Result<Vec<Uuid>, StoreError> {
        let mut values: Vec<SqlValue<'_>> = vec![after.into(), i64::from(count).into()];
        let statement = match (filter.trace_id.as_deref(), filter.live_state(), filter.code) {
            (Some(trace_id), _, _) => {
                values.push(trace_id.into());
                shared!("message_ids_trace")
            }
            // Waiting messages may be few among those that ever failed with the code; dead ones are rather many.
            (None, Some(state), code)
                if code.is_none() || !matches!(state, StateName::Dead | StateName::Parked) =>
            {
                values.push(state.as_str().into());
                values.push(filter.queue.as_ref().map(QueueName::as_str).into());
                paired!("message_ids_live")
            }
            (None, _, Some(code)) => {
                values.push(code.as_str().into());
                shared!("message_ids_code")
            }
            (None, _, None) => shared!("message_ids"),
        };
        // A generic plan would not know how few rows are read.
        let rows = self.0.driver.all(statement.with_custom_plan(), &values).await?;
        rows.iter().map(|row| Ok(row.uuid("id")?)).collect()
    }

    /// Reads those of these messages that match, newest first.
    async fn read(
        self,
        filter: &MessageFilter,
        ids: &[Uuid],
        limit: u32,
    ) -> Result<Vec<MessageRow>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let values = [
            filter.queue.as_ref().map(QueueName::as_str).into(),
            filter.status.map(StateName::as_str).into(),
            filter.identity.as_deref().into(),
            filter.key.as_ref().map(IdempotencyKey::as_str).into(),
            filter.code.map(ErrorCode::as_str).into(),
            filter.created_from.into(),
            filter.created_before.into(),
            ids.into(),
            i64::from(limit).into(),
            filter.trace_id.as_deref().into(),
            filter.receipt.as_deref().into(),
        ];
        self.0.driver.all(paired!("message_list"), &values).await?.iter().map(rows::message_row).collect()
    }
}
