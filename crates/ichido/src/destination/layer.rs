//! Tower middleware around a handler.
//!
//! Guarantee: a layer sees every attempt once, in the task of its handler and within its timeout. While the service is not
//! ready, the attempt has not begun: if its time ends then, nothing was done.
// Spec: H4.

use std::fmt;
use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use ichido_core::sync::lock;
use tower_layer::Layer;
use tower_service::Service;

use super::{Cancel, DeliveryAttempt, DeliveryOutcome, JobError};
use crate::handler_tx::HandlerTx;

/// The outcome of one attempt, when it has ended.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<DeliveryOutcome, JobError>> + Send>>;
pub(super) type Run = Arc<dyn Fn(HandlerRequest) -> HandlerFuture + Send + Sync>;

/// One attempt, as it passes the layers around a handler.
#[derive(Debug)]
pub struct HandlerRequest {
    /// The attempt.
    pub attempt: DeliveryAttempt,
    /// Signals that the work is no longer wanted.
    pub cancel: Cancel,
    /// Whether it has begun; taken by the outermost service.
    begun: Option<Begun>,
    /// The transaction of a transactional handler.
    tx: Option<HandlerTx>,
}

/// Decides whether an attempt begins or is abandoned before: the first to ask gets it.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun(Arc<AtomicBool>);

impl Begun {
    /// Returns whether nobody was first.
    pub(super) fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

impl HandlerRequest {
    pub(super) fn new(attempt: DeliveryAttempt, cancel: Cancel, begun: Begun, tx: Option<HandlerTx>) -> Self {
        Self { attempt, cancel, begun: Some(begun), tx }
    }

    /// Begins the attempt, unless it was abandoned.
    fn begin(&mut self) -> Result<(), JobError> {
        match self.begun.take() {
            Some(begun) if !begun.is_first() => Err(JobError::retry("abandoned before it began")),
            _ => Ok(()),
        }
    }
}

/// A handler as a tower service: what a layer wraps.
#[derive(Clone)]
pub struct HandlerService(Run);

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerService")
    }
}

impl Service<HandlerRequest> for HandlerService {
    type Response = DeliveryOutcome;
    type Error = JobError;
    type Future = HandlerFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), JobError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HandlerRequest) -> HandlerFuture {
        (self.0)(request)
    }
}

/// Runs a function without layers.
pub(super) fn plain(
    run: impl Fn(DeliveryAttempt, Cancel, Option<HandlerTx>) -> HandlerFuture + Send + Sync + 'static,
) -> Run {
    Arc::new(move |mut request| match request.begin() {
        Ok(()) => run(request.attempt, request.cancel, request.tx),
        Err(abandoned) => Box::pin(ready(Err(abandoned))),
    })
}

/// Wraps a function in a layer.
pub(super) fn layered<L, S>(run: Run, layer: &L) -> Run
where
    L: Layer<HandlerService, Service = S>,
    S: Service<HandlerRequest, Response = DeliveryOutcome> + Clone + Send + 'static,
    S::Error: Into<JobError>,
    S::Future: Send,
{
    // Services are cloned, and need not be shared between threads.
    let service = Mutex::new(layer.layer(HandlerService(run)));
    Arc::new(move |mut request| {
        let mut service = lock(&service).clone();
        Box::pin(async move {
            poll_fn(|context| service.poll_ready(context)).await.map_err(Into::<JobError>::into)?;
            request.begin()?;
            service.call(request).await.map_err(Into::into)
        })
    })
}
