//! What the server knows, and which path leads where.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};
use ichido::letters::Policies;
use ichido::worker::OutboundKey;
use ichido_http::server::permits::Permits;
use ichido_store::Store;
use ichido_store::message::QueueName;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use uuid::Uuid;

use super::admission::Admission;
use super::caller::{Caller, no_queue};
use super::destinations::KnownDestination;
use super::feed::Feed;
use super::limits::Chosen;
use super::listings::Listings;
use super::parsing::Parsing;
use super::problem::{Code, Problem};
use super::request::no_route;
use super::running::Running;
use super::waiting::Waiting;
use super::{
    alerts, batch, destinations, events, health, letters, messages, openapi, operations, queues, records,
    replace, search, steps,
};
use crate::config::{Config, Intake};

/// What every handler may use.
pub(super) struct Api {
    pub(super) store: Store,
    /// How much is taken in.
    pub(super) chosen: Chosen,
    /// The queues that this server takes messages in for.
    pub(super) queues: BTreeMap<String, Known>,
    /// Whether they take one more.
    pub(super) admission: Admission,
    /// Where they go.
    pub(super) destinations: Vec<KnownDestination>,
    /// What its queues say about dead messages.
    pub(super) policies: Policies,
    pub(super) waiting: Waiting,
    /// A permit for each batch on its way in.
    pub(super) batches: Permits<Uuid>,
    /// A permit for each byte of any other body, on its way in or out.
    pub(super) bodies: Permits<Uuid>,
    /// Parses bodies, few large ones at a time.
    pub(super) parsing: Parsing,
    /// A turn for each listing of messages.
    pub(super) listings: Listings,
    /// The operations on many messages that run here.
    pub(super) operations: Arc<Running>,
    /// Those who listen to what happens.
    pub(super) feed: Feed,
    pub(super) metrics: PrometheusHandle,
    /// Whether the worker works.
    pub(super) worker_lives: watch::Receiver<bool>,
}

/// A queue that is served here.
pub(super) struct Known {
    pub(super) name: QueueName,
    /// Tries allowed, the first one included.
    pub(super) tries: NonZeroU32,
    pub(super) intake: Intake,
    /// The key that its calls carry.
    pub(super) key: OutboundKey,
}

impl Api {
    /// The queues of a configuration; it was refused if one had no name.
    pub(super) fn known(config: &Config) -> BTreeMap<String, Known> {
        let known = config.queues.iter().filter_map(|queue| {
            let name = QueueName::parse(&queue.name)?;
            Some((
                queue.name.clone(),
                Known { name, tries: queue.retry.tries, intake: config.intake(&queue.name), key: queue.key },
            ))
        });
        known.collect()
    }

    /// A queue that is served here and that the caller may know of. To all others there is none.
    pub(super) fn queue(&self, name: &str, caller: &Caller) -> Result<&Known, Problem> {
        self.queues.get(name).filter(|_| caller.sees_queue(name)).ok_or_else(no_queue)
    }
}

/// The paths that anybody may ask for: they tell nothing about messages.
pub(super) fn is_public(path: &str) -> bool {
    matches!(path, "/" | "/livez" | "/readyz" | "/openapi.json")
}

/// The paths that are answered even when no connection is left for anything else.
pub(super) fn is_health(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics")
}

/// Everything that a server answers.
pub(super) fn router(api: Arc<Api>) -> Router {
    let pages = Router::new()
        .route("/", get(health::index))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics));
    routes().merge(with_refusals(pages)).fallback(async || no_route()).with_state(api)
}

/// The API, and what describes it.
pub(super) fn routes() -> Router<Arc<Api>> {
    let routes = Router::new()
        .route("/openapi.json", get(openapi::show))
        .route("/v1/queues", get(queues::list))
        .route("/v1/queues/{queue}/messages", post(messages::accept))
        .route("/v1/queues/{queue}/messages:batch", post(batch::accept_batch))
        .route("/v1/queues/{queue}/pause", post(queues::pause))
        .route("/v1/queues/{queue}/resume", post(queues::resume))
        .route("/v1/messages", get(search::list))
        .route("/v1/messages/{id}", get(messages::show))
        .route("/v1/messages/{id}/requeue", post(steps::requeue))
        .route("/v1/messages/{id}/cancel", post(steps::cancel))
        .route("/v1/messages/{id}/discard", post(steps::discard))
        .route("/v1/messages/{id}/decide", post(steps::decide))
        .route("/v1/messages/{id}/replace", post(replace::replace))
        .route("/v1/messages/{id}/events", get(messages::events))
        .route("/v1/messages/{id}/request", get(messages::request_bytes))
        .route("/v1/letters", get(letters::list))
        .route("/v1/letters/{id}", get(letters::show))
        .route("/v1/operations", get(operations::list).post(operations::begin))
        .route("/v1/operations/{id}", get(operations::show))
        .route("/v1/operations/{id}/stop", post(operations::stop))
        .route("/v1/destinations", get(destinations::list))
        .route("/v1/destinations/{name}/pace", put(destinations::set_pace))
        .route("/v1/destinations/{name}/resume", post(destinations::resume))
        .route("/v1/ledger", get(records::show))
        .route("/v1/ledger/unknown", get(records::unknown))
        .route("/v1/ledger/decide", post(records::decide))
        .route("/v1/alerts", get(alerts::list))
        .route("/v1/events", get(events::listen))
        .route("/v1/nodes", get(queues::nodes));
    with_refusals(routes)
}

/// Methods that a path does not have are refused as everything else is. Of paths that are added later this says nothing.
fn with_refusals(routes: Router<Arc<Api>>) -> Router<Arc<Api>> {
    routes.method_not_allowed_fallback(async || {
        Problem::new(
            Code::MethodNotAllowed,
            "the path is there, and not for this method; the header Allow says which it is for",
        )
    })
}
