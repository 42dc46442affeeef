//! What the server knows, and which path leads where.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use ichido::letters::Policies;
use ichido_http::server::permits::Permits;
use ichido_store::Store;
use ichido_store::message::QueueName;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::admission::Admission;
use super::bulk_runner::BulkRunner;
use super::caller::{ApiCaller, unknown_queue};
use super::destinations::ConfiguredDestination;
use super::feed::Feed;
use super::listings::ListingPermits;
use super::parsing::BodyParser;
use super::problem::{Code, Problem};
use super::request::unknown_route;
use super::waiting::OutcomeWaiters;
use super::{
    alerts, batch, dead_letters, destinations, events, health, messages, openapi, operations, queues,
    records, replace, search, steps,
};
use crate::config::{Config, Intake};
use crate::limits::RequestLimits;

/// What every handler may use.
pub(super) struct ApiState {
    pub(super) store: Store,
    /// How much is taken in.
    pub(super) request_limits: RequestLimits,
    /// The queues that this server takes messages in for.
    pub(super) queues: BTreeMap<String, ServedQueue>,
    /// Whether they take one more.
    pub(super) admission: Admission,
    /// Where they go.
    pub(super) destinations: Vec<ConfiguredDestination>,
    /// The queues that its configuration has, those of alerts among them.
    pub(super) served: BTreeSet<String>,
    pub(super) waiting: OutcomeWaiters,
    /// A permit for each batch on its way in.
    pub(super) batches: Permits<Uuid>,
    /// A permit for each byte of any other body, on its way in or out.
    pub(super) bodies: Permits<Uuid>,
    /// Parses bodies, few large ones at a time.
    pub(super) parsing: BodyParser,
    /// A turn for each listing of messages.
    pub(super) listings: ListingPermits,
    /// The operations on many messages that run here.
    pub(super) operations: Arc<BulkRunner>,
    /// Those who listen to what happens.
    pub(super) feed: Feed,
    pub(super) metrics: PrometheusHandle,
    /// Whether the worker works.
    pub(super) worker_lives: watch::Receiver<bool>,
}

/// A queue that is served here.
pub(super) struct ServedQueue {
    pub(super) name: QueueName,
    /// Tries allowed, the first one included.
    pub(super) tries: NonZeroU32,
    pub(super) intake: Intake,
}

impl ApiState {
    /// The queues of a configuration; it was refused if one had no name.
    pub(super) fn served_queues(config: &Config) -> BTreeMap<String, ServedQueue> {
        let known = config.queues.iter().filter_map(|queue| {
            let name = QueueName::parse(&queue.name)?;
            Some((
                queue.name.clone(),
                ServedQueue { name, tries: queue.retry.tries, intake: config.intake(&queue.name) },
            ))
        });
        known.collect()
    }

    /// What workers have published about dead messages.
    pub(super) async fn policies(&self) -> Result<Policies, Problem> {
        Ok(Policies::published(&self.store).await?)
    }

    /// A queue that is served here and that the caller may know of. To all others there is none.
    pub(super) fn queue(&self, name: &str, caller: &ApiCaller) -> Result<&ServedQueue, Problem> {
        self.queues.get(name).filter(|_| caller.can_see_queue(name)).ok_or_else(unknown_queue)
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
pub(super) fn router(api: Arc<ApiState>) -> Router {
    let (router, description) = served().split_for_parts();
    let pages =
        Router::new().route("/", get(health::index)).route("/openapi.json", openapi::page(description));
    let router = router.merge(pages).fallback(async || unknown_route());
    with_refusals(router).with_state(api)
}

/// The API, and what describes it.
pub(super) fn routes() -> Router<Arc<ApiState>> {
    let (router, description) = v1().split_for_parts();
    with_refusals(router.route("/openapi.json", openapi::page(description)))
}

/// The API and the pages of a server, as far as they are described.
pub(super) fn served() -> OpenApiRouter<Arc<ApiState>> {
    v1().routes(routes!(health::livez)).routes(routes!(health::readyz)).routes(routes!(health::metrics))
}

fn v1() -> OpenApiRouter<Arc<ApiState>> {
    OpenApiRouter::with_openapi(openapi::head())
        .routes(routes!(messages::enqueue_message))
        .routes(routes!(batch::enqueue_batch))
        .routes(routes!(search::list_messages))
        .routes(routes!(messages::get_message))
        .routes(routes!(messages::list_message_events))
        .routes(routes!(messages::get_message_request))
        .routes(routes!(steps::requeue_message))
        .routes(routes!(steps::cancel_message))
        .routes(routes!(steps::discard_message))
        .routes(routes!(steps::decide_message))
        .routes(routes!(replace::replace_message))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(dead_letters::get_dead_letter))
        .routes(routes!(operations::list_bulk_operations, operations::start_bulk_operation))
        .routes(routes!(operations::get_bulk_operation))
        .routes(routes!(operations::stop_bulk_operation))
        .routes(routes!(queues::list_queues))
        .routes(routes!(queues::pause_queue))
        .routes(routes!(queues::resume_queue))
        .routes(routes!(queues::list_nodes))
        .routes(routes!(destinations::list_destinations))
        .routes(routes!(destinations::set_destination_pace))
        .routes(routes!(destinations::resume_destination))
        .routes(routes!(records::get_ledger_entry))
        .routes(routes!(records::list_unknown_ledger_entries))
        .routes(routes!(records::decide_ledger_entry))
        .routes(routes!(alerts::list_alerts))
        .routes(routes!(events::stream_events))
}

/// A method that a path does not have is refused as everything else is.
fn with_refusals(routes: Router<Arc<ApiState>>) -> Router<Arc<ApiState>> {
    routes.method_not_allowed_fallback(async || {
        Problem::new(
            Code::MethodNotAllowed,
            "the path is there, and not for this method; the header Allow says which it is for",
        )
    })
}
