//! A function in this process as a destination.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use super::{
    Cancel, DeliveryAttempt, DeliveryOutcome, DeliveryTerms, Job, JobError, JobSuccess, ReconcileOutcome,
};

type RunFuture = Pin<Box<dyn Future<Output = DeliveryOutcome> + Send>>;
type AskFuture = Pin<Box<dyn Future<Output = ReconcileOutcome> + Send>>;

/// A function that does the work of a queue.
///
/// Cheap to clone; all clones are the same.
///
/// Each run is its own task: a panic or a timeout is a failed attempt and blocks nobody else. By default it promises
/// nothing about repetitions, so a lost run is parked and never repeated blindly.
#[derive(Clone)]
pub struct Handler {
    run: Arc<dyn Fn(DeliveryAttempt, Cancel) -> RunFuture + Send + Sync>,
    ask: Option<Arc<dyn Fn(IdempotencyKey) -> AskFuture + Send + Sync>>,
    promise: DeliveryTerms,
}

impl Handler {
    /// The default for the longest run.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(20);

    /// Creates a handler of JSON requests.
    ///
    /// A request that cannot be parsed as `T` is dead at once, and the reason says where.
    pub fn json<T, F, A, D>(handle: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(Job<T>) -> A + Send + Sync + 'static,
        A: Future<Output = Result<D, JobError>> + Send + 'static,
        D: Into<JobSuccess>,
    {
        Self::with_reader(handle, |body| {
            serde_json::from_slice(body).map_err(|error| {
                format!("the body is not the JSON that this queue's handler expects: {error}")
            })
        })
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
        Self::new(move |call, cancel| {
            let handle = Arc::clone(&handle);
            Box::pin(async move {
                let ended = match read(&call.body) {
                    Ok(payload) => handle(Job::new(call, payload, cancel)).await,
                    Err(why) => Err(JobError::dead(why)),
                };
                ended.map_or_else(Into::into, |done| done.into().into())
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
        Self::new(move |call, _| Box::pin(handle(call)))
    }

    fn new(run: impl Fn(DeliveryAttempt, Cancel) -> RunFuture + Send + Sync + 'static) -> Self {
        let promise = DeliveryTerms {
            guarantee: Guarantee::None,
            timeout: Self::TIMEOUT_DEFAULT,
            settle_grace: Duration::ZERO,
        };
        Self { run: Arc::new(run), ask: None, promise }
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

    /// Runs it once.
    pub async fn call(&self, call: &DeliveryAttempt, cancel: &Cancel) -> DeliveryOutcome {
        let (run, call, cancel_clone) = (Arc::clone(&self.run), call.clone(), cancel.clone());
        // Its own task contains a panic, and a run that blocks its thread blocks nobody else.
        let mut task = AbortOnDrop(tokio::spawn(async move { run(call, cancel_clone).await }));
        let ended = tokio::time::timeout(self.promise.timeout, &mut task.0).await;
        match ended {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(lost)) => JobError::unknown(why_lost(lost)).into(),
            Err(_) => {
                cancel.cancel();
                JobError::timed_out(self.promise.timeout).into()
            }
        }
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

/// A task that is aborted when it is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn why_lost(lost: tokio::task::JoinError) -> String {
    match lost.try_into_panic() {
        Ok(panic) => format!("the handler panicked: {}", panic_text(&*panic)),
        Err(_) => "the handler's task was cancelled".to_owned(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no panic message")
}
