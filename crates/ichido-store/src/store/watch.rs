//! What is seen and tended by people and by the caretaker.

use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::Stage;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use uuid::Uuid;

use super::Store;
use crate::check;
use crate::columns::Columns as _;
use crate::driver::{on, read};
use crate::error::StoreError;
use crate::message::limits::{LEASE_MAX, PAGE_MAX};
use crate::message::{Count, Letter, LetterState, MessageFilter, MessageRow, QueueName, Transition};
use crate::micros;
use crate::node::{DUTY_LEASE_MAX, Duty, LettersKept, Node, QueuePause, SharedPace};
use crate::rescue::{UNSERVED_MAX, Unserved};
use crate::rows;
use crate::statement::{Value, paired, shared};

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
        let row = self.driver.optional(shared!("message_get"), &[id.into()]).await?;
        row.as_ref().map(rows::message_row).transpose()
    }

    /// Messages, newest first, whole requests included; at most [`limits::PAGE_MAX`](crate::message::limits::PAGE_MAX), whatever
    /// `limit` says. The next page is had by [`MessageFilter::after`].
    pub async fn message_list(
        &self,
        filter: &MessageFilter,
        limit: u32,
    ) -> Result<Vec<MessageRow>, StoreError> {
        check::no_nul("the identity", filter.identity.as_deref().unwrap_or_default())?;
        let statement = if filter.of_what_is_under_way() {
            paired!("message_list_live")
        } else {
            shared!("message_list")
        };
        let values = [
            filter.queue.as_ref().map(QueueName::as_str).into(),
            filter.status.map(Stage::as_str).into(),
            filter.identity.as_deref().into(),
            filter.key.as_ref().map(IdempotencyKey::as_str).into(),
            filter.code.map(ErrorCode::as_str).into(),
            filter.created_from.into(),
            filter.created_before.into(),
            filter.after.unwrap_or(Uuid::max()).into(),
            i64::from(limit.min(PAGE_MAX)).into(),
        ];
        // A plan for any filter would take each of them for a narrow one.
        self.driver.all(statement.planned_anew(), &values).await?.iter().map(rows::message_row).collect()
    }

    /// Every transition of a message, in order.
    pub async fn message_transitions(&self, id: Uuid) -> Result<Vec<Transition>, StoreError> {
        // The claim first: should it end between the two looks, the events have it.
        let lease = self.driver.optional(paired!("step_lease"), &[id.into()]).await?;
        let events = self.driver.all(shared!("event_list"), &[id.into()]).await?;
        rows::transitions(&events, lease.as_ref())
    }

    /// How many messages of each queue are in each state.
    pub async fn queue_counts(&self) -> Result<Vec<Count>, StoreError> {
        self.driver.all(paired!("count_read"), &[]).await?.iter().map(rows::count).collect()
    }

    /// By which kind of key the calls for a queue's messages go out: what was said first stands, and is answered to everybody
    /// later. Under another kind a second try would be another action to its receiver (SPEC D7).
    pub async fn queue_keys(&self, queue: &QueueName, kind: &str) -> Result<String, StoreError> {
        check::name("the kind of key", kind, KIND_BYTES_MAX)?;
        let row = self.driver.changed(shared!("queue_keys"), &[queue.as_str().into(), kind.into()]).await?;
        Ok(row.ok_or(sqlx::Error::RowNotFound)?.text("kind")?.to_owned())
    }

    /// When the oldest message of a queue that could be claimed now was put in; `None` when none waits. What is delayed, or waits for
    /// its next try, does not count.
    pub async fn queue_oldest(&self, queue: &QueueName) -> Result<Option<Timestamp>, StoreError> {
        let row = self.driver.one(shared!("queue_oldest"), &[queue.as_str().into()]).await?;
        Ok(row.moment_or_none("oldest")?)
    }

    /// Since when the dead or parked message of a queue that waits longest for a person is so; `None` when none waits.
    pub async fn letter_oldest(
        &self,
        state: LetterState,
        queue: &QueueName,
    ) -> Result<Option<Timestamp>, StoreError> {
        let values = [state.as_str().into(), queue.as_str().into()];
        Ok(self.driver.one(shared!("letter_oldest"), &values).await?.moment_or_none("oldest")?)
    }

    /// Claims of other queues than these that lapsed so long ago, and that nobody has rescued: whoever serves a queue rescues it within
    /// seconds, so nobody serves those. At most 100 queues are told of.
    pub async fn work_lapsed_elsewhere(
        &self,
        queues: &[QueueName],
        ago: Duration,
    ) -> Result<Vec<Unserved>, StoreError> {
        let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let (ago, longest) = (micros(ago).into(), micros(LEASE_MAX).into());
        let values = [Value::Texts(&queues), ago, Value::Now, UNSERVED_MAX.into(), longest];
        self.driver.all(paired!("lapsed_elsewhere"), &values).await?.iter().map(rows::unserved).collect()
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
        let (since, id) = after.unwrap_or((Timestamp::MAX, Uuid::max()));
        let limit = i64::from(limit.min(PAGE_MAX));
        let mut values = vec![state.as_str().into(), since.into(), id.into(), limit.into()];
        values.extend(queue.map(|queue| Value::from(queue.as_str())));
        let statement = if queue.is_some() { shared!("letter_list_queue") } else { shared!("letter_list") };
        // A plan for any page would read all letters there are.
        let rows = self.driver.all(statement.planned_anew(), &values).await?;
        rows.iter()
            .map(|row| Ok(Letter { since: row.moment("since")?, message: rows::message_row(row)? }))
            .collect()
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
        self.driver.execute(paired!("content_sweep"), &[i64::from(limit).into(), now.until.into()]).await
    }

    /// Folds at most `limit` changes of counts into the counts; answers how many. The counts stay what they are, and are read
    /// quicker. On SQLite there is nothing to fold.
    pub async fn queue_counts_fold(&self, limit: u32) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.fold_counts(limit).await)
    }

    /// A destination's pace; `None` when nobody has written one.
    pub async fn pace_read(&self, destination: &str) -> Result<Option<SharedPace>, StoreError> {
        check::no_nul("the destination", destination)?;
        let row = self.driver.optional(shared!("pace_read"), &[destination.into()]).await?;
        row.as_ref().map(rows::pace).transpose()
    }

    /// Writes a destination's pace over the version that was read; `false` when somebody else was quicker.
    pub async fn pace_write(&self, destination: &str, version: i64, pace: &[u8]) -> Result<bool, StoreError> {
        check::no_nul("the destination", destination)?;
        let values = [destination.into(), version.into(), pace.into()];
        Ok(self.driver.changed(shared!("pace_write"), &values).await?.is_some())
    }

    /// The queues that were ever paused, and how they stand; those that are left out run.
    pub async fn queue_pauses(&self) -> Result<Vec<QueuePause>, StoreError> {
        self.driver.all(shared!("queue_list"), &[]).await?.iter().map(rows::pause).collect()
    }

    /// Says that a node lives.
    pub async fn node_beat(&self, node: Uuid, name: &str) -> Result<(), StoreError> {
        check::no_nul("the node's name", name)?;
        let values = [node.into(), name.into(), Value::Now];
        self.noted(self.driver.execute(paired!("node_beat"), &values).await.map(drop))
    }

    /// All nodes ever heard of, the last heard of first. None is ever forgotten; [`Node::seen_at`] tells which still live.
    pub async fn node_list(&self) -> Result<Vec<Node>, StoreError> {
        self.driver.all(shared!("node_list"), &[]).await?.iter().map(rows::node).collect()
    }

    /// Asks for a duty, or to keep it: `true` for one node at a time, until its lease lapses, after an hour at the latest.
    pub async fn caretaker_claim(
        &self,
        duty: Duty<'_>,
        node: Uuid,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let (duty, lease) = (duty.name(), micros(lease.min(DUTY_LEASE_MAX)));
        let values = [(&*duty).into(), node.into(), lease.into(), Value::Now, micros(DUTY_LEASE_MAX).into()];
        Ok(self.driver.changed(paired!("caretaker_claim"), &values).await?.is_some())
    }

    /// Who has [`Duty::Letters`], of any queue, its lease not lapsed.
    pub async fn letters_kept(&self) -> Result<Vec<LettersKept>, StoreError> {
        let values = [Value::Now, micros(DUTY_LEASE_MAX).into()];
        self.driver.all(paired!("letters_kept"), &values).await?.iter().map(rows::letters_kept).collect()
    }

    /// Leaves all duties of a node that stops to the next one, which need not wait for their leases then.
    pub async fn caretaker_release(&self, node: Uuid) -> Result<(), StoreError> {
        self.driver.execute(shared!("caretaker_release"), &[node.into()]).await.map(drop)
    }
}
