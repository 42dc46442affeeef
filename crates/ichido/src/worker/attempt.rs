//! One attempt of one message: from its slot to its settlement.
//!
//! Rare paths are boxed where they begin (reading the pace, renewing a lease, joining a full batch, ending a
//! transaction). An attempt was a future of 17,784 bytes, moved when it was spawned, and nearly all of it was for these.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::hops::{Hop, HopName, Hops, RequestId};
use ichido_core::lifecycle::{AttemptResult, Event, Failure, StartMark};
use ichido_core::pace::{PauseReason, first_call_at};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};
use ichido_store::message::{ClaimedMessage, Note, Settlement};
use tokio::sync::OwnedSemaphorePermit;

use super::DELIVERY;
use super::claim::LeasedMessage;
use super::metrics;
use super::node::{ServedQueue, WorkerNode};
use super::pacer::{CallKind, Slot};
use super::stop::StopStage;
use super::transactional::{self, AttemptEnd};
use crate::destination::{Cancel, DeliveryAttempt, DeliveryOutcome, no_handler};
use crate::handler_tx::HandlerTx;

/// Destinations enforce their own timeouts.
///
/// A call that exceeds its timeout by this much is abandoned here.
const MAX_CALL_OVERRUN: Duration = Duration::from_secs(1);
/// A message that must wait longer than this is given back.
///
/// No worker's death is then charged to it in the meantime.
const MAX_PACE_WAIT: Duration = Duration::from_secs(1);
/// A message that was given back is checked again after this time at the latest.
///
/// An operator may have ended the pause.
///
/// Nothing is claimed from a queue while its destination is paused, so this costs nothing.
const MAX_RECHECK_AFTER: Duration = Duration::from_secs(10);
/// A message of a type without a handler is given back for as long as it is old, within these bounds.
///
/// Another worker may have the handler, at once or after the next deployment.
const NO_HANDLER_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(10));
/// The longest wait without checking again.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The wait after a start mark could not be written.
const MARK_RETRY_DELAY: Duration = Duration::from_millis(100);

pub(super) struct Attempt {
    pub(super) node: Arc<WorkerNode>,
    pub(super) served: Arc<ServedQueue>,
    pub(super) leased: LeasedMessage,
}

/// The report of an attempt, to be settled.
pub(super) struct AttemptReport {
    pub(super) event: Event,
    pub(super) note: Note,
}

impl From<Event> for AttemptReport {
    fn from(event: Event) -> Self {
        Self { event, note: Note::default() }
    }
}

/// Why no call was made.
enum CallSkipped {
    /// The worker is stopping: the message is given back.
    Stopping,
    /// The destination is paused until then: the message is given back, and returns no sooner.
    Delayed { until: Timestamp },
    /// It must not be called: its claim was lost, or it is proven done.
    ///
    /// Giving it back settles either.
    Forbidden,
    /// Somebody asked to cancel it.
    Cancelled,
    /// An earlier attempt may have done it, and the receiver has forgotten the key since.
    InDoubt,
    /// No handler of this worker takes its type.
    NoHandler,
}

/// A call that may be made.
pub(super) struct ReadyCall {
    /// The time of its slot.
    pub(super) sent: Timestamp,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ReadyCall {
    pub(super) fn new(sent: Timestamp, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { sent, _permit: permit }
    }
}

impl Attempt {
    /// Makes the attempt. Returns when its outcome is durable.
    pub(super) async fn run(mut self) {
        let ended = match self.prepare().await {
            Ok(ready) => {
                let call = self.take_call();
                self.call(ready, call).await
            }
            Err(skipped) => AttemptEnd::Report(self.skipped(&skipped)),
        };
        self.end(ended).await;
    }

    /// Settles the message and gives back what only one attempt may have.
    pub(super) async fn end(self, ended: AttemptEnd) {
        self.settle(ended).await;
        if self.leased.suspect.is_some() {
            let Self { node, served, leased } = self;
            drop(leased);
            // The next suspect message may be claimed now.
            node.store.queues().wake(&served.name);
        }
    }

    /// Ends the message if somebody asked to cancel it and the attempt had no effect.
    // Spec: D2.
    async fn stopped_on_request(&self, report: AttemptReport) -> AttemptReport {
        let work = &self.leased.work;
        if !is_without_effect(&report.event) {
            return report;
        }
        match self.node.cancellation(work.id).await {
            Some(request) => {
                AttemptReport { event: Event::Stopped { fence: work.fence }, note: request.note() }
            }
            None => report,
        }
    }

    /// Settles the message. Returns when its outcome is durable.
    async fn settle(&self, ended: AttemptEnd) {
        let settlement =
            |report: AttemptReport| Settlement::new(&self.leased.work, report.event, report.note);
        let (node, served, leased) = (&self.node, &self.served, &self.leased);
        match ended {
            AttemptEnd::Report(report) => {
                let report = self.stopped_on_request(report).await;
                node.settle(served, leased, settlement(report)).await;
            }
            AttemptEnd::Committed(success) => {
                Box::pin(node.settled_in_transaction(served, leased, &success)).await;
            }
            AttemptEnd::InDoubt { success, failure } => {
                Box::pin(node.settle_in_doubt(served, leased, &success, settlement(failure))).await;
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.leased.now(&self.node.clock)
    }

    /// Returns whether a durable start mark is written before the call.
    pub(super) fn needs_start_mark(&self) -> bool {
        self.leased.work.start_mark == StartMark::NotYet
    }

    fn caller(&self) -> CallKind {
        if 1 < self.leased.work.history.attempts { CallKind::Retry } else { CallKind::First }
    }

    /// Returns what a call made now could do.
    ///
    /// It counts on arrival, which may be as late as it can be in flight.
    fn safety(&self) -> Safety {
        let dispatcher = &self.served.dispatcher;
        self.leased
            .work
            .history
            .safety(self.served.guarantee(), self.now().plus(dispatcher.max_time_in_flight()))
    }

    /// Waits until the call may be made, unless the worker stops first.
    async fn prepare(&self) -> Result<ReadyCall, CallSkipped> {
        let dispatcher = &self.served.dispatcher;
        let ready = async {
            let permit = match &dispatcher.permits {
                // Nobody closes the semaphore.
                Some(permits) => Arc::clone(permits).acquire_owned().await.ok(),
                None => None,
            };
            self.wait_interval().await;
            Ok(ReadyCall::new(self.wait_for_slot().await?, permit))
        };
        let ready = tokio::select! {
            biased;
            // First, because most attempts do not wait, and subscribing to the stop costs more than checking it.
            ready = ready => ready?,
            () = self.node.stop.reached(StopStage::Draining) => return Err(CallSkipped::Stopping),
        };
        if self.node.stop.has(StopStage::Draining) {
            return Err(CallSkipped::Stopping);
        }
        self.check_may_call().await.map(|()| ready)
    }

    /// Waits the interval before a first call.
    async fn wait_interval(&self) {
        let interval = self.served.dispatcher.interval;
        if interval.is_zero() || 1 < self.leased.work.history.attempts {
            return;
        }
        let first = first_call_at(self.now(), interval);
        while self.now() < first {
            tokio::time::sleep(first.since(self.now()).min(POLL_INTERVAL)).await;
        }
    }

    /// Waits for a slot, and again in the slot if a pause overtook it.
    async fn wait_for_slot(&self) -> Result<Timestamp, CallSkipped> {
        let pacer = &self.served.dispatcher.pacer;
        loop {
            let (until, why) = match pacer.slot(self.caller()).await {
                Slot::At(moment) => {
                    let now = self.now();
                    if now < moment {
                        tokio::time::sleep(moment.since(now)).await;
                    }
                    match pacer.stopped() {
                        None => return Ok(moment),
                        Some(stopped) => stopped,
                    }
                }
                Slot::NotBefore(until, why) => (until, why),
            };
            let wait = until.since(self.now());
            // A retry that gives way to others must not occupy a slot either.
            let gives_way = why == PauseReason::Circuit && self.caller() == CallKind::Retry;
            if gives_way || MAX_PACE_WAIT < wait {
                let recheck_at = self.now().plus(MAX_RECHECK_AFTER);
                return Err(CallSkipped::Delayed { until: until.min(recheck_at) });
            }
            tokio::time::sleep(wait.clamp(Duration::from_millis(1), POLL_INTERVAL)).await;
        }
    }

    /// Checks one last time before the call.
    async fn check_may_call(&self) -> Result<(), CallSkipped> {
        let (work, claim) = (&self.leased.work, &self.leased.claim);
        if self.node.cancellation(work.id).await.is_some() {
            return Err(CallSkipped::Cancelled);
        }
        if work.history.effect() == Effect::Unknown && self.safety() == Safety::None {
            return Err(CallSkipped::InDoubt);
        }
        let handlers = self.served.dispatcher.destination.handlers();
        if handlers.is_some_and(|handlers| handlers.find(&work.content_type).is_none()) {
            return Err(CallSkipped::NoHandler);
        }
        // The heartbeat first: it may show that the claim was lost.
        if !self.node.is_alive().await || !claim.lease.holds_for(self.served.dispatcher.promise.timeout).await
        {
            return Err(CallSkipped::Forbidden);
        }
        if !self.needs_start_mark() {
            return Ok(());
        }
        loop {
            let marked = self.node.marks.submit((work.id, work.fence), 0).await;
            // Check the local clock again, because writing the mark may have taken long. A message that is marked but not
            // called is then parked by the rescue, which is the safe side.
            if !self.node.is_alive_now() || !claim.lease.holds_now() {
                return Err(CallSkipped::Forbidden);
            }
            match marked {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(CallSkipped::Forbidden),
                Err(error) => {
                    let error = error.with_causes();
                    tracing::warn!(error, message_id = %work.id, "failed to write a start mark; retrying");
                    tokio::time::sleep(MARK_RETRY_DELAY).await;
                }
            }
        }
    }

    /// Makes the call; it ends in time, whatever happens.
    async fn call(&self, ready: ReadyCall, call: DeliveryAttempt) -> AttemptEnd {
        let dispatcher = &self.served.dispatcher;
        let _in_flight = self.served.metrics.start_call();
        let (started_at, cancel) = (self.now(), Cancel::new());
        let tx =
            dispatcher.transactions.as_ref().map(|transactions| transactions.handler_tx(&self.node.store));
        // Boxed because of the client of HTTP receivers, whose size every attempt would carry.
        let calling = Box::pin(dispatcher.destination.call_in(call, &cancel, tx.clone()));
        let outcome = self.in_time(calling, &cancel, tx.as_ref()).await;
        self.conclude(&ready, started_at, outcome, tx).await
    }

    /// Waits for the outcome of a call, and no longer than it may take.
    pub(super) async fn in_time(
        &self,
        calling: impl Future<Output = DeliveryOutcome>,
        cancel: &Cancel,
        tx: Option<&HandlerTx>,
    ) -> DeliveryOutcome {
        let call_timeout = self.served.dispatcher.promise.timeout.saturating_add(MAX_CALL_OVERRUN);
        let outcome = tokio::select! {
            biased;
            outcome = tokio::time::timeout(call_timeout, calling) => {
                outcome.unwrap_or_else(|_| abandoned(ErrorCode::NetworkTimeout, "no response arrived in time"))
            }
            overdue = self.wait_until_overdue(tx) => overdue,
            () = self.wait_until_abandoned(cancel) => {
                abandoned(ErrorCode::Unknown, "the worker was stopped before the response arrived")
            }
        };
        cancel.cancel_clones();
        outcome
    }

    /// Concludes from its outcome what is to be settled.
    pub(super) async fn conclude(
        &self,
        ready: &ReadyCall,
        started_at: Timestamp,
        outcome: DeliveryOutcome,
        tx: Option<HandlerTx>,
    ) -> AttemptEnd {
        self.trace_delivery(started_at, &outcome);
        let outcome = if tx.is_some() { transactional::without_doubt(outcome) } else { outcome };
        if let DeliveryOutcome::Judged { verdict, .. } = &outcome {
            let pacer = &self.served.dispatcher.pacer;
            pacer.record_verdict(verdict, ready.sent, self.caller()).await;
            if verdict.pace_report() == Some(PaceReport::Throttled) {
                self.node.store.counters().throttled(self.served.name.as_str());
            }
        }
        let report = self.report(outcome, started_at);
        match tx {
            None => AttemptEnd::Report(report),
            Some(tx) => Box::pin(self.end_transaction(tx, report, started_at)).await,
        }
    }

    /// Cancels the handler's work when it is no longer wanted.
    ///
    /// Returns when the call is to be abandoned.
    async fn wait_until_abandoned(&self, cancel: &Cancel) {
        let unwanted = async {
            tokio::select! {
                () = self.node.stop.reached(StopStage::Draining) => (),
                () = self.leased.claim.lost.cancelled() => (),
            }
        };
        // The call is not abandoned on request: only its handler knows where it can stop.
        let request = async {
            self.node.cancel_requested(self.leased.work.id).await;
            cancel.request();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = unwanted => (),
            () = request => (),
        }
        cancel.cancel();
        self.node.stop.reached(StopStage::GivingUp).await;
    }

    /// Emits the trace event of a delivery, if a subscriber enables [`DELIVERY`].
    pub(super) fn trace_delivery(&self, started_at: Timestamp, outcome: &DeliveryOutcome) {
        let code = match outcome {
            DeliveryOutcome::Judged { verdict, .. } => verdict.code.map(ErrorCode::as_str),
            DeliveryOutcome::Snoozed { .. } => None,
        };
        let work = &self.leased.work;
        tracing::trace!(
            target: DELIVERY,
            message_id = %work.id,
            queue = work.queue.as_str(),
            key = work.key.as_str(),
            trace = work.trace.as_deref(),
            trace_id = work.trace_id.as_deref(),
            attempt = u64::from(work.history.attempts),
            began_at = started_at.as_micros(),
            ended_at = self.now().as_micros(),
            code,
        );
    }

    /// Takes what its destination gets and nothing else needs.
    pub(super) fn take_call(&mut self) -> DeliveryAttempt {
        let LeasedMessage { work, body, .. } = &mut self.leased;
        // A queue with secrets needs the request again, to hide them in the error.
        let body = if self.served.settings.redact.is_empty() { std::mem::take(body) } else { body.clone() };
        DeliveryAttempt {
            message: work.id,
            queue: work.queue.clone(),
            key: self.served.outbound(&work.identity, &work.key),
            identity: std::mem::take(&mut work.identity),
            fence: work.fence,
            attempt: work.history.attempts,
            hops: hops_with_outbox(work),
            trace: work.trace.clone(),
            content_type: std::mem::take(&mut work.content_type),
            body,
        }
    }

    /// Returns what an outcome means for the message.
    pub(super) fn report(&self, outcome: DeliveryOutcome, started_at: Timestamp) -> AttemptReport {
        match outcome {
            DeliveryOutcome::Judged { verdict, note } => self.judged(&verdict, note, started_at),
            DeliveryOutcome::Snoozed { wait } => self.snoozed(wait),
        }
    }

    fn judged(&self, verdict: &Verdict, note: Note, started_at: Timestamp) -> AttemptReport {
        let work = &self.leased.work;
        if verdict.effect == Effect::Unknown {
            metrics::count(metrics::UNKNOWN, work.queue.as_str(), 1);
        }
        let event = match verdict.advice {
            Advice::Accept | Advice::AcceptAsProcessed => Event::Succeeded { fence: work.fence },
            _ => self.failed(verdict, started_at),
        };
        AttemptReport {
            event,
            note: Note { code: verdict.code, ..self.served.stored(note, Some(&self.leased.body)) },
        }
    }

    /// Returns what a failure means for the message: when it is tried again, if at all.
    fn failed(&self, verdict: &Verdict, started_at: Timestamp) -> Event {
        let work = &self.leased.work;
        let safety = self.safety();
        let failure = NonZeroU32::new(work.history.attempts).unwrap_or(NonZeroU32::MIN);
        // No longer than the destination itself may be paused. Spec: D6.
        let hint = verdict.hint.map(|hint| hint.min(self.served.dispatcher.pacer.max_pause()));
        let wait = self.served.settings.retry.wait(failure, fastrand::f64(), hint);
        let in_flight_until = if verdict.is_answered() {
            // It has arrived. The time of the claim is the store's own, so a decision is never refused by our estimate.
            work.claimed_at
        } else {
            started_at.plus(self.served.dispatcher.max_time_in_flight())
        };
        let (fence, effect, due) = (work.fence, verdict.effect, self.now().plus(wait));
        let tried = AttemptResult { fence, effect, safety, due, in_flight_until };
        Event::from_attempt(verdict.next(safety, work.history.effect()), tried)
    }

    fn snoozed(&self, wait: Duration) -> AttemptReport {
        let (fence, now) = (self.leased.work.fence, self.now());
        let due = now.plus(wait);
        if !self.needs_start_mark() {
            return Event::GivenBack { fence, due }.into();
        }
        // The mark says that it started, so it counts.
        let (failure, effect) = (Failure::Retry { due }, Effect::NotDone);
        let event = Event::Failed { fence, failure, effect, safety: self.safety(), in_flight_until: now };
        let why = format!("the handler snoozed the message for {wait:?}");
        AttemptReport { event, note: Note { excerpt: Some(why), ..Note::default() } }
    }

    fn skipped(&self, why: &CallSkipped) -> AttemptReport {
        let (fence, now) = (self.leased.work.fence, self.now());
        let queue = self.served.name.as_str();
        match *why {
            CallSkipped::Stopping | CallSkipped::Cancelled => self.leased.give_back_event().into(),
            CallSkipped::Delayed { until: due } => Event::GivenBack { fence, due }.into(),
            CallSkipped::Forbidden => {
                metrics::count(metrics::SUPPRESSED, queue, 1);
                self.leased.give_back_event().into()
            }
            CallSkipped::InDoubt => {
                metrics::count(metrics::SUPPRESSED, queue, 1);
                let (failure, effect) = (Failure::InDoubt, Effect::NotDone);
                let event =
                    Event::Failed { fence, failure, effect, safety: Safety::None, in_flight_until: now };
                let why = "an earlier attempt may have taken effect, and the receiver may have forgotten the key since";
                let note =
                    Note { code: Some(ErrorCode::Unknown), excerpt: Some(why.to_owned()), ..Note::default() };
                AttemptReport { event, note }
            }
            CallSkipped::NoHandler => self.without_handler(),
        }
    }

    /// Leaves the message to a worker that has a handler for it, without counting an attempt.
    fn without_handler(&self) -> AttemptReport {
        let (work, now) = (&self.leased.work, self.now());
        let (min, max) = NO_HANDLER_WAIT;
        let due = now.plus(now.since(work.created_at).clamp(min, max));
        let why = no_handler(&work.content_type);
        tracing::warn!(queue = self.served.name.as_str(), message_id = %work.id, why, "message given back: no handler");
        let note = Note { code: Some(ErrorCode::Unknown), excerpt: Some(why), ..Note::default() };
        AttemptReport { event: Event::GivenBack { fence: work.fence, due }, note }
    }
}

/// Returns whether an attempt that ended with this event surely did nothing.
const fn is_without_effect(event: &Event) -> bool {
    match event {
        Event::GivenBack { .. } => true,
        Event::Failed { failure, effect, .. } => {
            matches!(effect, Effect::NotDone) && !matches!(failure, Failure::InDoubt)
        }
        _ => false,
    }
}

/// Returns the message's hops with the outbox as the last one.
///
/// The hop has the time of the enqueue and the message's id, so it is the same on every attempt.
fn hops_with_outbox(work: &ClaimedMessage) -> Hops {
    let request_id = RequestId::from_uuid(work.id);
    Hops::read(work.hops.as_deref()).and(Hop { name: HopName::OUTBOX, at: work.created_at, request_id })
}

/// The outcome of an abandoned call: its effect is unknown.
fn abandoned(code: ErrorCode, why: &str) -> DeliveryOutcome {
    DeliveryOutcome::with_reason(
        Verdict::declared(Some(code), Effect::Unknown, Advice::Retry, None, None),
        why,
    )
}
