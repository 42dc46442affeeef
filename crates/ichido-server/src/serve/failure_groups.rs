//! Failure groups: dead letters with the same error, and who takes care of them.
//!
//! Guarantee: a listing reads one page of an index. A group shows an error's text without its values and without quoted text.
//! Each change of a state is recorded in the audit trail with who made it.

// Spec: E3, E4.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use axum::response::Response;
use http::StatusCode;
use ichido_core::time::Timestamp;
use ichido_store::failure_group::{FailureGroup as StoredGroup, GroupPosition};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::cursor::{self, Cursor, CursorKey};
use super::problem::{Code, Problem};
use super::request::{AuthorizedRequest, Operator, Segment, Viewer};
use super::response::json;
use super::text;

/// The page of failure groups.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GroupQuery {
    /// Maximum groups on a page; 50 by default.
    limit: Option<text::Limit>,
    /// Cursor of the page: `next` of the previous page.
    #[param(value_type = Option<text::PageCursor>)]
    cursor: Option<Cursor<GroupPosition>>,
}

/// A page of failure groups.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct FailureGroups {
    /// Open groups and those that came back first, then acknowledged ones, then resolved ones; the latest failure first.
    pub failure_groups: Vec<FailureGroup>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Dead and parked messages of one queue with the same error.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct FailureGroup {
    pub id: Uuid,
    pub queue: String,
    /// The code of the error.
    pub code: Option<String>,
    /// The error's text. `#` replaces numbers, ids, addresses and times, `"…"` quoted text.
    pub template: String,
    /// A hash of code and template: the same error has the same fingerprint in every queue.
    pub fingerprint: String,
    /// `open`, `acknowledged`, `resolved`, or `came_back`: it failed again after it was resolved.
    pub state: String,
    pub state_since: String,
    /// Who acknowledged or resolved it last.
    pub changed_by: Option<String>,
    /// Number of its dead and parked messages that are open.
    pub count: u64,
    pub first_seen: String,
    pub last_seen: String,
    pub href: String,
}

/// A failure group, and some of its messages.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct FailureGroupDetail {
    #[serde(flatten)]
    pub group: FailureGroup,
    /// Its newest messages: dead ones, then parked ones; at most 5.
    pub sample_ids: Vec<Uuid>,
}

impl FailureGroup {
    fn new(group: &StoredGroup) -> Self {
        Self {
            id: group.id,
            queue: group.queue.as_str().to_owned(),
            code: group.code.clone(),
            template: group.template.clone(),
            fingerprint: group.fingerprint().to_string(),
            state: group.standing.state.to_string(),
            state_since: group.standing.since.to_string(),
            changed_by: group.changed_by.clone(),
            count: u64::try_from(group.count).unwrap_or(0),
            first_seen: group.first_seen.to_string(),
            last_seen: group.last_seen.to_string(),
            href: format!("/v1/failure-groups/{}", group.id),
        }
    }
}

impl CursorKey for GroupPosition {
    fn to_bytes(&self) -> Vec<u8> {
        [[self.urgency].as_slice(), &(self.last_seen, self.id).to_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (urgency, rest) = bytes.split_first()?;
        let (last_seen, id) = <(Timestamp, Uuid)>::from_bytes(rest)?;
        Some(Self { urgency: *urgency, last_seen, id })
    }
}

/// Lists the failure groups that have open dead letters, those that need a person first.
///
/// Counts follow failures within seconds, while a worker runs.
#[utoipa::path(
    get,
    path = "/v1/failure-groups",
    params(GroupQuery),
    responses(
        (status = 200, description = "A page", body = FailureGroups),
    )
)]
pub(super) async fn list_failure_groups(
    AuthorizedRequest { api, query, .. }: AuthorizedRequest<Viewer, GroupQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.map_or(text::PAGE_DEFAULT, |limit| limit.0);
    let page = api.store.failure_groups().list(query.cursor.map(|cursor| cursor.0), limit).await?;
    let next = cursor::next(&page, limit, StoredGroup::position);
    let failure_groups = page.iter().map(FailureGroup::new).collect();
    Ok(json(StatusCode::OK, &FailureGroups { failure_groups, next }))
}

/// Returns a failure group with samples of its messages.
#[utoipa::path(
    get,
    path = "/v1/failure-groups/{id}",
    params(("id" = Uuid, Path, description = "The group's id")),
    responses(
        (status = 200, description = "The group", body = FailureGroupDetail),
    )
)]
pub(super) async fn get_failure_group(
    AuthorizedRequest { api, .. }: AuthorizedRequest<Viewer>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let id = parse_id(&id)?;
    let group = api.store.failure_groups().get(id).await?.ok_or_else(unknown_group)?;
    let sample_ids = api.store.failure_groups().samples(id).await?;
    Ok(json(StatusCode::OK, &FailureGroupDetail { group: FailureGroup::new(&group), sample_ids }))
}

/// Marks that a person works on a failure group. Later failures do not change that.
#[utoipa::path(
    post,
    path = "/v1/failure-groups/{id}/acknowledge",
    params(("id" = Uuid, Path, description = "The group's id")),
    responses(
        (status = 200, description = "The group is acknowledged", body = FailureGroup),
    )
)]
pub(super) async fn acknowledge_failure_group(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let group = api.store.failure_groups().acknowledge(parse_id(&id)?, &caller.name).await?;
    Ok(json(StatusCode::OK, &FailureGroup::new(&group.ok_or_else(unknown_group)?)))
}

/// Marks that the cause of a failure group is fixed. A later failure brings the group back.
///
/// Its messages stay as they are: requeue or discard them with a bulk operation whose filter has the group.
#[utoipa::path(
    post,
    path = "/v1/failure-groups/{id}/resolve",
    params(("id" = Uuid, Path, description = "The group's id")),
    responses(
        (status = 200, description = "The group is resolved", body = FailureGroup),
    )
)]
pub(super) async fn resolve_failure_group(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let group = api.store.failure_groups().resolve(parse_id(&id)?, &caller.name).await?;
    Ok(json(StatusCode::OK, &FailureGroup::new(&group.ok_or_else(unknown_group)?)))
}

fn parse_id(id: &str) -> Result<Uuid, Problem> {
    id.parse().map_err(|_| unknown_group())
}

fn unknown_group() -> Problem {
    let detail =
        "no failure group has this id; GET /v1/failure-groups lists the groups that have open dead letters";
    Problem::new(Code::GroupUnknown, detail)
}
