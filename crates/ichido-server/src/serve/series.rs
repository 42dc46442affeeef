//! Series over HTTP: counts and times per step, for a queue, a destination, an operation or a language model.
//!
//! Guarantee: a response has every point of its range, at most [`MAX_POINTS`](ichido_core::series::MAX_POINTS), and reads only the
//! counts of its subject.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use axum::response::Response;
use http::StatusCode;
use ichido_core::alert::measure::Durations;
use ichido_core::series::{SeriesRange, SeriesStep, SeriesSubject};
use ichido_core::time::Timestamp;
use ichido_store::counters::{SeriesPoint, SubjectCounts};
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::ApiState;
use super::caller::{ApiCaller, unknown_queue};
use super::destinations::find_destination;
use super::problem::{Code, Problem};
use super::queues::check_known;
use super::request::{AuthorizedRequest, Viewer};
use super::response::json;
use super::text;

/// The subject, range and step of a series.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SeriesQuery {
    /// What is counted: `queue:NAME`, `destination:NAME`, `operation:NAME`, `model:NAME`, or all `queues`, `operations` or `models`
    /// together.
    subject: text::SeriesSubjectName,
    /// Since this time; 60 steps before `to` by default.
    from: Option<text::Moment>,
    /// Before this time; 60 steps after `from` by default, or now.
    to: Option<text::Moment>,
    /// The length of a point; `1m` by default.
    step: Option<text::SeriesStepText>,
}

/// The counts of a subject over time.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Series {
    /// As in the request.
    pub subject: String,
    /// When the first point begins: `from`, rounded down to a whole step since 1970 in UTC.
    pub from: String,
    /// When the last point ends: `to`, rounded up to a whole step.
    pub to: String,
    /// The length of a point.
    pub step_seconds: u64,
    /// Counts before this time were deleted, so points before it are zero: 25 hours ago, or 90 days if the step is whole hours.
    pub kept_from: String,
    /// The counts of the whole range.
    pub total: SeriesCounts,
    /// All points, oldest first. Those without counts are zero.
    pub points: Vec<TimedCounts>,
    /// Whether nothing was counted.
    #[serde(skip)]
    pub(super) is_empty: bool,
}

/// The counts of one point.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct TimedCounts {
    /// When the point begins.
    pub at: String,
    #[serde(flatten)]
    pub counts: SeriesCounts,
}

/// What was counted. A destination has no arrivals, an operation no deliveries, and only a language model has tokens: these counts are 0.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct SeriesCounts {
    /// New messages or requests.
    pub accepted: u64,
    /// Messages or requests that had arrived before.
    pub replayed: u64,
    /// Messages or requests whose key belongs to a different one.
    pub conflicts: u64,
    /// Calls of the destination or model, or runs of the operation's handler.
    pub executed: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Attempts after the first one that have ended, or calls of a model for a question whose earlier call failed.
    pub retried: u64,
    /// Messages that became dead letters.
    pub dead: u64,
    /// Messages that were parked, or requests whose outcome is unknown.
    pub parked: u64,
    /// Attempts that ended after their claim was lost.
    pub fenced: u64,
    /// Calls that the destination or model throttled, such as with status 429.
    pub throttled: u64,
    /// Tokens of prompts, as the model's provider counts them.
    pub tokens_in: u64,
    /// Tokens of answers, as the model's provider counts them.
    pub tokens_out: u64,
    /// Calls to a model of unknown outcome: each may have been billed, and its question is asked again.
    pub possibly_billed_twice: u64,
    /// The time from when a message was due until its first attempt was claimed.
    pub due_to_claim: DurationSummary,
    /// The time from when a message was due until it was sent or dead.
    pub due_to_end: DurationSummary,
}

/// Durations, from a histogram over all nodes.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct DurationSummary {
    pub count: u64,
    pub sum_seconds: f64,
    /// Half of them were not longer; null without any. It is off by less than a quarter.
    pub p50_seconds: Option<f64>,
    /// 99 percent of them were not longer; null without any. It is off by less than a quarter.
    pub p99_seconds: Option<f64>,
}

impl SeriesCounts {
    fn new(counts: &SubjectCounts) -> Self {
        Self {
            accepted: counts.accepted(),
            replayed: counts.repeated,
            conflicts: counts.conflicts,
            executed: counts.executed,
            sent: counts.sent,
            retried: counts.retried,
            dead: counts.dead,
            parked: counts.parked,
            fenced: counts.fenced,
            throttled: counts.throttled,
            tokens_in: counts.tokens_in,
            tokens_out: counts.tokens_out,
            possibly_billed_twice: counts.billed_twice,
            due_to_claim: DurationSummary::new(&counts.waited),
            due_to_end: DurationSummary::new(&counts.left),
        }
    }
}

impl DurationSummary {
    fn new(all: &Durations) -> Self {
        let count = all.count();
        let percentile = |percent| (0 < count).then(|| all.percentile(percent).value);
        Self {
            count,
            sum_seconds: std::time::Duration::from_micros(all.micros).as_secs_f64(),
            p50_seconds: percentile(50),
            p99_seconds: percentile(99),
        }
    }
}

/// Returns counts and times per step: per minute for 25 hours, per hour for 90 days.
///
/// Counts appear within a few seconds. A step of whole hours reaches back 90 days, any other step 25 hours. Points begin at whole steps
/// since 1970 in UTC, and there are at most 1,500.
#[utoipa::path(
    get,
    path = "/v1/series",
    params(SeriesQuery),
    responses(
        (status = 200, description = "Every point of the range", body = Series),
    )
)]
pub(super) async fn get_series(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Viewer, SeriesQuery>,
) -> Result<Response, Problem> {
    let subject = query.subject.0;
    let now = api.store.now().await?;
    let step = query.step.map_or(SeriesStep::MINUTE, |step| step.0);
    let (from, to) = (query.from.map(|from| from.0), query.to.map(|to| to.0));
    let range = SeriesRange::new(from, to, step, now)
        .map_err(|error| Problem::new(Code::ParameterInvalid, error.to_string()))?;
    let series = current_series(&api, &subject, &range, now).await?;
    if series.is_empty {
        check_subject(&api, &caller, &subject).await?;
    }
    Ok(json(StatusCode::OK, &series))
}

/// Reads a series, whether or not its subject is known.
pub(super) async fn current_series(
    api: &ApiState,
    subject: &SeriesSubject,
    range: &SeriesRange,
    now: Timestamp,
) -> Result<Series, StoreError> {
    let points = api.store.series().read(subject, range).await?;
    let mut total = SubjectCounts::default();
    for point in &points {
        total.add(&point.counts);
    }
    let timed = |SeriesPoint { at, counts }: &SeriesPoint| TimedCounts {
        at: at.to_string(),
        counts: SeriesCounts::new(counts),
    };
    Ok(Series {
        subject: subject.to_string(),
        from: range.from().to_string(),
        to: range.to().to_string(),
        step_seconds: range.step().get().as_secs(),
        kept_from: range.kept_from(now).to_string(),
        total: SeriesCounts::new(&total),
        points: points.iter().map(timed).collect(),
        is_empty: total == SubjectCounts::default(),
    })
}

/// Refuses a queue or destination that does not exist: a typing error. Not all operations and models are known.
async fn check_subject(api: &ApiState, caller: &ApiCaller, subject: &SeriesSubject) -> Result<(), Problem> {
    match subject {
        SeriesSubject::Queue(name) => {
            let name = QueueName::parse(name).ok_or_else(unknown_queue)?;
            check_known(api, caller, Some(&name)).await
        }
        SeriesSubject::Destination(name) => find_destination(api, name).map(drop),
        SeriesSubject::Operation(_)
        | SeriesSubject::Model(_)
        | SeriesSubject::Queues
        | SeriesSubject::Operations
        | SeriesSubject::Models => Ok(()),
    }
}
