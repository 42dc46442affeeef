//! A function in this process as a destination.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use ichido_core::digest;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::{Guarantee, Retry};
use ichido_store::StoreDatabase;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::handler_tx::{HandlerTx, Tx};
use crate::message::{Message, content_type, names_type};

use super::layer::{self, Begun, HandlerFuture, HandlerRequest, HandlerService, Run};
use super::promptness::Promptness;
use super::{
    Cancel, DeliveryAttempt, DeliveryOutcome, DeliveryTerms, Job, JobError, JobSuccess, ReconcileOutcome,
};

type AskFuture = Pin<Box<dyn Future<Output = ReconcileOutcome> + Send>>;

/// A function that does the work of a queue.
///
/// Cheap to clone; all clones are the same.
///
/// A panic or a timeout is a failed attempt of its message alone. A run that waits has its own task; those that never wait
/// share one. By default it promises nothing about repetitions, so a lost run is parked and never repeated blindly.
#[derive(Clone)]
pub struct Handler {
    run: Run,
    ask: Option<Arc<dyn Fn(IdempotencyKey) -> AskFuture + Send + Sync>>,
    promise: DeliveryTerms,
    /// What its message type declares, if it has one.
    message: Option<MessageType>,
    /// The database of its transactions, if it is transactional.
    tx_database: Option<&'static str>,
    promptness: Arc<Promptness>,
}

/// A run after its first poll.
pub(crate) enum FirstPoll {
    Ended(DeliveryOutcome),
    Running(StartedRun),
}

/// A run that waits.
pub(crate) struct StartedRun {
    run: HandlerFuture,
    begun: Begun,
    timeout: Duration,
}

impl StartedRun {
    /// Continues it in its own task, until it ends or its time is up.
    pub(crate) async fn finish(self, cancel: &Cancel) -> DeliveryOutcome {
        ended(tokio::spawn(self.run), self.timeout, &self.begun, cancel).await
    }
}

/// What the type of a handler's messages declares.
#[derive(Clone, Debug)]
pub(crate) struct MessageType {
    pub(crate) name: Option<&'static str>,
    /// The media type of its messages; `None` if the name is not valid.
    pub(crate) media_type: Option<String>,
    pub(crate) retry: Retry,
}

impl Handler {
    /// The default for the longest run.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(20);

    /// Creates a handler of a message type: of its media type, and with its retry schedule.
    ///
    /// A payload that cannot be parsed as `M` is dead at once, and the reason says where.
    pub fn message<M, F, A, D>(handle: F) -> Self
    where
        M: Message,
        F: Fn(Job<M>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        Self { message: Some(MessageType::new::<M>()), ..Self::json(handle) }
    }

    /// Creates a handler of a message type whose effects are in a transaction on the store's own database.
    ///
    /// They commit with the message's settlement: exactly once. Only a worker with a pool can run it
    /// ([`Worker::handle_tx`](crate::worker::Worker::handle_tx)).
    // Spec: H1.
    pub fn transactional<DB, M, F, A, D>(handle: F) -> Self
    where
        DB: StoreDatabase,
        M: Message,
        F: Fn(Job<M>, Tx<DB>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        let handle = Arc::new(handle);
        let mut handler = Self::new(move |call, cancel, tx| {
            let (handle, tx) = (Arc::clone(&handle), tx.as_ref().and_then(HandlerTx::on::<DB>));
            Box::pin(async move {
                let Some(tx) = tx else {
                    return Err(JobError::retry("a transactional handler needs a worker on its database"));
                };
                let payload = read_json(&call.body).map_err(JobError::dead)?;
                Ok(handle(Job::new(call, payload, cancel), tx).await?.into().into())
            })
        });
        handler.promise.guarantee = Guarantee::Transactional;
        Self { message: Some(MessageType::new::<M>()), tx_database: Some(DB::NAME), ..handler }
    }

    /// Creates a handler of JSON requests, whatever their media type.
    ///
    /// A request that cannot be parsed as `T` is dead at once, and the reason says where.
    pub fn json<T, F, A, D>(handle: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(Job<T>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        Self::with_reader(handle, read_json)
    }

    /// Creates a handler of raw requests.
    pub fn bytes<F, A, D>(handle: F) -> Self
    where
        F: Fn(Job<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        Self::with_reader(handle, |body| Ok(body.clone()))
    }

    /// Creates a handler that parses requests first.
    ///
    /// One that cannot be parsed is dead at once.
    fn with_reader<T, F, A, D>(handle: F, read: fn(&Bytes) -> Result<T, String>) -> Self
    where
        T: Send + 'static,
        F: Fn(Job<T>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        let handle = Arc::new(handle);
        Self::new(move |call, cancel, _| {
            let handle = Arc::clone(&handle);
            Box::pin(async move {
                let ended = match read(&call.body) {
                    Ok(payload) => handle(Job::new(call, payload, cancel)).await,
                    Err(why) => Err(JobError::dead(why)),
                };
                ended.map(|done| done.into().into())
            })
        })
    }

    /// Creates a handler that returns its own verdict.
    ///
    /// It says what is known of the effect, and what the pace is told.
    pub fn judged<F, A>(handle: F) -> Self
    where
        F: Fn(DeliveryAttempt) -> A + Send + Sync + 'static,
        A: Future<Output = DeliveryOutcome> + Send + 'static,
    {
        Self::new(move |call, _, _| {
            let judged = handle(call);
            Box::pin(async move { Ok(judged.await) })
        })
    }

    fn new(
        run: impl Fn(DeliveryAttempt, Cancel, Option<HandlerTx>) -> HandlerFuture + Send + Sync + 'static,
    ) -> Self {
        let promise = DeliveryTerms {
            guarantee: Guarantee::None,
            timeout: Self::TIMEOUT_DEFAULT,
            settle_grace: Duration::ZERO,
        };
        let promptness = Arc::default();
        Self { run: layer::plain(run), ask: None, promise, message: None, tx_database: None, promptness }
    }

    /// Declares that repeating it is harmless.
    ///
    /// A read, or work that may be paid for twice.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.promise.guarantee = Guarantee::Idempotent;
        self
    }

    /// Declares that its upstream deduplicates by key for this long, from the first call on.
    #[must_use]
    pub fn keyed(mut self, keeps_for: Duration) -> Self {
        self.promise.guarantee = Guarantee::Keyed { keeps_for };
        self
    }

    /// Sets the longest run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.promise.timeout = timeout;
        self
    }

    /// Sets how long its work may continue after a run was abandoned.
    #[must_use]
    pub fn settle_grace(mut self, settle_grace: Duration) -> Self {
        self.promise.settle_grace = settle_grace;
        self
    }

    /// Wraps it in tower middleware, inside its timeout.
    ///
    /// The last layer is the outermost; of several, pass one stack (`tower::ServiceBuilder`). A service that is not ready
    /// within the timeout has done nothing, and the message is retried. The error of a layer that is not a [`JobError`] is
    /// one of unknown effect, as by `?`.
    ///
    /// This layer measures every attempt:
    ///
    /// ```
    /// use ichido::destination::{Handler, HandlerFuture, Job};
    /// use tokio::time::Instant;
    /// use tower::util::MapFutureLayer;
    /// # use ichido::message::Message;
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct SendReceipt;
    /// # impl Message for SendReceipt { const QUEUE: &str = "mail"; }
    ///
    /// let timing = MapFutureLayer::new(|attempt: HandlerFuture| async move {
    ///     let started = Instant::now();
    ///     let outcome = attempt.await;
    ///     println!("an attempt took {:?}", started.elapsed());
    ///     outcome
    /// });
    /// let handler = Handler::message(|_: Job<SendReceipt>| async { Ok(()) }).idempotent().layer(timing);
    /// ```
    #[must_use]
    pub fn layer<L, S>(self, layer: L) -> Self
    where
        L: Layer<HandlerService, Service = S>,
        S: Service<HandlerRequest, Response = DeliveryOutcome> + Clone + Send + 'static,
        S::Error: Into<JobError>,
        S::Future: Send,
    {
        Self { run: layer::layered(self.run, &layer), ..self }
    }

    /// Sets a function that looks up a lost run by its outbound key.
    #[must_use]
    pub fn reconcile<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(IdempotencyKey) -> A + Send + Sync + 'static,
        A: Future<Output = ReconcileOutcome> + Send + 'static,
    {
        self.ask = Some(Arc::new(move |key| Box::pin(ask(key))));
        self
    }

    /// Returns whether it takes messages of a media type.
    pub(super) fn takes(&self, content_type: &str) -> bool {
        match &self.message {
            None => true,
            // A named type is another type's, and a worker that knows it may come later.
            Some(MessageType { name: None, .. }) => !names_type(&digest::media_type(content_type)),
            Some(MessageType { media_type, .. }) => {
                media_type.as_ref() == Some(&digest::media_type(content_type))
            }
        }
    }

    pub(crate) fn message_type(&self) -> Option<&MessageType> {
        self.message.as_ref()
    }

    /// Returns the name of the database of its transactions, if it is transactional.
    pub(crate) fn tx_database(&self) -> Option<&'static str> {
        self.tx_database
    }

    /// Runs it once.
    pub async fn call(&self, call: &DeliveryAttempt, cancel: &Cancel) -> DeliveryOutcome {
        self.call_in(call.clone(), cancel, None).await
    }

    /// Runs it once, in a transaction if it is transactional.
    pub(crate) async fn call_in(
        &self,
        call: DeliveryAttempt,
        cancel: &Cancel,
        tx: Option<HandlerTx>,
    ) -> DeliveryOutcome {
        let (run, begun, promptness) =
            (Arc::clone(&self.run), Begun::default(), Arc::clone(&self.promptness));
        let request = HandlerRequest::new(call, cancel.clone(), begun.clone(), tx);
        // Its own task contains a panic, and a run that blocks its thread blocks nobody else.
        let task = tokio::spawn(async move {
            let mut first = Some(Instant::now());
            let mut run = run(request);
            poll_fn(|context| {
                let polled = run.as_mut().poll(context);
                if let Some(started) = first.take() {
                    promptness.record(started.elapsed());
                }
                polled
            })
            .await
        });
        ended(task, self.promise.timeout, &begun, cancel).await
    }

    /// Returns whether its runs give their thread back at once, as far as is known.
    pub(crate) fn is_prompt(&self) -> bool {
        self.promptness.is_prompt()
    }

    /// Records how long the first poll of a run took.
    pub(crate) fn record_first_poll(&self, took: Duration) {
        self.promptness.record(took);
    }

    /// Begins a run and polls it once, in the caller's task.
    pub(crate) fn poll_first(
        &self,
        call: DeliveryAttempt,
        cancel: &Cancel,
        context: &mut Context<'_>,
    ) -> FirstPoll {
        let begun = Begun::default();
        let request = HandlerRequest::new(call, cancel.clone(), begun.clone(), None);
        // The run is polled and dropped in here, so its panic is only its own.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut run = (self.run)(request);
            match run.as_mut().poll(context) {
                Poll::Ready(ended) => FirstPoll::Ended(ended.unwrap_or_else(Into::into)),
                Poll::Pending => FirstPoll::Running(StartedRun { run, begun, timeout: self.promise.timeout }),
            }
        }));
        polled.unwrap_or_else(|panic| FirstPoll::Ended(panicked(&*panic).into()))
    }

    /// Returns what it promises.
    pub fn terms(&self) -> DeliveryTerms {
        self.promise
    }

    /// Returns whether it can look up a lost run.
    pub fn can_reconcile(&self) -> bool {
        self.ask.is_some()
    }

    /// Looks up the effect of the runs under a key.
    pub async fn ask(&self, key: &IdempotencyKey) -> ReconcileOutcome {
        let Some(ask) = self.ask.clone() else { return ReconcileOutcome::unknown() };
        let (key, timeout) = (key.clone(), self.promise.timeout);
        let mut task = AbortOnDrop(tokio::spawn(async move { ask(key).await }));
        match tokio::time::timeout(timeout, &mut task.0).await {
            Ok(Ok(asked)) => asked,
            Ok(Err(_)) | Err(_) => ReconcileOutcome::unknown(),
        }
    }
}

ichido_core::debug_only! {
    Handler as handler { promise }
}

impl MessageType {
    fn new<M: Message>() -> Self {
        let media_type = content_type::<M>().ok().map(|declared| digest::media_type(&declared));
        Self { name: M::TYPE, media_type, retry: M::RETRY }
    }
}

/// A task that is aborted when it is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn read_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, String> {
    serde_json::from_slice(body)
        .map_err(|error| format!("the body is not the JSON that this queue's handler expects: {error}"))
}

/// Waits for the end of a run, and no longer than it may take.
async fn ended(
    task: JoinHandle<Result<DeliveryOutcome, JobError>>,
    timeout: Duration,
    begun: &Begun,
    cancel: &Cancel,
) -> DeliveryOutcome {
    let mut task = AbortOnDrop(task);
    match tokio::time::timeout(timeout, &mut task.0).await {
        Ok(Ok(outcome)) => outcome.unwrap_or_else(Into::into),
        Ok(Err(lost)) => why_lost(lost).into(),
        Err(_) => {
            cancel.cancel();
            if begun.is_first() {
                JobError::retry(format_args!("the handler's layers were not ready within {timeout:?}")).into()
            } else {
                JobError::timed_out(timeout).into()
            }
        }
    }
}

fn why_lost(lost: tokio::task::JoinError) -> JobError {
    match lost.try_into_panic() {
        Ok(panic) => panicked(&*panic),
        Err(_) => JobError::unknown("the handler's task was cancelled"),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> JobError {
    JobError::unknown(format_args!("the handler panicked: {}", panic_text(panic)))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no panic message")
}
