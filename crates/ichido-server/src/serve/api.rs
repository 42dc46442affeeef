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
use super::caller::{Caller, no_queue};
use super::destinations::KnownDestination;
use super::feed::Feed;
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
use crate::limits::Chosen;

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
    /// The queues that its configuration has, those of alerts among them.
    pub(super) served: BTreeSet<String>,
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
}

impl Api {
    /// The queues of a configuration; it was refused if one had no name.
    pub(super) fn known(config: &Config) -> BTreeMap<String, Known> {
        let known = config.queues.iter().filter_map(|queue| {
            let name = QueueName::parse(&queue.name)?;
            Some((
                queue.name.clone(),
                Known { name, tries: queue.retry.tries, intake: config.intake(&queue.name) },
            ))
        });
        known.collect()
    }

    /// What workers have published about dead messages.
    pub(super) async fn policies(&self) -> Result<Policies, Problem> {
        Ok(Policies::published(&self.store).await?)
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
    let (router, description) = served().split_for_parts();
    let pages =
        Router::new().route("/", get(health::index)).route("/openapi.json", openapi::page(description));
    let router = router.merge(pages).fallback(async || no_route());
    with_refusals(router).with_state(api)
}

/// The API, and what describes it.
pub(super) fn routes() -> Router<Arc<Api>> {
    let (router, description) = v1().split_for_parts();
    with_refusals(router.route("/openapi.json", openapi::page(description)))
}

/// The API and the pages of a server, as far as they are described.
pub(super) fn served() -> OpenApiRouter<Arc<Api>> {
    v1().routes(routes!(health::livez)).routes(routes!(health::readyz)).routes(routes!(health::metrics))
}

fn v1() -> OpenApiRouter<Arc<Api>> {
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
        .routes(routes!(letters::list_dead_letters))
        .routes(routes!(letters::get_dead_letter))
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
fn with_refusals(routes: Router<Arc<Api>>) -> Router<Arc<Api>> {
    routes.method_not_allowed_fallback(async || {
        Problem::new(
            Code::MethodNotAllowed,
            "the path is there, and not for this method; the header Allow says which it is for",
        )
    })
}
