//! Registers handlers: the call names the guarantee, and the message type its queue.
//!
//! Guarantee: handlers that share a queue agree on everything that a queue has once, and no message fits two of them.
// Spec: H4.

#[cfg(feature = "testing")]
use std::num::NonZeroU32;
use std::time::Duration;

#[cfg(feature = "testing")]
use ichido_core::retry::Jitter;

use super::Worker;
#[cfg(feature = "testing")]
use crate::destination::FaultLayer;
use crate::destination::{Destination, Handler, Handlers, Job, JobError, JobSuccess};
use crate::message::Message;
use crate::worker::config_error::WorkerConfigError;
use crate::worker::settings::{DestinationConfig, QueueConfig};

impl Worker {
    /// Serves a message type with a function that may run again without harm.
    ///
    /// Use it for reads, cache refreshes and work that may be paid for twice. After an unknown outcome it is retried.
    pub fn handle_idempotent<M, F, A, D>(self, handle: F) -> Self
    where
        M: Message,
        F: Fn(Job<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        self.handler(M::QUEUE, Handler::message(handle).idempotent())
    }

    /// Serves a message type with a function that calls a receiver which deduplicates by [`Job::key`].
    ///
    /// `keeps_keys_for` is how long the receiver remembers a key. After an unknown outcome it is retried within that time,
    /// and parked for a person afterwards.
    pub fn handle_keyed<M, F, A, D>(self, keeps_keys_for: Duration, handle: F) -> Self
    where
        M: Message,
        F: Fn(Job<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        self.handler(M::QUEUE, Handler::message(handle).keyed(keeps_keys_for))
    }

    /// Serves a message type with a function whose effect must not be repeated.
    ///
    /// After an unknown outcome (an error by `?`, a panic, a timeout, a crash) it never runs again by itself: the message is
    /// parked until a person decides. Return [`JobError::retry`] where nothing was done.
    pub fn handle_once<M, F, A, D>(self, handle: F) -> Self
    where
        M: Message,
        F: Fn(Job<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        self.handler(M::QUEUE, Handler::message(handle))
    }

    /// Serves a queue with a handler, as a destination of the queue's name.
    ///
    /// A queue has several handlers if each is a [`Handler::message`] of its own [`Message::TYPE`]. To configure queue and
    /// destination separately, use [`Worker::destination`] and [`Worker::queue`].
    pub fn handler(mut self, queue: &str, handler: Handler) -> Self {
        let registered = self.targets.iter_mut().find(|target| target.name == queue);
        if let Some(Destination::Handlers(handlers)) = registered.map(|target| &mut target.destination) {
            handlers.add(handler);
            return self;
        }
        let mut settings = QueueConfig::new(queue, queue);
        if let Some(message) = handler.message_type() {
            settings.retry = message.retry.clone();
        }
        self.destination(DestinationConfig::new(queue, handler)).queue(settings)
    }

    /// Changes the settings of a queue that has a handler, such as its parallelism or its lease.
    pub fn tune(mut self, queue: &str, change: impl FnOnce(&mut QueueConfig)) -> Self {
        match self.queues.iter_mut().find(|settings| settings.name == queue) {
            Some(settings) => change(settings),
            None => self.tuned_too_early.push(queue.to_owned()),
        }
        self
    }

    /// Injects faults into every handler, claims no message before the one before it has ended, and retries without jitter.
    #[cfg(feature = "testing")]
    pub(in crate::worker) fn one_by_one(mut self, faults: &FaultLayer) -> Self {
        for queue in &mut self.queues {
            queue.batch_size = NonZeroU32::MIN;
            queue.retry.jitter = Jitter::None;
        }
        for target in &mut self.targets {
            if let Some(handlers) = target.destination.handlers() {
                target.destination = Destination::Handlers(Box::new(handlers.layer(faults)));
            }
        }
        self
    }

    /// Returns what is wrong with the handlers of each queue.
    pub(super) fn handler_errors(&self) -> Vec<WorkerConfigError> {
        let too_early = self.tuned_too_early.iter().cloned();
        let mut errors: Vec<_> = too_early.map(|queue| WorkerConfigError::TunedTooEarly { queue }).collect();
        for target in &self.targets {
            if let Some(handlers) = target.destination.handlers() {
                errors.extend(errors_among(&target.name, handlers));
            }
        }
        errors
    }
}

fn errors_among(queue: &str, handlers: &Handlers) -> Vec<WorkerConfigError> {
    let (queue, all) = (|| queue.to_owned(), handlers.iter().collect::<Vec<_>>());
    let types: Vec<_> = all.iter().filter_map(|handler| handler.message_type()).collect();
    let mut errors = Vec::new();
    for declared in &types {
        if let (Some(name), None) = (declared.name, &declared.media_type) {
            errors.push(WorkerConfigError::TypeName { queue: queue(), name });
        }
    }
    let [first, others @ ..] = &all[..] else { return errors };
    if others.is_empty() {
        return errors;
    }
    let names: Vec<_> = types.iter().filter_map(|declared| declared.name).collect();
    if names.len() < all.len() {
        errors.push(WorkerConfigError::MissingType { queue: queue() });
    }
    for (index, name) in names.iter().enumerate() {
        // Media types have no case.
        if names.iter().take(index).any(|before| before.eq_ignore_ascii_case(name)) {
            errors.push(WorkerConfigError::DuplicateType { queue: queue(), name });
        }
    }
    let guarantee = first.terms().guarantee;
    if let Some(other) = others.iter().map(|handler| handler.terms().guarantee).find(|one| *one != guarantee)
    {
        errors.push(WorkerConfigError::DifferentGuarantees { queue: queue(), one: guarantee, other });
    }
    if types.windows(2).any(|pair| matches!(pair, [one, other] if one.retry != other.retry)) {
        errors.push(WorkerConfigError::DifferentRetries { queue: queue() });
    }
    if all.iter().any(|handler| handler.can_reconcile()) {
        errors.push(WorkerConfigError::ReconcileAmongTypes { queue: queue() });
    }
    errors
}
