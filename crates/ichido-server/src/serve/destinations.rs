//! Destinations: their pace across all nodes, and how operators change it.
//!
//! Guarantee: a new rate, a pause, or its end applies on every node within a second. It is recorded in the audit trail, with who asked
//! for it, before it applies.

// Spec: B, D6, E6.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use std::collections::HashMap;
use std::num::NonZeroU32;

use axum::response::Response;
use http::StatusCode;
use ichido::worker::{DestinationPace, PaceChange, Paces};
use ichido_core::digest::Digest;
use ichido_core::pace::{Circuit, Pace, PaceSettings, PerSecond, Rate};
use ichido_core::time::Timestamp;
use ichido_store::action::AuditAction;
use ichido_store::error::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::ApiState;
use super::json_body::{BodyShape, JsonBody};
use super::problem::{Code, Problem};
use super::request::{AuthorizedRequest, Operator, Segment, Viewer};
use super::response::json;
use super::text;
use crate::config::{Config, DestinationSettings};

/// What the audit trail says of a destination that no one paused.
const NOT_PAUSED: &str = "not paused";

/// A destination of the configuration.
pub(super) struct ConfiguredDestination {
    name: String,
    kind: &'static str,
    /// Its address, without anything that may be secret.
    address: String,
    /// The queues that deliver to it.
    queues: Vec<String>,
    pace: PaceSettings,
    /// How many calls each worker makes at the same time; `None` leaves it to the queues.
    max_parallel: Option<NonZeroU32>,
    /// Whether workers can ask it about a call of unknown effect.
    can_reconcile: bool,
}

impl ConfiguredDestination {
    /// Returns the destinations of a configuration.
    pub(super) fn all(config: &Config) -> Vec<Self> {
        let configured = |destination: &DestinationSettings| {
            let own = config.queues.iter().filter(|queue| queue.destination == destination.name);
            Self {
                name: destination.name.clone(),
                kind: destination.kind,
                address: destination.endpoint.clone(),
                queues: own.map(|queue| queue.name.clone()).collect(),
                pace: destination.pace(),
                max_parallel: destination.max_parallel(),
                can_reconcile: destination.can_reconcile(),
            }
        };
        config.destinations.iter().map(configured).collect()
    }

    /// Returns name and address, if it is the receiver of this queue.
    pub(super) fn receiver_of(&self, queue: &str) -> Option<(&str, &str)> {
        self.queues.iter().any(|own| own == queue).then_some((&*self.name, &*self.address))
    }

    /// Whether workers ask it about messages of this queue.
    pub(super) fn is_asked_about(&self, queue: &str) -> bool {
        self.can_reconcile && self.queues.iter().any(|own| own == queue)
    }

    /// Returns until when the receiver asked not to be called.
    ///
    /// Returns `None` if that has passed.
    fn paused_until(&self, pace: &Pace, now: Timestamp) -> Option<Timestamp> {
        Some(pace.paused_until.min(now.plus(self.pace.max_pause))).filter(|until| now < *until)
    }
}

/// All destinations of this server's configuration.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(super) struct Destinations {
    pub(super) destinations: Vec<Destination>,
}

/// A destination and its current state.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Destination {
    pub name: String,
    pub kind: String,
    /// Its address, without anything that may be secret.
    pub address: String,
    /// The queues that deliver to it.
    pub queues: Vec<String>,
    /// Maximum calls per second of all nodes together at the moment; null is unlimited.
    pub rate: Option<f64>,
    /// The configured maximum.
    pub rate_configured: Option<f64>,
    /// The maximum that an operator set instead.
    pub rate_set: Option<f64>,
    /// Who set it.
    pub rate_set_by: Option<String>,
    /// When it was set.
    pub rate_set_at: Option<String>,
    /// Maximum calls that each worker makes at the same time; null leaves it to the parallelism of its queues.
    pub max_parallel: Option<u32>,
    /// Whether it refused calls, so its rate is limited automatically.
    pub slowed: bool,
    /// Whether an operator paused it.
    #[serde(default)]
    pub paused: bool,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Since when it is paused.
    pub paused_at: Option<String>,
    /// Until when it asked for a pause.
    pub paused_until: Option<String>,
    /// State of the circuit breaker. `closed`: it is called. `open`: it counts as down and is not called. `half_open`: it is probed.
    pub circuit: String,
    /// Until when it is not called, if the circuit is open.
    pub circuit_open_until: Option<String>,
}

impl Destination {
    fn new(configured: &ConfiguredDestination, shared: DestinationPace, now: Timestamp) -> Self {
        let DestinationPace { pace, max_rate, is_paused, rate_change, pause_change } = shared;
        let settings = PaceSettings { max_rate: max_rate.or(configured.pace.max_rate), ..configured.pace };
        let (circuit, open_until) = match pace.circuit {
            Circuit::Closed { .. } => ("closed", None),
            Circuit::Open { until, .. } if now < until => ("open", Some(until)),
            // The next call is a probe, whichever node makes it.
            Circuit::Open { .. } | Circuit::HalfOpen { .. } => ("half_open", None),
        };
        Self {
            name: configured.name.clone(),
            kind: configured.kind.to_owned(),
            address: configured.address.clone(),
            queues: configured.queues.clone(),
            rate: pace.limit(&settings).map(PerSecond::get),
            rate_configured: configured.pace.max_rate.map(PerSecond::get),
            rate_set: max_rate.map(PerSecond::get),
            rate_set_at: rate_change.as_ref().map(|change| change.at.to_string()),
            rate_set_by: rate_change.map(|change| change.by),
            max_parallel: configured.max_parallel.map(NonZeroU32::get),
            paused: is_paused,
            paused_at: pause_change.as_ref().map(|change| change.at.to_string()),
            paused_by: pause_change.map(|change| change.by),
            slowed: matches!(pace.rate, Rate::Paced(_)),
            paused_until: configured.paused_until(&pace, now).map(|until| until.to_string()),
            circuit: circuit.to_owned(),
            circuit_open_until: open_until.map(|until| until.to_string()),
        }
    }
}

/// The maximum rate of calls to a destination.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetPace {
    /// Maximum calls per second of all nodes together; null restores the configured maximum.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(value_type = Option<text::Rate>, required)]
    rate: Option<f64>,
}

impl BodyShape for SetPace {
    const EXAMPLE: &'static str = r#"{"rate":2.5}, in calls per second, or {"rate":null}"#;
}

/// Lists the destinations with their rate limit, pause and circuit breaker.
#[utoipa::path(
    get,
    path = "/v1/destinations",
    responses(
        (status = 200, description = "The destinations of this server's configuration", body = Destinations),
    )
)]
pub(super) async fn list_destinations(
    AuthorizedRequest { api, .. }: AuthorizedRequest<Viewer>,
) -> Result<Response, Problem> {
    let destinations = current_destinations(&api).await?;
    Ok(json(StatusCode::OK, &Destinations { destinations }))
}

/// Sets the maximum rate of calls to a destination, or restores the configured one.
#[utoipa::path(
    put,
    path = "/v1/destinations/{name}/pace",
    params(("name" = String, Path, description = "Name of the destination")),
    request_body = SetPace,
    responses(
        (status = 200, description = "The rate applies within a second", body = Destination),
    )
)]
pub(super) async fn set_destination_pace(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(name): Segment,
    JsonBody(SetPace { rate }): JsonBody<SetPace>,
) -> Result<Response, Problem> {
    let configured = find_destination(&api, &name)?;
    let rate = rate.map(per_second).transpose()?;
    let paces = Paces::new(api.store.clone());
    let before = paces.read(&name).await?;
    let change = change_by(&api, &caller.name).await?;
    let kind = if rate.is_some() { "pace_set" } else { "pace_cleared" };
    let record = action(configured, kind, (format_rate(before.max_rate), format_rate(rate)), &caller.name);
    record_and_apply(&api, record, "pace_not_set", paces.set_max_rate(&name, rate, &change)).await?;
    destination_response(&api, configured).await
}

/// Pauses a destination: no worker calls it until it is resumed.
///
/// Its queues still accept messages, and calls in flight finish.
#[utoipa::path(
    post,
    path = "/v1/destinations/{name}/pause",
    params(("name" = String, Path, description = "Name of the destination")),
    responses(
        (status = 200, description = "The destination is paused", body = Destination),
    )
)]
pub(super) async fn pause_destination(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(name): Segment,
) -> Result<Response, Problem> {
    let configured = find_destination(&api, &name)?;
    let paces = Paces::new(api.store.clone());
    if !paces.read(&name).await?.is_paused {
        let change = change_by(&api, &caller.name).await?;
        let record = action(configured, "paused", (NOT_PAUSED.to_owned(), "paused".to_owned()), &caller.name);
        record_and_apply(&api, record, "not_paused", paces.pause(&name, &change)).await?;
    }
    destination_response(&api, configured).await
}

/// Ends the pause of an operator, and the pause that the destination asked for.
///
/// If it asked for one, one call probes it first; the others follow if that is accepted.
#[utoipa::path(
    post,
    path = "/v1/destinations/{name}/resume",
    params(("name" = String, Path, description = "Name of the destination")),
    responses(
        (status = 200, description = "The destination is not paused", body = Destination),
    )
)]
pub(super) async fn resume_destination(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(name): Segment,
) -> Result<Response, Problem> {
    let configured = find_destination(&api, &name)?;
    let paces = Paces::new(api.store.clone());
    let before = paces.read(&name).await?;
    let now = api.store.now().await?;
    let until = configured.paused_until(&before.pace, now);
    let paused = match until {
        Some(until) => Some(format!("paused until {until}")),
        None => before.is_paused.then(|| "paused".to_owned()),
    };
    if let Some(from) = paused {
        let record = action(configured, "pause_lifted", (from, NOT_PAUSED.to_owned()), &caller.name);
        record_and_apply(&api, record, "pause_not_lifted", paces.resume(&name)).await?;
    }
    destination_response(&api, configured).await
}

/// Returns who changes something now.
async fn change_by(api: &ApiState, by: &str) -> Result<PaceChange, StoreError> {
    Ok(PaceChange { by: by.to_owned(), at: api.store.now().await? })
}

/// Applies a change after recording it in the audit trail.
///
/// So every change has an author; a failure is recorded too.
async fn record_and_apply(
    api: &ApiState,
    record: AuditAction,
    undone: &str,
    change: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), Problem> {
    api.store.actions().record(&record).await?;
    let Err(error) = change.await else { return Ok(()) };
    let undone = AuditAction {
        kind: undone.to_owned(),
        from: record.to.clone(),
        to: record.from.clone(),
        detail: Some("the store failed".to_owned()),
        ..record
    };
    if let Err(error) = api.store.actions().record(&undone).await {
        tracing::error!(%error, about = undone.about, "failed to record failed destination change");
    }
    Err(error.into())
}

/// Returns a destination in its current state.
async fn destination_response(
    api: &ApiState,
    configured: &ConfiguredDestination,
) -> Result<Response, Problem> {
    let now = api.store.now().await?;
    let shared = Paces::new(api.store.clone()).read(&configured.name).await?;
    Ok(json(StatusCode::OK, &Destination::new(configured, shared, now)))
}

/// Returns the current state of all configured destinations.
pub(super) async fn current_destinations(api: &ApiState) -> Result<Vec<Destination>, StoreError> {
    if api.destinations.is_empty() {
        return Ok(Vec::new());
    }
    let mut known: HashMap<String, DestinationPace> =
        Paces::new(api.store.clone()).list().await?.into_iter().collect();
    let now = api.store.now().await?;
    let current = |configured: &ConfiguredDestination| {
        let shared = known.remove(&configured.name).unwrap_or(DestinationPace::NEW);
        Destination::new(configured, shared, now)
    };
    Ok(api.destinations.iter().map(current).collect())
}

fn per_second(rate: f64) -> Result<PerSecond, Problem> {
    let clamped = PerSecond::clamped(rate);
    // A rate that cannot be stored exactly is refused, not changed.
    if clamped.get().total_cmp(&rate).is_eq() {
        return Ok(clamped);
    }
    let (least, most) = (PerSecond::MIN.get(), PerSecond::MAX.get());
    let detail = format!(
        "rate must be from {least} (once a day) to {most} calls per second; to stop all calls, pause the destination"
    );
    Err(Problem::new(Code::BodyUnexpected, detail))
}

fn format_rate(rate: Option<PerSecond>) -> String {
    rate.map_or_else(|| "as configured".to_owned(), |rate| format!("{}/s", rate.get()))
}

/// Creates the entry for the audit trail.
fn action(
    configured: &ConfiguredDestination,
    kind: &str,
    (from, to): (String, String),
    by: &str,
) -> AuditAction {
    // All entries of one destination form one chain.
    let digest = Digest::of_bytes(&[b"destination\0", configured.name.as_bytes()].concat());
    let (first, _) = digest.as_bytes().split_at(16);
    AuditAction {
        subject: uuid::Builder::from_custom_bytes(first.try_into().unwrap_or_default()).into_uuid(),
        about: format!("destination {}", configured.name),
        kind: kind.to_owned(),
        from,
        to,
        actor: Some(by.to_owned()),
        detail: None,
    }
}

pub(super) fn find_destination<'a>(
    api: &'a ApiState,
    name: &str,
) -> Result<&'a ConfiguredDestination, Problem> {
    api.destinations.iter().find(|configured| configured.name == name).ok_or_else(|| {
        let detail = "the destination does not exist here; `ichido destinations list` lists all";
        Problem::new(Code::DestinationUnknown, detail)
    })
}
