//! The API without a socket, for commands that work directly on the store.
//!
//! Guarantee: a request means the same as on a server with the same store and configuration. The caller may do everything, and
//! appears in the audit trail under the name it gives. Nothing is delivered here, and nothing listens.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt as _;
use ichido::worker::limits::KEEP_FINISHED_DEFAULT;
use ichido_client::Response as ClientResponse;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use ichido_http::server::permits::Permits;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::sync::{Semaphore, watch};
use tower_service::Service as _;

use super::admission::Admission;
use super::api::{ApiState, ServedQueue, router};
use super::boundaries::LoadedBoundaries;
use super::bulk_runner::BulkRunner;
use super::caller::{ApiCaller, IDENTITY};
use super::destinations::ConfiguredDestination;
use super::feed::Feed;
use super::listings::ListingPermits;
use super::own_url::OwnUrl;
use super::parsing::BodyParser;
use super::problem::Problem;
use super::waiting::OutcomeWaiters;
use crate::accept::SubmissionError;
use crate::config::{Config, Intake};
use crate::limits::{MAX_BATCHES, MAX_BATCHES_PER_TOKEN};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The API inside one command.
pub struct InProcessApi {
    router: Router,
    caller: ApiCaller,
    operations: Arc<BulkRunner>,
}

impl InProcessApi {
    /// Creates an API on a store.
    ///
    /// It has the destinations and schemas of a configuration, if there is one. What its queues allow is read from the store.
    pub fn new(store: Store, config: Option<&Config>, by: String) -> Self {
        Self::with_state(api(store, config), by)
    }

    /// Creates an API that accepts messages for one queue, even if no configuration has it.
    ///
    /// The maximum attempts are those that its workers have published.
    pub async fn taking(
        store: Store,
        config: Option<&Config>,
        queue: &QueueName,
    ) -> Result<Self, StoreError> {
        let mut api = api(store, config);
        if !api.queues.contains_key(queue.as_str()) {
            let published = api.store.facts().list().await?.into_iter().find(|known| known.queue == *queue);
            let max_attempts = published.map_or(Retry::ORDER.max_attempts, |known| known.facts.max_attempts);
            let (name, intake) = (queue.clone(), Intake::default());
            let served = ServedQueue { name, max_attempts, parallelism: None, intake };
            api.queues.insert(queue.as_str().to_owned(), served);
        }
        Ok(Self::with_state(api, ApiCaller::local().name))
    }

    fn with_state(api: ApiState, by: String) -> Self {
        let caller = ApiCaller { name: by, ..ApiCaller::local() };
        let operations = Arc::clone(&api.operations);
        Self { router: router(Arc::new(api)), caller, operations }
    }

    /// Stops the bulk operations that run here before their next batch, and waits for them.
    pub async fn close(&self) {
        self.operations.stop();
        self.operations.wait_until_done().await;
    }

    /// Sends a request, and reads the whole response. A body is JSON.
    pub async fn ask(&self, method: Method, target: Uri, body: String) -> Result<ClientResponse, String> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = target;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.answer(request).await
    }

    /// Enqueues a body as it is, under a key.
    ///
    /// It is for an identity if one is given.
    pub async fn put_in(
        &self,
        target: Uri,
        key: &IdempotencyKey,
        content_type: &str,
        identity: Option<&HeaderValue>,
        body: Vec<u8>,
    ) -> Result<ClientResponse, String> {
        let Ok(content_type) = HeaderValue::from_str(content_type) else {
            return read(Problem::from_submission(&SubmissionError::ContentType).into_response()).await;
        };
        let key = HeaderValue::from_str(&key.to_field_value()).map_err(|error| error.to_string())?;
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target;
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        request.headers_mut().extend(identity.map(|identity| (IDENTITY, identity.clone())));
        self.answer(request).await
    }

    async fn answer(&self, mut request: Request<Body>) -> Result<ClientResponse, String> {
        request.extensions_mut().insert(self.caller.clone());
        let answered = self.router.clone().call(request).await;
        read(answered.unwrap_or_else(|never| match never {})).await
    }
}

async fn read(response: Response) -> Result<ClientResponse, String> {
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| format!("the response was cut off: {error}"))?;
    Ok(ClientResponse {
        status: head.status.as_u16(),
        headers: head.headers,
        body: body.to_bytes(),
        is_whole: true,
    })
}

pub(super) fn api(store: Store, config: Option<&Config>) -> ApiState {
    let request_limits = config.map(|config| config.serve.request_limits).unwrap_or_default();
    ApiState {
        request_limits,
        queues: config.map(ApiState::served_queues).unwrap_or_default(),
        admission: Admission::none(),
        destinations: config.map(ConfiguredDestination::all).unwrap_or_default(),
        served: config.map(served).unwrap_or_default(),
        // A command does not wait for the outcome of a message.
        waiting: OutcomeWaiters::start(store.clone(), 0),
        batches: Permits::new(MAX_BATCHES, MAX_BATCHES_PER_TOKEN),
        listings: ListingPermits::new(),
        // A command has its bodies in memory already, and limits their number itself.
        bodies: Permits::new(Semaphore::MAX_PERMITS, Semaphore::MAX_PERMITS),
        parsing: BodyParser::new(),
        operations: Arc::new(BulkRunner::default()),
        feed: Feed::new(request_limits.max_listeners),
        boundaries: LoadedBoundaries::new(config.map(|config| &*config.serve.boundaries).unwrap_or_default()),
        instance: config.map(|config| config.serve.instance.clone()).unwrap_or_default(),
        own_url: config.map(|config| OwnUrl::new(&config.serve)).unwrap_or_default(),
        keep_finished: config.map_or(KEEP_FINISHED_DEFAULT, |config| config.worker.keep_finished),
        // A command serves no metrics.
        metrics: PrometheusBuilder::new().build_recorder().handle(),
        worker_lives: watch::channel(false).1,
        store,
    }
}

/// Returns the queues of a configuration, including those of alerts.
fn served(config: &Config) -> BTreeSet<String> {
    config.queues.iter().cloned().chain(config.alerts.queues()).map(|queue| queue.name).collect()
}
