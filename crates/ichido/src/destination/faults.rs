//! Faults that tests inject between a worker and its handlers.
// Spec: H7.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use ichido_core::sync::lock;
use tokio::sync::Notify;
use tower_layer::Layer;
use tower_service::Service;

use super::{DeliveryOutcome, HandlerFuture, HandlerRequest, HandlerService, JobError};

/// What goes wrong in one attempt.
///
/// The transaction of a [`Worker::handle_tx`](crate::worker::Worker::handle_tx) has not committed then: it is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The handler runs to its end, and its answer is lost: the effect is done, and unknown to the worker.
    LostAnswer,
    /// The worker crashes before the handler runs.
    CrashBeforeEffect,
    /// The handler runs to its end, and the worker crashes before it notes that.
    CrashAfterEffect,
}

/// Puts the next fault of a message's queue around its handler. All clones share the faults.
#[derive(Clone, Default)]
pub(crate) struct FaultLayer(Arc<Faults>);

#[derive(Default)]
struct Faults {
    /// The faults of the next attempts, by queue.
    next: Mutex<HashMap<String, VecDeque<Fault>>>,
    crash: Notify,
}

impl FaultLayer {
    pub(crate) fn inject(&self, queue: &str, fault: Fault) {
        lock(&self.0.next).entry(queue.to_owned()).or_default().push_back(fault);
    }

    /// Waits until the worker is to crash.
    pub(crate) async fn crashed(&self) {
        self.0.crash.notified().await;
    }

    /// Returns a fault that has not happened, and its queue.
    pub(crate) fn left(&self) -> Option<(String, Fault)> {
        let next = lock(&self.0.next);
        next.iter().find_map(|(queue, faults)| Some((queue.clone(), *faults.front()?)))
    }

    fn take(&self, queue: &str) -> Option<Fault> {
        lock(&self.0.next).get_mut(queue)?.pop_front()
    }

    /// Ends the worker, and with it this attempt.
    async fn crash(&self) -> Result<DeliveryOutcome, JobError> {
        self.0.crash.notify_one();
        std::future::pending().await
    }
}

impl Layer<HandlerService> for FaultLayer {
    type Service = FaultyService;

    fn layer(&self, inner: HandlerService) -> FaultyService {
        FaultyService { inner, faults: self.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct FaultyService {
    inner: HandlerService,
    faults: FaultLayer,
}

impl Service<HandlerRequest> for FaultyService {
    type Response = DeliveryOutcome;
    type Error = JobError;
    type Future = HandlerFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), JobError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: HandlerRequest) -> HandlerFuture {
        let (mut inner, faults) = (self.inner.clone(), self.faults.clone());
        Box::pin(async move {
            match faults.take(request.attempt.queue.as_str()) {
                None => inner.call(request).await,
                Some(Fault::LostAnswer) => {
                    drop(inner.call(request).await);
                    Err(JobError::unknown("the handler's answer was lost, by an injected fault"))
                }
                Some(Fault::CrashBeforeEffect) => faults.crash().await,
                Some(Fault::CrashAfterEffect) => {
                    drop(inner.call(request).await);
                    faults.crash().await
                }
            }
        })
    }
}
