//! Detects duplicates before a message is enqueued, on either database: by key, and by equal content.

use std::collections::HashMap;

use ichido_core::time::Timestamp;

use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::message::{EnqueueOutcome, Enqueued, FirstMessage, NumberedMessage, compare_with_first};
use crate::micros;
use crate::statement::{DbConnection, SqlValue, column, paired, shared};

/// Finds the first messages under these keys, by position.
pub(crate) async fn find_first(
    connection: &mut DbConnection<'_>,
    wanted: &[&NumberedMessage],
) -> Result<HashMap<usize, FirstMessage>, StoreError> {
    let keys = [
        column(wanted, |(_, new)| new.queue.as_str()),
        column(wanted, |(_, new)| new.identity.as_str()),
        column(wanted, |(_, new)| new.key.as_str()),
    ];
    let rows = connection.all(paired!("enqueue_find"), &[SqlValue::Rows(&keys)]).await?;
    rows.iter()
        .map(|row| {
            let position = usize::try_from(row.number("position")?).unwrap_or(usize::MAX);
            let content_type = row.text("content_type")?.to_owned();
            Ok((position, FirstMessage { id: row.uuid("id")?, digest: row.digest("digest")?, content_type }))
        })
        .collect()
}

/// Returns the outcome for a message whose key, or whose content within its window, was used before.
///
/// Returns `None` if the message is new. If it is compared by content, its content is then reserved.
// SPEC A7.
pub(crate) async fn find_duplicate(
    connection: &mut DbConnection<'_>,
    message: &NumberedMessage,
    retention: Timestamp,
) -> Result<Option<EnqueueOutcome>, StoreError> {
    let (id, new) = message;
    // The key first: a repetition of the same action is that action, not merely equal content.
    if let Some(first) = find_first(connection, &[message]).await?.remove(&0) {
        return Ok(Some(compare_with_first(message, &first)));
    }
    let Some(same) = &new.same_content else { return Ok(None) };
    let content = SqlValue::from(&same.content.as_bytes()[..]);
    let content = [new.queue.as_str().into(), (&*new.identity).into(), content];
    let place = [(*id).into(), micros(same.window).into(), SqlValue::Now, retention.into()];
    let values = [&content[..], &place].concat();
    if connection.optional(paired!("content_claim"), &values).await?.is_some() {
        return Ok(None);
    }
    let first = connection.optional(shared!("content_find"), &content).await?.ok_or(StoreError::Busy)?;
    Ok(Some(Ok(Enqueued::SameContent { id: first.uuid("message_id")? })))
}
