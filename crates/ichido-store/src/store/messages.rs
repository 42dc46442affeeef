//! Messages: enqueuing, finding, cancelling, deleting.

mod cancel;
mod in_transaction;
mod lookup;
mod search;

use std::collections::BTreeSet;

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::EntryId;
use ichido_core::lifecycle::{Event, Reconciled, StateName};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use uuid::Uuid;

use super::Messages;
use crate::batch::BatchLimits;
use crate::check;
use crate::driver::on;
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::message::limits::{MAX_PAGE, MAX_SEARCHED};
use crate::message::{
    Enqueued, MessageRow, MessageSchedule, NewMessage, Note, NumberedMessage, QueueName, StepResult,
    Transition, TransitionPage, count_enqueue,
};
use crate::node::MessageHolder;
use crate::placement::storable_note;
use crate::rows;
use crate::rows::stage_row;
use crate::split_retry::write_all;
use crate::statement::{SqlValue, paired, shared};

impl<'s> Messages<'s> {
    /// Enqueues a message. It is durable when this returns.
    ///
    /// Wakes those who wait for its queue. [`crate::message`] has an example.
    ///
    /// To enqueue it together with your own rows, see [`Messages::enqueue_in`].
    pub fn enqueue(self, message: NewMessage) -> StoreFuture<'s, Enqueued> {
        Box::pin(async move {
            let message = message.checked()?;
            let (queue, is_claimable) = (message.queue.clone(), message.is_maybe_claimable());
            let enqueued = if message.same_content.is_some() {
                let numbered = (Uuid::now_v7(), message);
                self.0
                    .note_write(on!(&*self.0.driver, driver => driver.enqueue_same_content(numbered).await))?
            } else {
                let bytes = message.request.bytes().len() + 500;
                self.0.note_write(self.0.write_queues.message((Uuid::now_v7(), message), bytes).await)?
            };
            count_enqueue(&self.0.counters, &queue, enqueued);
            if is_claimable && matches!(enqueued, Ok(Enqueued::New { .. })) {
                self.0.queues().wake(&queue);
            }
            Ok(enqueued?)
        })
    }

    /// Enqueues many messages. Returns one result each, in the same order.
    ///
    /// Faster than one by one, but not one transaction.
    #[must_use = "a message whose result is an error was not enqueued"]
    pub async fn enqueue_all(self, messages: Vec<NewMessage>) -> Vec<Result<Enqueued, StoreError>> {
        // Boxed, so that its callers do not grow by it.
        Box::pin(async move {
            let mut answers: Vec<Option<Result<Enqueued, StoreError>>> = Vec::with_capacity(messages.len());
            let mut plain = Vec::with_capacity(messages.len());
            for message in messages {
                answers.push(match message.checked() {
                    Err(error) => Some(Err(error)),
                    Ok(message) if message.same_content.is_some() => Some(self.enqueue(message).await),
                    Ok(message) => {
                        plain.push((Uuid::now_v7(), message));
                        None
                    }
                });
            }
            let queues: BTreeSet<&QueueName> =
                plain.iter().filter(|(_, new)| new.is_maybe_claimable()).map(|(_, new)| &new.queue).collect();
            let mut written = Vec::with_capacity(plain.len());
            for part in BatchLimits::DEFAULT.parts(&plain, |(_, message)| message.request.bytes().len()) {
                written.extend(on!(&*self.0.driver, driver => write_all(&**driver, part).await));
            }
            for queue in queues {
                self.0.queues().wake(queue);
            }
            let now = self.0.skew.monotonic();
            for ((_, new), answer) in plain.iter().zip(&written) {
                self.0.disk_space.record(now, answer);
                if let Ok(enqueued) = answer {
                    count_enqueue(&self.0.counters, &new.queue, *enqueued);
                }
            }
            let mut written = written.into_iter().map(|answer| Ok(answer??));
            answers.into_iter().filter_map(|answer| answer.or_else(|| written.next())).collect()
        })
        .await
    }

    /// Finds one message.
    pub fn get(self, id: Uuid) -> StoreFuture<'s, Option<MessageRow>> {
        Box::pin(async move {
            let row = self.0.driver.optional(shared!("message_get"), &[id.into()]).await?;
            row.as_ref().map(rows::message_row).transpose()
        })
    }

    /// Returns the priority and the time that a message was enqueued with.
    pub fn schedule(self, id: Uuid) -> StoreFuture<'s, Option<MessageSchedule>> {
        Box::pin(async move {
            let row = self.0.driver.optional(shared!("message_schedule"), &[id.into()]).await?;
            row.as_ref().map(rows::message_schedule).transpose()
        })
    }

    /// Finds the node that holds a message in flight.
    pub fn holder(self, id: Uuid) -> StoreFuture<'s, Option<MessageHolder>> {
        Box::pin(async move {
            let row = self.0.driver.optional(paired!("message_holder"), &[id.into()]).await?;
            row.as_ref().map(rows::holder).transpose()
        })
    }

    /// Lists every transition of a message, in order.
    pub fn transitions(self, id: Uuid) -> StoreFuture<'s, Vec<Transition>> {
        Box::pin(async move {
            // The claim first: if it ends between the two reads, the events have it.
            let lease = self.0.driver.optional(paired!("step_lease"), &[id.into()]).await?;
            let events = self.0.driver.all(shared!("event_list"), &[id.into()]).await?;
            rows::transitions(&events, lease.as_ref())
        })
    }

    /// Lists the newest recorded events of a message as transitions, in order, however many it has. At most [`MAX_PAGE`].
    ///
    /// `before` is [`TransitionPage::earlier`] of the page after it. The newest page also has the current claim.
    // SPEC F1.
    pub fn transition_page(
        self,
        id: Uuid,
        before: Option<EntryId>,
        limit: u32,
    ) -> StoreFuture<'s, TransitionPage> {
        Box::pin(async move {
            let limit = limit.clamp(1, MAX_PAGE) as usize;
            // The claim first: if it ends between the two reads, the events have it.
            let lease = match before {
                None => self.0.driver.optional(paired!("step_lease"), &[id.into()]).await?,
                Some(_) => None,
            };
            let (fence, step) = before.map_or((i64::MAX, i16::MAX), |before| (before.fence, before.step));
            // The event before the page says what a claim at its beginning continues.
            let read = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let values = [id.into(), fence.into(), step.into(), read.into()];
            let mut events = self.0.driver.all(shared!("event_page").with_custom_plan(), &values).await?;
            events.reverse();
            let page = rows::transition_page(&events, lease.as_ref(), limit)?;
            match page.earlier {
                Some(earlier) if before.is_none() => {
                    Ok(TransitionPage { basis: self.basis(&page.transitions, earlier).await?, ..page })
                }
                _ => Ok(page),
            }
        })
    }

    /// Finds what decides about the effect, if that is before the newest page. What was done is on that page: nothing is sent after.
    // SPEC H9.
    async fn basis(self, page: &[Transition], earlier: EntryId) -> Result<Option<Transition>, StoreError> {
        let id = earlier.message;
        let found = match page.last().map(|last| last.effect) {
            Some(Effect::Unknown) if page.iter().all(|step| step.effect == Effect::Unknown) => {
                self.0.driver.optional(shared!("event_doubt"), &[id.into()]).await?
            }
            Some(Effect::NotDone) if !page.iter().any(Transition::is_fact) => {
                let most = i64::from(MAX_SEARCHED);
                let values = [id.into(), earlier.fence.into(), earlier.step.into(), most.into()];
                self.0.driver.optional(shared!("event_fact").with_custom_plan(), &values).await?
            }
            _ => None,
        };
        found.as_ref().map(rows::transition).transpose()
    }

    /// Records what the receiver said about a message of unknown effect when it was asked by key.
    // SPEC F2.
    pub fn reconcile(self, id: Uuid, found: Reconciled, note: &'s Note) -> StoreFuture<'s, StepResult> {
        Box::pin(async move { self.apply(id, |_| Event::Reconciled(found), note).await })
    }

    /// Makes a failed message due at once. Its attempts still count.
    ///
    /// If it dies or is parked meanwhile, this is refused: it is then judged like every dead or parked message.
    pub fn retry_now(self, id: Uuid, note: &'s Note) -> StoreFuture<'s, StepResult> {
        Box::pin(async move {
            self.apply(id, |_| Event::Requeued { allowed: false, safety: Safety::None }, note).await
        })
    }

    /// Applies an event to one message. One in flight belongs to its worker: the event is refused until the attempt has ended.
    ///
    /// `event` gets the store's time, and may be called more than once.
    pub(crate) async fn apply(
        self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<StepResult, StoreError> {
        let note = storable_note(note.clone());
        let (stepped, claimable) = on!(&*self.0.driver, driver => driver.step(id, event, &note).await)?;
        if let Some(queue) = claimable {
            self.0.queues().wake(&queue);
        }
        Ok(stepped)
    }

    /// Finds the states of messages and their numbers of attempts, in no order. Missing messages are omitted. At most
    /// [`MAX_PAGE`].
    pub fn states(self, ids: &'s [Uuid]) -> StoreFuture<'s, Vec<(Uuid, StateName, u32)>> {
        Box::pin(async move {
            check_page_size(ids)?;
            self.0.driver.all(paired!("message_stages"), &[ids.into()]).await?.iter().map(stage_row).collect()
        })
    }

    /// Deletes at most `limit` messages that were sent or cancelled before a time. Returns how many.
    ///
    /// Their history is deleted too; dead and parked ones are kept. The key of a deleted message is new again, so the clock is
    /// trusted no further than by [`Keys::sweep`](crate::Keys::sweep). If seals are made with a key, use
    /// [`Messages::delete_sealed`], which the audit accepts.
    // SPEC E3.
    pub fn delete_finished(self, finished_before: Timestamp, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move { self.forget_by(None, finished_before, limit).await })
    }

    /// Deletes at most `limit` finished messages of an identity in a queue. Returns how many.
    ///
    /// Their history is deleted too, and their age does not matter. Finished are sent and cancelled messages, and closed dead
    /// letters. It is for programs that must delete all data of a person. `key` is the one that seals are made with, if any.
    pub fn delete_of_identity(
        self,
        key: Option<&'s AuditKey>,
        queue: &'s QueueName,
        identity: &'s str,
        limit: u32,
    ) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            check::no_nul("the identity", identity)?;
            let values = [queue.as_str().into(), identity.into(), i64::from(limit).into(), SqlValue::Now];
            let statement = paired!("forget_of", "forget_find");
            on!(&*self.0.driver, driver => driver.forget(key, statement, &values).await)
        })
    }

    /// Deletes like [`Messages::delete_finished`], for seals made with a key. The key proves that its holder deleted the entries.
    pub fn delete_sealed(
        self,
        key: &'s AuditKey,
        finished_before: Timestamp,
        limit: u32,
    ) -> StoreFuture<'s, u64> {
        Box::pin(async move { self.forget_by(Some(key), finished_before, limit).await })
    }

    async fn forget_by(
        self,
        key: Option<&AuditKey>,
        finished_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let Some(now) = self.0.forget_until().await? else { return Ok(0) };
        let before = now.moved(finished_before);
        let values = [rows::last_id(before).into(), before.into(), i64::from(limit).into(), SqlValue::Now];
        let statement = paired!("retention", "retention_find");
        on!(&*self.0.driver, driver => driver.forget(key, statement, &values).await)
    }

    /// Deletes at most `limit` contents whose window has ended. Returns how many.
    ///
    /// Equal content is new from the end of its window on, swept or not, once retention has come there
    /// ([`Keys::sweep`](crate::Keys::sweep)): this only frees space.
    // SPEC A7.
    pub fn sweep_contents(self, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let Some(now) = self.0.forget_until().await? else { return Ok(0) };
            self.0
                .driver
                .execute(paired!("content_sweep"), &[i64::from(limit).into(), now.until.into()])
                .await
        })
    }
}

pub(super) fn numbered(messages: Vec<NewMessage>) -> Result<Vec<NumberedMessage>, StoreError> {
    let number = |message: NewMessage| Ok((Uuid::now_v7(), message.checked()?));
    messages.into_iter().map(number).collect()
}

/// Refuses a list of ids that is longer than a page.
pub(super) fn check_page_size(ids: &[Uuid]) -> Result<(), StoreError> {
    let found = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    check::number("the number of messages", found, 0..=MAX_PAGE)
}
