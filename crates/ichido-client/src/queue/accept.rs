//! Accepts actions: they are on disk before the caller is told.

use http::HeaderMap;
use ichido_core::key::IdempotencyKey;
use sqlx::Row as _;

use super::entry::{EntryId, Reason, State, reason_of, state_of};
use super::error::QueueError;
use super::fields;
use super::write_transaction::WriteTransaction;
use super::{MAX_DESTINATION_BYTES, MAX_ENTRIES, MAX_ENTRY_BYTES, OfflineQueue};
use crate::action::Action;

/// The result of accepting an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// It was added to the queue.
    New {
        /// Its entry.
        id: EntryId,
    },
    /// It was already in the queue and is unchanged.
    Same {
        /// Its entry.
        id: EntryId,
        /// The entry's state.
        state: State,
        /// The reason for the state, if there is one.
        reason: Option<Reason>,
    },
    /// Its key is already in the queue with different bytes, so it was not accepted. A new action needs a new key.
    Conflict {
        /// The entry that has the key.
        id: EntryId,
    },
}

impl OfflineQueue {
    /// Accepts actions for one destination, in order.
    ///
    /// The destination can have any name; usually it is its base URL. The results are returned once everything
    /// accepted is on disk. An error means that nothing was accepted; calling it again is always safe. Method, path,
    /// key and the field `Ichido-Identity` identify an action.
    pub async fn accept(
        &self,
        destination: &str,
        actions: &[Action],
    ) -> Result<Vec<AcceptOutcome>, QueueError> {
        check_destination(destination)?;
        let actions: Vec<(&Action, &IdempotencyKey)> = actions.iter().map(check).collect::<Result<_, _>>()?;
        let mut tx = self.write().await?;
        let count = sqlx::query(include_str!("sql/entry_count.sql")).fetch_one(tx.connection()).await?;
        let mut room = MAX_ENTRIES - count.try_get::<i64, _>(0)?;
        let mut accepted = Vec::with_capacity(actions.len());
        for (action, key) in actions {
            let outcome = match find(&mut tx, destination, action, key).await? {
                Some(found) => found,
                None if room <= 0 => return Err(QueueError::Full),
                None => {
                    room -= 1;
                    AcceptOutcome::New { id: add(&mut tx, destination, action, key).await? }
                }
            };
            accepted.push(outcome);
        }
        tx.commit().await?;
        self.notify_senders();
        Ok(accepted)
    }
}

pub(super) fn check_destination(destination: &str) -> Result<(), QueueError> {
    let is_name =
        (1..=MAX_DESTINATION_BYTES).contains(&destination.len()) && !destination.contains(char::is_control);
    if is_name { Ok(()) } else { Err(QueueError::Destination) }
}

/// Checks an action and returns its key. Without a key it could take effect twice.
fn check(action: &Action) -> Result<(&Action, &IdempotencyKey), QueueError> {
    let key = action.key.as_ref().ok_or(QueueError::NoKey)?;
    let fields: usize = action.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let bytes = action.body.len() + fields + action.path.as_str().len();
    if MAX_ENTRY_BYTES < bytes {
        return Err(QueueError::TooLarge { bytes });
    }
    fields::secret(&action.headers).map_or(Ok((action, key)), |name| Err(QueueError::Secret(name)))
}

async fn find(
    tx: &mut WriteTransaction,
    destination: &str,
    action: &Action,
    key: &IdempotencyKey,
) -> Result<Option<AcceptOutcome>, QueueError> {
    let found = sqlx::query(include_str!("sql/entry_find.sql"))
        .bind(destination)
        .bind(action.method.as_str())
        .bind(action.path.as_str())
        .bind(fields::identity(&action.headers))
        .bind(key.as_str())
        .fetch_optional(tx.connection())
        .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let id = EntryId(row.try_get("id")?);
    let headers: Option<HeaderMap> = fields::decode(row.try_get("headers")?);
    let is_same =
        headers.as_ref() == Some(&action.headers) && row.try_get::<&[u8], _>("body")? == action.body;
    Ok(Some(if is_same {
        AcceptOutcome::Same { id, state: state_of(&row)?, reason: reason_of(&row)? }
    } else {
        AcceptOutcome::Conflict { id }
    }))
}

async fn add(
    tx: &mut WriteTransaction,
    destination: &str,
    action: &Action,
    key: &IdempotencyKey,
) -> Result<EntryId, QueueError> {
    let created = tx.watch.last.as_micros();
    let row = sqlx::query(include_str!("sql/entry_add.sql"))
        .bind(destination)
        .bind(action.method.as_str())
        .bind(action.path.as_str())
        .bind(fields::identity(&action.headers))
        .bind(key.as_str())
        .bind(fields::encode(&action.headers))
        .bind(action.body.as_ref())
        .bind(created)
        .bind(i64::from(action.previous_attempts))
        // Due at once.
        .bind(0_i64)
        .bind(action.cause.as_str())
        .fetch_one(tx.connection())
        .await?;
    Ok(EntryId(row.try_get("id")?))
}
