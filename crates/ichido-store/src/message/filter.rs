//! Which messages are listed, and the pages of the list.
// SPEC D13.

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use super::{IdPrefix, MessageRow, QueueName};

/// A filter of messages, which are listed newest first.
///
/// Indexes find a key, a trace id, a code, a state that is not final, the first digits of an id, and an identity with few messages.
/// Other members are compared message by message.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    /// With these first digits of the id.
    pub id: Option<IdPrefix>,
    /// With this queue.
    pub queue: Option<QueueName>,
    /// In this state.
    pub status: Option<StateName>,
    /// With this identity.
    pub identity: Option<String>,
    /// With this key.
    pub key: Option<IdempotencyKey>,
    /// With this correlation id.
    pub trace_id: Option<String>,
    /// With this receipt. No index finds it, because every receipt would pay for one.
    pub receipt: Option<String>,
    /// With this code as the last error.
    pub code: Option<ErrorCode>,
    /// Enqueued at this time or later.
    pub created_from: Option<Timestamp>,
    /// Enqueued before this time.
    pub created_before: Option<Timestamp>,
    /// Older than this message: the last one of the previous page.
    pub after: Option<Uuid>,
}

impl MessageFilter {
    /// Returns the state, if it is not final. Such messages are in small tables.
    pub(crate) fn live_state(&self) -> Option<StateName> {
        self.status.filter(|status| match status {
            StateName::Queued
            | StateName::Sending
            | StateName::Failed
            | StateName::Parked
            | StateName::Dead => true,
            StateName::Sent | StateName::Cancelled => false,
        })
    }

    /// Returns the id before which the list begins.
    pub(crate) fn begin(&self) -> Uuid {
        let after = self.after.unwrap_or(Uuid::max());
        self.id.map_or(after, |prefix| after.min(prefix.end()))
    }
}

/// A page of messages.
#[derive(Clone, Debug, Default)]
pub struct MessagePage {
    /// The messages that match, newest first.
    pub messages: Vec<MessageRow>,
    /// [`MessageFilter::after`] of the next page; `None` if there is none. A page can be short and still have one, since the
    /// number of messages that one search examines is limited.
    pub next: Option<Uuid>,
    /// How many messages were examined.
    pub examined: u32,
}

/// The messages of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageMatches {
    /// Their ids.
    pub ids: Vec<Uuid>,
    /// Whether these are all.
    pub is_complete: bool,
    /// The number of messages whose keys were read, if they were read one by one.
    pub scanned: u32,
    /// When the oldest of these was enqueued.
    pub since: Option<Timestamp>,
}
