//! Cancels messages: one that waits at once, one in flight by a request that its worker sees.
//!
//! Guarantee: a request is durable and in the audit trail when [`Messages::cancel`] returns. It locks nothing that a claim, a
//! settlement or another message needs. A message that was sent in the meantime stays sent, and one that an operator requeued in
//! the meantime stays queued.
// SPEC D2, H5.

use std::collections::HashSet;

use ichido_core::lifecycle::{Event, StateName};
use ichido_core::verdict::Effect;
use uuid::Uuid;

use super::super::Messages;
use crate::action::AuditAction;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::message::limits::MAX_PAGE;
use crate::message::{CancelOutcome, Cancellation, Note, StepResult};
use crate::placement::storable_note;
use crate::statement::{SqlValue, paired, shared};
use crate::transaction::Transaction;

/// How often to try a message that goes from one state to another meanwhile.
const MAX_ROUNDS: usize = 3;

impl<'s> Messages<'s> {
    /// Cancels a message, or asks its worker to stop if an attempt is in flight.
    ///
    /// A message that waits is cancelled at once. The worker of one in flight sees the request with its next heartbeat, within
    /// [`HEARTBEAT_EVERY`](ichido_core::clock::HEARTBEAT_EVERY), and signals its handler. If the attempt ends without an effect,
    /// the message is cancelled; otherwise what is known decides, as without the request. Repeating this changes nothing.
    ///
    /// The note's actor and excerpt say who asked, and why.
    pub fn cancel(self, id: Uuid, note: &'s Note) -> StoreFuture<'s, CancelOutcome> {
        Box::pin(async move {
            for _ in 0..MAX_ROUNDS {
                match self.apply(id, |_| Event::Cancelled, note).await? {
                    StepResult::Now(_) => return Ok(CancelOutcome::Cancelled),
                    StepResult::NoSuchMessage => return Ok(CancelOutcome::NoSuchMessage),
                    StepResult::Refused(_) => (),
                }
                match self.states(&[id]).await?.first().map(|(_, state, _)| *state) {
                    Some(StateName::Sending) => {
                        self.request_cancellation(id, note).await?;
                        return Ok(CancelOutcome::Requested);
                    }
                    // Its attempt has just ended.
                    Some(StateName::Queued | StateName::Failed) => (),
                    Some(StateName::Cancelled) => return Ok(CancelOutcome::Cancelled),
                    Some(state @ (StateName::Parked | StateName::Sent | StateName::Dead)) => {
                        return Ok(CancelOutcome::Refused(state));
                    }
                    None => return Ok(CancelOutcome::NoSuchMessage),
                }
            }
            Err(StoreError::Busy)
        })
    }

    /// Finds the request to cancel a message in flight, if there is one.
    pub fn cancellation(self, id: Uuid) -> StoreFuture<'s, Option<Cancellation>> {
        Box::pin(async move {
            let row = self.0.driver.optional(shared!("cancellation_find"), &[id.into()]).await?;
            let request = row.map(|row| {
                let (actor, reason) = (row.text_or_none("actor")?, row.text_or_none("reason")?);
                Ok(Cancellation { requested_at: row.timestamp("requested_at")?, actor, reason })
            });
            request.transpose()
        })
    }

    /// Lists messages that somebody asked to cancel while they were in flight, those after `after` in the order of their ids.
    pub fn cancellations(self, after: Uuid, limit: u32) -> StoreFuture<'s, Vec<Uuid>> {
        Box::pin(async move {
            let values = [after.into(), i64::from(limit.min(MAX_PAGE)).into()];
            let rows = self.0.driver.all(shared!("cancellation_page"), &values).await?;
            rows.iter().map(|row| Ok(row.uuid("message_id")?)).collect()
        })
    }

    /// Ends requests to cancel messages that are not in flight. Returns which messages were cancelled.
    ///
    /// An attempt may end before its worker saw the request. Its message is then cancelled if it waits and its effect is not done;
    /// otherwise it goes on as without the request. For workers, which pass [`Heartbeat::cancellations`]. At most [`MAX_PAGE`].
    ///
    /// [`Heartbeat::cancellations`]: crate::node::Heartbeat::cancellations
    pub fn apply_cancellations(self, ids: &'s [Uuid]) -> StoreFuture<'s, Vec<Uuid>> {
        Box::pin(async move {
            let states = self.states(ids).await?.into_iter();
            let in_flight: HashSet<Uuid> =
                states.filter(|(_, state, _)| *state == StateName::Sending).map(|(id, ..)| id).collect();
            let mut cancelled = Vec::new();
            for id in ids {
                if !in_flight.contains(id) && self.apply_cancellation(*id).await? {
                    cancelled.push(*id);
                }
            }
            Ok(cancelled)
        })
    }

    async fn apply_cancellation(self, id: Uuid) -> Result<bool, StoreError> {
        let Some(request) = self.cancellation(id).await? else { return Ok(false) };
        let found = self.get(id).await?.map(|row| (row.status, row.effect));
        let is_cancelled = match found {
            // Its worker sees the request.
            Some((StateName::Sending, _)) => return Ok(false),
            Some((StateName::Queued | StateName::Failed, Effect::NotDone)) => {
                match self.apply(id, |_| Event::Cancelled, &request.note()).await? {
                    StepResult::Now(_) => true,
                    StepResult::NoSuchMessage => false,
                    // It was claimed meanwhile.
                    StepResult::Refused(_) => return Ok(false),
                }
            }
            Some(_) | None => false,
        };
        self.0.driver.execute(paired!("cancellation_end"), &[SqlValue::Ids(&[id])]).await?;
        Ok(is_cancelled)
    }

    async fn request_cancellation(self, id: Uuid, note: &Note) -> Result<(), StoreError> {
        let note = storable_note(note.clone());
        let values = [id.into(), note.actor.as_deref().into(), note.excerpt.as_deref().into(), SqlValue::Now];
        let action = AuditAction::cancel_requested(id, &note);
        let work = async |transaction: &mut Transaction<'_>| {
            if transaction.connection().execute(paired!("cancellation_add"), &values).await? == 0 {
                return Ok(None);
            }
            transaction.record(&action).await.map(Some)
        };
        self.0.driver.transact(work).await.map(drop)
    }
}
