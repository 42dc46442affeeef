//! What all parts of one worker share.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::fence::Fence;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::batch::{BatchWriter, Batcher, WriteMode};
use ichido_store::error::StoreError;
use ichido_store::facts::QueueFacts;
use ichido_store::message::{ClaimOptions, Note, QueueName};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::alert::AlertSettings;
use super::alert::is_alert_queue;
use super::builder::horizon;
use super::cancellations::Cancellations;
use super::claim::MessageClaims;
use super::heartbeat::Pulse;
use super::metrics::QueueMetrics;
use super::pacer::Pacer;
use super::settings::QueueConfig;
use super::slots::Slots;
use super::stop::StopSignal;
use super::transactional::Transactions;
use crate::clock::Clock;
use crate::destination::{DeliveryTerms, Destination};
use crate::lease::Leases;

pub(super) struct WorkerNode {
    /// New at each start.
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) store: Store,
    pub(super) clock: Arc<Clock>,
    pub(super) claims: Arc<Leases<MessageClaims>>,
    pub(super) pulse: Pulse,
    pub(super) cancellations: Cancellations,
    /// Writes start marks in batches.
    pub(super) marks: Batcher<(Uuid, Fence), bool>,
    /// Deletes claims whose messages were settled in transactions, in batches.
    pub(super) finished: Batcher<Fence, ()>,
    /// The permit of the one suspect message that may run here.
    ///
    /// A message is suspect if a worker died with it.
    ///
    /// With two, the next death would be charged to both.
    // Spec: E2.
    pub(super) suspect: Arc<Semaphore>,
    pub(super) stop: StopSignal,
    pub(super) idle_sleep: Duration,
    pub(super) keep_finished: Duration,
    pub(super) audit_key: Option<AuditKey>,
    /// The alerts it watches, if any.
    pub(super) alerts: Option<Arc<AlertSettings>>,
    pub(super) queues: HashMap<QueueName, Arc<ServedQueue>>,
    pub(super) dispatchers: Vec<Arc<Dispatcher>>,
    /// How many calls are in flight.
    pub(super) in_flight: Arc<AtomicUsize>,
}

impl WorkerNode {
    /// Publishes the facts of its queues, for operators without the configuration.
    pub(super) async fn publish(&self) -> Result<(), StoreError> {
        let facts = self.queues.values().map(|served| (served.name.clone(), served.facts()));
        self.store.facts().publish(self.id, &facts.collect::<Vec<_>>()).await
    }
}

/// Writes start marks. Writing a mark twice is harmless.
pub(super) struct StartMarks(pub(super) Store);

impl BatchWriter<(Uuid, Fence), bool> for StartMarks {
    /// A mark waits for nothing but the database.
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, calls: &[(Uuid, Fence)], _: WriteMode) -> Result<Vec<bool>, StoreError> {
        self.0.claims().mark_started(calls).await
    }
}

/// Deletes finished claims. Deleting one twice is harmless.
pub(super) struct FinishedClaims(pub(super) Store);

impl BatchWriter<Fence, ()> for FinishedClaims {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, fences: &[Fence], _: WriteMode) -> Result<Vec<()>, StoreError> {
        self.0.claims().finish(fences).await.map(|()| vec![(); fences.len()])
    }
}

/// A queue that the worker serves.
pub(super) struct ServedQueue {
    pub(super) name: QueueName,
    pub(super) settings: QueueConfig,
    pub(super) slots: Slots,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) metrics: Arc<QueueMetrics>,
}

impl ServedQueue {
    /// Returns the guarantee for repeated calls: the destination's, except that a repeated alert is harmless.
    pub(super) fn guarantee(&self) -> Guarantee {
        match self.dispatcher.promise.guarantee {
            Guarantee::None if is_alert_queue(&self.settings.name) => Guarantee::Idempotent,
            promised => promised,
        }
    }

    /// Returns whether a durable start mark is written before each call.
    pub(super) fn needs_start_marks(&self) -> bool {
        self.settings.start_marks.unwrap_or(self.guarantee() == Guarantee::None)
    }

    /// Returns the most messages per claim.
    ///
    /// One, if its handlers write in transactions: a rescue of one message must not wait for the transaction of another.
    // Spec: H1.
    pub(super) fn batch_size(&self) -> NonZeroU32 {
        if self.dispatcher.transactions.is_some() { NonZeroU32::MIN } else { self.settings.batch_size }
    }

    /// Returns the terms on which a node claims its messages.
    pub(super) fn claim_terms(&self, node: Uuid) -> ClaimOptions {
        ClaimOptions {
            node,
            lease: self.settings.lease,
            start_marks: self.needs_start_marks(),
            guarantee: self.guarantee(),
            max_time_in_flight: self.dispatcher.max_time_in_flight(),
        }
    }

    /// Returns the facts for operators.
    fn facts(&self) -> QueueFacts {
        QueueFacts {
            guarantee: self.guarantee(),
            requeue: self.settings.requeue.unwrap_or(self.guarantee().is_repeatable()),
            max_attempts: self.settings.retry.max_attempts,
            retry_horizon: horizon(&self.settings, &self.dispatcher.promise),
        }
    }

    /// Returns what is stored of a note: no response that is larger than the queue keeps, and no secret in the error.
    // Spec: D18.
    pub(super) fn stored(&self, note: Note, request: Option<&[u8]>) -> Note {
        let response = note.response.map(|response| response.kept_up_to(self.settings.keep_response));
        let redact = &self.settings.redact;
        let excerpt = note.excerpt.map(|text| {
            let redactor = request.map_or_else(|| redact.of_stored(), |request| redact.of_request(request));
            redactor.text(&text).into_owned()
        });
        Note { response, excerpt, ..note }
    }

    /// Returns the key that calls for a message carry.
    pub(super) fn outbound(&self, identity: &str, key: &IdempotencyKey) -> IdempotencyKey {
        self.settings.outbound_key.key_for(&self.name, identity, key)
    }
}

/// A destination, with its pace and its limits.
pub(super) struct Dispatcher {
    pub(super) destination: Destination,
    pub(super) promise: DeliveryTerms,
    pub(super) pacer: Pacer,
    /// Set if its handlers write in transactions.
    pub(super) transactions: Option<Transactions>,
    /// Permits for calls of this worker, if they are limited.
    pub(super) permits: Option<Arc<Semaphore>>,
    pub(super) interval: Duration,
}

impl Dispatcher {
    /// Returns how long after its start a call may still be in flight.
    pub(super) fn max_time_in_flight(&self) -> Duration {
        self.promise.max_time_in_flight()
    }
}
