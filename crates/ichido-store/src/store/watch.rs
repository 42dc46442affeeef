//! What is seen and tended by people and by the caretaker.

use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::Store;
use crate::bounded;
use crate::check;
use crate::driver::{on, read};
use crate::error::StoreError;
use crate::message::{Count, Letter, LetterState, MessageFilter, MessageRow, QueueName, Transition};
use crate::node::{DUTY_LEASE_MAX, Duty, LettersKept, Node, QueuePause, SharedPace};
use crate::rescue::Unserved;

/// The longest name of a kind of key.
const KIND_BYTES_MAX: usize = 32;

impl Store {
    /// What the store's clock says: the database's, and what [`Store::skew_by`] added. Moments that go into the store, such as when a
    /// failed message is due or before when messages are forgotten, are counted from it.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.clock().await) }).await
    }

    /// One message.
    pub async fn message_get(&self, id: Uuid) -> Result<Option<MessageRow>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.message(id).await) }).await
    }

    /// Messages, newest first, whole requests included; at most [`limits::PAGE_MAX`](crate::message::limits::PAGE_MAX), whatever
    /// `limit` says. The next page is had by [`MessageFilter::after`].
    pub async fn message_list(
        &self,
        filter: &MessageFilter,
        limit: u32,
    ) -> Result<Vec<MessageRow>, StoreError> {
        check::no_nul("the identity", filter.identity.as_deref().unwrap_or_default())?;
        read(|| async { on!(&*self.driver, driver => driver.messages(filter, limit).await) }).await
    }

    /// Every transition of a message, in order.
    pub async fn message_transitions(&self, id: Uuid) -> Result<Vec<Transition>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.transitions(id).await) }).await
    }

    /// How many messages of each queue are in each state.
    pub async fn queue_counts(&self) -> Result<Vec<Count>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.counts().await) }).await
    }

    /// By which kind of key the calls for a queue's messages go out: what was said first stands, and is answered to everybody
    /// later. Under another kind a second try would be another action to its receiver (SPEC D7).
    pub async fn queue_keys(&self, queue: &QueueName, kind: &str) -> Result<String, StoreError> {
        check::name("the kind of key", kind, KIND_BYTES_MAX)?;
        on!(&*self.driver, driver => driver.queue_keys(queue, kind).await)
    }

    /// When the oldest message of a queue that could be claimed now was put in; `None` when none waits. What is delayed, or waits for
    /// its next try, does not count.
    pub async fn queue_oldest(&self, queue: &QueueName) -> Result<Option<Timestamp>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.oldest(queue).await) }).await
    }

    /// Since when the dead or parked message of a queue that waits longest for a person is so; `None` when none waits.
    pub async fn letter_oldest(
        &self,
        state: LetterState,
        queue: &QueueName,
    ) -> Result<Option<Timestamp>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.oldest_letter(state, queue).await) }).await
    }

    /// Claims of other queues than these that lapsed so long ago, and that nobody has rescued: whoever serves a queue rescues it within
    /// seconds, so nobody serves those. At most 100 queues are told of.
    pub async fn work_lapsed_elsewhere(
        &self,
        queues: &[QueueName],
        ago: Duration,
    ) -> Result<Vec<Unserved>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.lapsed_elsewhere(queues, bounded(ago)).await) })
            .await
    }

    /// Dead or parked messages with their requests, the last to become so first (SPEC E3), less those that a person is done with;
    /// [`Store::letter_page`] filters, and leaves requests out. `after` is [`Letter::since`] and the id of the last one of the
    /// page before. At most [`limits::PAGE_MAX`](crate::message::limits::PAGE_MAX) are listed.
    pub async fn letter_list(
        &self,
        state: LetterState,
        queue: Option<&QueueName>,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Letter>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.letters(state, queue, after, limit).await) })
            .await
    }

    /// Forgets at most `limit` messages that were sent or cancelled before a moment, with their history; answers how many. Dead and
    /// parked ones are kept (SPEC E3). The key of a message that is forgotten is new again, so the clock is believed no further than by
    /// [`Store::key_sweep`]. Where seals are made under a key, it is
    /// [`Store::message_forget_keyed`] that the audit believes.
    pub async fn message_forget(&self, finished_before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let Some(now) = self.forget_until().await? else { return Ok(0) };
        on!(&*self.driver, driver => driver.forget(None, now.moved(finished_before), limit).await)
    }

    /// Forgets at most `limit` messages of an identity in a queue, with their history, whatever their age; answers how many. Only what is
    /// over goes: what was sent or cancelled, and letters that a person has closed. It is for whoever must leave nothing behind of
    /// somebody who has gone. `key` is the one that seals are made under, if any.
    pub async fn message_forget_of(
        &self,
        key: Option<&AuditKey>,
        queue: &QueueName,
        identity: &str,
        limit: u32,
    ) -> Result<u64, StoreError> {
        check::no_nul("the identity", identity)?;
        on!(&*self.driver, driver => driver.forget_of(key, (queue, identity), limit).await)
    }

    /// Forgets at most `limit` contents whose window is over (SPEC A7); answers how many. Equal content is new from the end of its
    /// window on, swept or not, once retention has come there ([`Store::key_sweep`]): this only gives the room back.
    pub async fn content_sweep(&self, limit: u32) -> Result<u64, StoreError> {
        let Some(now) = self.forget_until().await? else { return Ok(0) };
        on!(&*self.driver, driver => driver.sweep_contents(now.until, limit).await)
    }

    /// Folds at most `limit` changes of counts into the counts; answers how many. The counts stay what they are, and are read
    /// quicker. On SQLite there is nothing to fold.
    pub async fn queue_counts_fold(&self, limit: u32) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.fold_counts(limit).await)
    }

    /// A destination's pace; `None` when nobody has written one.
    pub async fn pace_read(&self, destination: &str) -> Result<Option<SharedPace>, StoreError> {
        check::no_nul("the destination", destination)?;
        read(|| async { on!(&*self.driver, driver => driver.pace_read(destination).await) }).await
    }

    /// Writes a destination's pace over the version that was read; `false` when somebody else was quicker.
    pub async fn pace_write(&self, destination: &str, version: i64, pace: &[u8]) -> Result<bool, StoreError> {
        check::no_nul("the destination", destination)?;
        on!(&*self.driver, driver => driver.pace_write(destination, version, pace).await)
    }

    /// The queues that were ever paused, and how they stand; those that are left out run.
    pub async fn queue_pauses(&self) -> Result<Vec<QueuePause>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.pauses().await) }).await
    }

    /// Says that a node lives.
    pub async fn node_beat(&self, node: Uuid, name: &str) -> Result<(), StoreError> {
        check::no_nul("the node's name", name)?;
        self.noted(on!(&*self.driver, driver => driver.beat(node, name).await))
    }

    /// All nodes ever heard of, the last heard of first. None is ever forgotten; [`Node::seen_at`] tells which still live.
    pub async fn node_list(&self) -> Result<Vec<Node>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.nodes().await) }).await
    }

    /// Asks for a duty, or to keep it: `true` for one node at a time, until its lease lapses, after an hour at the latest.
    pub async fn caretaker_claim(
        &self,
        duty: Duty<'_>,
        node: Uuid,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        on!(&*self.driver, driver => driver.take_care(&duty.name(), node, lease.min(DUTY_LEASE_MAX)).await)
    }

    /// Who has [`Duty::Letters`], of any queue, its lease not lapsed.
    pub async fn letters_kept(&self) -> Result<Vec<LettersKept>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.letters_kept().await) }).await
    }

    /// Leaves all duties of a node that stops to the next one, which need not wait for their leases then.
    pub async fn caretaker_release(&self, node: Uuid) -> Result<(), StoreError> {
        on!(&*self.driver, driver => driver.leave_care(node).await)
    }
}
