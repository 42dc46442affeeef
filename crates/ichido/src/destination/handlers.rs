//! The handlers of one queue, one for each type of its messages.
//!
//! Guarantee: a message runs in the handler of its type and in no other. A worker leaves a type without a handler to others
//! and counts no attempt: during a deployment, old and new workers serve the same queue.
// Spec: H4.

use ichido_core::key::IdempotencyKey;
use ichido_core::text;

use crate::handler_tx::HandlerTx;

use super::{Cancel, DeliveryAttempt, DeliveryOutcome, DeliveryTerms, Handler, JobError, ReconcileOutcome};

/// The longest media type in an error, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// The handlers of one queue, one for each type of its messages.
#[derive(Clone, Debug)]
pub struct Handlers {
    first: Handler,
    others: Vec<Handler>,
}

impl Handlers {
    pub(crate) fn add(&mut self, handler: Handler) {
        self.others.push(handler);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Handler> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the handler of messages of a media type.
    pub(crate) fn find(&self, content_type: &str) -> Option<&Handler> {
        self.iter().find(|handler| handler.takes(content_type))
    }

    /// Puts faults around each of them.
    #[cfg(feature = "testing")]
    pub(crate) fn layer(&self, faults: &super::FaultLayer) -> Self {
        let with_faults = |handler: &Handler| handler.clone().layer(faults.clone());
        Self { first: with_faults(&self.first), others: self.others.iter().map(with_faults).collect() }
    }

    /// Runs the handler of the message's type once.
    pub async fn call(&self, call: &DeliveryAttempt, cancel: &Cancel) -> DeliveryOutcome {
        self.call_in(call.clone(), cancel, None).await
    }

    /// Runs it in a transaction, if it is transactional.
    pub(crate) async fn call_in(
        &self,
        call: DeliveryAttempt,
        cancel: &Cancel,
        tx: Option<HandlerTx>,
    ) -> DeliveryOutcome {
        match self.find(&call.content_type) {
            Some(handler) => handler.call_in(call, cancel, tx).await,
            None => JobError::retry(no_handler(&call.content_type)).into(),
        }
    }

    /// Returns what they promise: the same guarantee, and the longest of their times.
    pub fn terms(&self) -> DeliveryTerms {
        self.others.iter().map(Handler::terms).fold(self.first.terms(), |all, one| DeliveryTerms {
            guarantee: all.guarantee,
            timeout: all.timeout.max(one.timeout),
            settle_grace: all.settle_grace.max(one.settle_grace),
        })
    }

    /// Returns whether a lost run can be looked up.
    pub fn can_reconcile(&self) -> bool {
        // By its key alone: with several types it would be unknown which of them to ask.
        self.others.is_empty() && self.first.can_reconcile()
    }

    /// Looks up the effect of the runs under a key.
    pub async fn ask(&self, key: &IdempotencyKey) -> ReconcileOutcome {
        if self.can_reconcile() { self.first.ask(key).await } else { ReconcileOutcome::unknown() }
    }
}

impl From<Handler> for Handlers {
    fn from(first: Handler) -> Self {
        Self { first, others: Vec::new() }
    }
}

/// Says that messages of a media type have no handler.
pub(crate) fn no_handler(content_type: &str) -> String {
    format!(
        "this worker has no handler for the type `{}`; register one for its TYPE, or wait for a worker that has one",
        text::bounded(content_type, MAX_SHOWN_CHARS),
    )
}
