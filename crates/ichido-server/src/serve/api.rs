//! The state that handlers share, and the routes.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use ichido::dead_letters::RequeuePolicies;
use ichido_core::json::Redaction;
use ichido_http::server::permits::Permits;
use ichido_store::Store;
use ichido_store::message::QueueName;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::admission::Admission;
use super::boundaries::LoadedBoundaries;
use super::bulk_runner::BulkRunner;
use super::caller::{ApiCaller, unknown_queue};
use super::destinations::ConfiguredDestination;
use super::feed::Feed;
use super::listings::ListingPermits;
use super::own_url::OwnUrl;
use super::parsing::BodyParser;
use super::problem::{Code, Problem};
use super::request::unknown_route;
use super::waiting::OutcomeWaiters;
use super::{
    alerts, audit, batch, boundaries, dead_letters, destinations, error_pages, events, failure_groups,
    health, keys, messages, openapi, operations, parallelism, queues, replace, search, series, steps,
};
use crate::config::{Config, Intake, did_you_mean};
use crate::instance::Instance;
use crate::limits::RequestLimits;

/// Hides nothing.
static NOTHING: Redaction = Redaction::NONE;

/// The state that every handler may use.
pub(super) struct ApiState {
    pub(super) store: Store,
    /// The limits of requests.
    pub(super) request_limits: RequestLimits,
    /// The queues that this server accepts messages for.
    pub(super) queues: BTreeMap<String, ServedQueue>,
    /// Whether they accept one more message.
    pub(super) admission: Admission,
    /// The destinations of the configuration.
    pub(super) destinations: Vec<ConfiguredDestination>,
    /// The configured queues, including those of alerts.
    pub(super) served: BTreeSet<String>,
    pub(super) waiting: OutcomeWaiters,
    /// Permits for incoming batches.
    pub(super) batches: Permits<Uuid>,
    /// Permits for the bytes of all other bodies, incoming and outgoing.
    pub(super) bodies: Permits<Uuid>,
    /// Parses bodies, a few large ones at a time.
    pub(super) parsing: BodyParser,
    /// Permits for listings of messages.
    pub(super) listings: ListingPermits,
    /// The bulk operations that run here.
    pub(super) operations: Arc<BulkRunner>,
    /// The event feed.
    pub(super) feed: Feed,
    /// The boundary files, with what the rules find in them.
    pub(super) boundaries: LoadedBoundaries,
    /// Its name and colour on the dashboard.
    pub(super) instance: Instance,
    /// Where people reach it.
    pub(super) own_url: OwnUrl,
    /// How long finished messages are kept.
    pub(super) keep_finished: Duration,
    pub(super) metrics: PrometheusHandle,
    /// Whether the worker is running.
    pub(super) worker_lives: watch::Receiver<bool>,
}

/// A queue that this server accepts messages for.
pub(super) struct ServedQueue {
    pub(super) name: QueueName,
    /// Maximum attempts, including the first.
    pub(super) max_attempts: NonZeroU32,
    /// How many of its messages a worker runs at the same time, if it is configured here.
    pub(super) parallelism: Option<NonZeroU32>,
    pub(super) intake: Intake,
}

impl ApiState {
    /// Returns the queues of a configuration, which refuses invalid names.
    pub(super) fn served_queues(config: &Config) -> BTreeMap<String, ServedQueue> {
        let known = config.queues.iter().filter_map(|queue| {
            let name = QueueName::parse(&queue.name)?;
            Some((
                queue.name.clone(),
                ServedQueue {
                    name,
                    max_attempts: queue.retry.max_attempts,
                    parallelism: Some(queue.parallelism),
                    intake: config.intake(&queue.name),
                },
            ))
        });
        known.collect()
    }

    /// Returns what workers have published about dead letters.
    pub(super) async fn policies(&self) -> Result<RequeuePolicies, Problem> {
        Ok(RequeuePolicies::published(&self.store).await?)
    }

    /// Returns what people do not see of a queue's messages: nothing is hidden if it is not configured here.
    pub(super) fn redaction(&self, queue: &str) -> &Redaction {
        self.queues.get(queue).map_or(&NOTHING, |known| &*known.intake.redact)
    }

    /// Returns a queue that is served here and visible to the caller.
    ///
    /// To others it does not exist.
    pub(super) fn queue(&self, name: &str, caller: &ApiCaller) -> Result<&ServedQueue, Problem> {
        self.queues.get(name).filter(|_| caller.can_see_queue(name)).ok_or_else(|| {
            // Only a valid name is repeated.
            let Some(name) = QueueName::parse(name) else { return unknown_queue() };
            let visible = self.queues.keys().map(String::as_str).filter(|known| caller.can_see_queue(known));
            let meant = did_you_mean(name.as_str(), visible, "see `ichido queues list`");
            Problem::new(Code::QueueUnknown, format!("there is no queue {} here{meant}", name.as_str()))
        })
    }
}

/// Whether a path needs no authentication: it reveals nothing about messages.
pub(super) fn is_public(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/openapi.json") || error_pages::is_page(path)
}

/// Whether a path is served even when no connection is left for anything else.
pub(super) fn is_health(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics")
}

/// Returns all routes of a server.
pub(super) fn router(api: Arc<ApiState>) -> Router {
    let (router, description) = served().split_for_parts();
    let router = router.route("/openapi.json", openapi::page(description)).fallback(async || unknown_route());
    with_refusals(router).with_state(api)
}

/// Returns the API with its description.
pub(super) fn routes() -> Router<Arc<ApiState>> {
    let (router, description) = v1().split_for_parts();
    with_refusals(router.route("/openapi.json", openapi::page(description)))
}

/// Returns the API and the server's described pages.
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
        .routes(routes!(failure_groups::list_failure_groups))
        .routes(routes!(failure_groups::get_failure_group))
        .routes(routes!(failure_groups::acknowledge_failure_group))
        .routes(routes!(failure_groups::resolve_failure_group))
        .routes(routes!(operations::list_bulk_operations, operations::start_bulk_operation))
        .routes(routes!(operations::get_bulk_operation))
        .routes(routes!(operations::stop_bulk_operation))
        .routes(routes!(queues::list_queues))
        .routes(routes!(queues::pause_queue))
        .routes(routes!(queues::resume_queue))
        .routes(routes!(parallelism::set_queue_parallelism))
        .routes(routes!(queues::list_nodes))
        .routes(routes!(destinations::list_destinations))
        .routes(routes!(destinations::set_destination_pace))
        .routes(routes!(destinations::pause_destination))
        .routes(routes!(destinations::resume_destination))
        .routes(routes!(keys::find::find_keys))
        .routes(routes!(keys::list_unknown_keys))
        .routes(routes!(keys::decide_key))
        .routes(routes!(alerts::list_alerts))
        .routes(routes!(series::get_series))
        .routes(routes!(audit::list_audit))
        .routes(routes!(boundaries::list_boundaries))
        .routes(routes!(events::stream_events))
        .routes(routes!(error_pages::list_error_pages))
        .routes(routes!(error_pages::get_error_page))
}

/// Refuses an unsupported method with a problem, like every other refusal.
fn with_refusals(routes: Router<Arc<ApiState>>) -> Router<Arc<ApiState>> {
    routes.method_not_allowed_fallback(async || {
        Problem::new(Code::MethodNotAllowed, "method not allowed for this path; see the Allow header")
    })
}
