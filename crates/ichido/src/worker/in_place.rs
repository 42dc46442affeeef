//! An attempt up to the first wait of its handler, without a task, a timer or a select of its own.
//!
//! Guarantee: the same checks as before any other call, by a clock that was read after the attempt before it. What takes more than
//! a check, such as a start mark, a slot of a pace or a lease that ends soon, is left to [`Attempt::run`].

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_core::verdict::{Advice, Effect, PaceReport};
use ichido_store::message::Settlement;

use super::attempt::{Attempt, ReadyCall};
use super::claim::LeasedMessage;
use super::node::ServedQueue;
use super::pacer::Slot;
use super::stop::StopStage;
use crate::destination::{Cancel, DeliveryOutcome, FirstPoll, Handler};

/// An attempt after its start.
pub(super) enum Started {
    /// Its handler returned a success.
    Succeeded(SettledMessage),
    /// Nothing was started, because something is to be waited for.
    NotYet(Attempt),
    /// Its handler was started, and needs a task of its own.
    Call(Attempt, StartedCall),
}

/// A message and its outcome, to be settled.
pub(super) struct SettledMessage {
    pub(super) leased: LeasedMessage,
    pub(super) settlement: Settlement,
}

/// A call whose handler was polled once.
pub(super) struct StartedCall {
    ready: ReadyCall,
    started_at: Timestamp,
    cancel: Cancel,
    polled: FirstPoll,
}

impl ServedQueue {
    /// Returns whether its messages may be started in a task that they share, at this local time.
    pub(super) fn may_share_task(&self, at: Duration) -> bool {
        let dispatcher = &self.dispatcher;
        dispatcher.pacer.free_slot(at).is_some()
            && dispatcher.transactions.is_none()
            && dispatcher.interval.is_zero()
            && !self.needs_start_marks()
            && dispatcher
                .destination
                .handlers()
                .is_some_and(|handlers| handlers.iter().any(Handler::is_prompt))
    }
}

impl Attempt {
    /// Starts the attempt at this local time. Returns it, and the time afterwards.
    pub(super) fn start(mut self, at: Duration, context: &mut Context<'_>) -> (Started, Duration) {
        let served = Arc::clone(&self.served);
        let handler = served
            .dispatcher
            .destination
            .handlers()
            .and_then(|handlers| handlers.find(&self.leased.work.content_type))
            .filter(|handler| handler.is_prompt());
        let (Some(handler), Some(ready)) = (handler, self.ready_at(at)) else {
            return (Started::NotYet(self), at);
        };
        let started_at = ready.sent.max(self.leased.work.claimed_at);
        let cancel = Cancel::new();
        let polled = handler.poll_first(self.take_call(), &cancel, context);
        let ended_at = self.node.clock.elapsed();
        handler.record_first_poll(ended_at.saturating_sub(at));
        let outcome = match polled {
            FirstPoll::Ended(outcome) if is_success(&outcome) => outcome,
            polled => {
                return (Started::Call(self, StartedCall { ready, started_at, cancel, polled }), ended_at);
            }
        };
        cancel.cancel_clones();
        self.trace_delivery(started_at, &outcome);
        let report = self.report(outcome, started_at);
        let settlement = Settlement::new(&self.leased.work, report.event, report.note);
        (Started::Succeeded(SettledMessage { leased: self.leased, settlement }), ended_at)
    }

    /// Returns the call if it may be made at this local time, and nothing is to be waited for.
    fn ready_at(&self, at: Duration) -> Option<ReadyCall> {
        let (node, leased) = (&self.node, &self.leased);
        let dispatcher = &self.served.dispatcher;
        let work = &leased.work;
        let may_call = !node.stop.has(StopStage::Draining)
            && !self.needs_start_mark()
            && leased.suspect.is_none()
            && work.history.effect() != Effect::Unknown
            && !node.cancellations.contains(work.id)
            // The heartbeat first: it may show that the claim was lost.
            && node.is_alive_at(at)
            && leased.claim.lease.holds_at(at + dispatcher.promise.timeout);
        let permit = match &dispatcher.permits {
            Some(permits) => Some(Arc::clone(permits).try_acquire_owned().ok()?),
            None => None,
        };
        match dispatcher.pacer.free_slot(at) {
            Some(Slot::At(sent)) if may_call => Some(ReadyCall::new(sent, permit)),
            _ => None,
        }
    }

    /// Ends a started call. Returns when its outcome is durable.
    pub(super) async fn finish(self, started: StartedCall) {
        let StartedCall { ready, started_at, cancel, polled } = started;
        let in_flight = self.served.metrics.start_call();
        let outcome = match polled {
            FirstPoll::Ended(outcome) => {
                cancel.cancel_clones();
                outcome
            }
            FirstPoll::Running(run) => self.in_time(run.finish(&cancel), &cancel, None).await,
        };
        let ended = self.conclude(&ready, started_at, outcome, None).await;
        drop((in_flight, ready));
        self.end(ended).await;
    }
}

/// Returns whether the outcome is a success that the pace is to know of; nothing is to be written before it is settled.
fn is_success(outcome: &DeliveryOutcome) -> bool {
    match outcome {
        DeliveryOutcome::Judged { verdict, .. } => {
            verdict.advice == Advice::Accept
                && verdict.effect == Effect::Done
                && verdict.pace_report() == Some(PaceReport::Success)
        }
        DeliveryOutcome::Snoozed { .. } => false,
    }
}
