//! Keys over HTTP: looks them up, and decides those of unknown outcome.
//!
//! Guarantee: a viewer sees the outcome of a request and no bytes of its response. A decision changes one record, only while its
//! outcome is unknown, and is recorded in the audit trail with who decided.

// Spec: A6, C5, D10, F2.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

pub(super) mod find;
mod view;

use axum::response::Response as HttpResponse;
use http::StatusCode;
use ichido::once;
use ichido_core::key::{IdempotencyKey, KeySyntax};
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Resolution, limits};
use ichido_core::settings::duration;
use ichido_core::time::Timestamp;
use ichido_store::ledger::{KeyResolved, StoredResponse};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cursor::{self, Cursor};
use super::json_body::{BodyShape, JsonBody};
use super::problem::{Code, Problem};
use super::request::{AuthorizedRequest, Operator, Viewer};
use super::response::json;
use super::steps::OperatorDecision;
use super::text;
pub use find::{KeysFound, SearchedMessages};
pub use view::{HeaderView, KeyEvent, KeyRecord, ResponseView};

/// The page of key records.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RecordQuery {
    /// Maximum records on a page; 50 by default.
    limit: Option<text::RecordLimit>,
    /// Cursor of the page: `next` of the previous page.
    #[param(value_type = Option<text::PageCursor>)]
    cursor: Option<Cursor<(Timestamp, [u8; 32])>>,
}

/// Key records of unknown outcome.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyRecords {
    /// Oldest first.
    records: Vec<KeyRecord>,
    /// The `cursor` of the next page; null on the last one.
    next: Option<String>,
}

/// A person's decision on a request of unknown outcome.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideRecord {
    operation: text::OperationName,
    identity: text::Identity,
    #[schema(value_type = text::LedgerKey)]
    key: String,
    decision: OperatorDecision,
    /// How long after its claim a lost call may still take effect; `10m` by default. `not_done` is accepted only after that, and at once
    /// if the only call was answered.
    #[schema(value_type = Option<text::SettleGrace>)]
    settle_grace: Option<String>,
}

impl BodyShape for DecideRecord {
    const EXAMPLE: &'static str =
        r#"{"operation":"…","identity":"…","key":"…","decision":"done" or "not_done" or "give_up"}"#;
}

impl OperatorDecision {
    const fn resolution(self) -> Resolution {
        match self {
            Self::Done => Resolution::Applied,
            Self::GiveUp => Resolution::Refused,
            Self::NotDone => Resolution::NothingDone,
        }
    }

    /// Returns the response that replays get from now on. The request's own response was lost.
    fn response(self) -> Option<StoredResponse> {
        let (status, media_type, body) = match self {
            Self::Done => {
                let detail = "a person decided that this request took effect; its own response was lost";
                let body = serde_json::json!({ "status": "done", "detail": detail });
                (StatusCode::OK, "application/json", body)
            }
            Self::GiveUp => {
                let detail = "nobody knows whether the request took effect, and its key stays used; check its effect before you send it with a new key";
                let problem = once::Problem::new(once::Code::DecidedRefused, detail);
                (problem.status, "application/problem+json", problem.to_json())
            }
            Self::NotDone => return None,
        };
        let headers = vec![("content-type".to_owned(), media_type.into())];
        Some(StoredResponse { status: status.as_u16(), headers, body: Some(body.to_string().into_bytes()) })
    }
}

/// Lists key records of unknown outcome, oldest first.
#[utoipa::path(
    get,
    path = "/v1/keys/unknown",
    params(RecordQuery),
    responses(
        (status = 200, description = "A page of key records", body = KeyRecords),
    )
)]
pub(super) async fn list_unknown_keys(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Viewer, RecordQuery>,
) -> Result<HttpResponse, Problem> {
    let limit = query.limit.map_or(text::PAGE_DEFAULT, |limit| limit.0);
    let found = api.store.keys().list_unknown(query.cursor.map(|cursor| cursor.0), limit).await?;
    let next = cursor::next(&found, limit, |last| (last.record.first_claimed_at, last.name.hash()));
    let records = found
        .into_iter()
        .map(|found| KeyRecord::of_request(found, caller.require_operator().is_ok(), Vec::new()))
        .collect();
    Ok(json(StatusCode::OK, &KeyRecords { records, next }))
}

/// Decides a key record of unknown outcome.
#[utoipa::path(
    post,
    path = "/v1/keys/decide",
    request_body = DecideRecord,
    responses(
        (status = 200, description = "The record is decided; after `not_done`, it is deleted and its key released", body = DecidedRecord),
        (status = 409, description = "There is nothing to decide, or it is too early"),
    )
)]
pub(super) async fn decide_key(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    JsonBody(body): JsonBody<DecideRecord>,
) -> Result<HttpResponse, Problem> {
    let policy = policy(body.settle_grace.as_deref())?;
    let key = IdempotencyKey::parse_as(&body.key, KeySyntax::AnyString).map_err(Problem::from_key)?;
    let name = RecordName { operation: body.operation.0, identity: body.identity.0, key };
    let (resolution, response) = (body.decision.resolution(), body.decision.response());
    match api.store.keys().decide(&name, resolution, response, &policy, &caller.name).await? {
        KeyResolved::Resolved => {
            let found = api.store.keys().get(&name).await?;
            let record = found
                .map(|found| KeyRecord::of_request(found, caller.require_operator().is_ok(), Vec::new()));
            Ok(json(StatusCode::OK, &DecidedRecord { record }))
        }
        KeyResolved::Refused(why) => Err(Problem::new(Code::DecisionRefused, why.to_string())),
        KeyResolved::Missing => Err(unknown_record()),
    }
}

/// A decided key record.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DecidedRecord {
    /// The record; null if its key was released.
    record: Option<KeyRecord>,
}

/// Returns the policy for a decision.
///
/// A decided record is kept for the longest time, since nobody knows how long its operation would have kept it: once it
/// is forgotten, the same request would run again.
fn policy(settle_grace: Option<&str>) -> Result<Policy, Problem> {
    let wrong = |why: String| Problem::new(Code::BodyUnexpected, format!("settle_grace: {why}"));
    let settle_grace = settle_grace.map(duration::parse).transpose();
    let settle_grace =
        settle_grace.map_err(|_| wrong("write a whole number and a unit, such as 90s or 10m".to_owned()))?;
    let draft = PolicyDraft::new(Class::ExternalEffect);
    let settle_grace = settle_grace.or(draft.settle_grace);
    let draft = PolicyDraft { settle_grace, ttl: Some(limits::MAX_TTL), ..draft };
    Policy::build(draft).map_err(|error| wrong(error.to_string()))
}

fn unknown_record() -> Problem {
    let detail = "no key record exists for this operation, identity and key; `ichido keys unknown` and GET /v1/keys/unknown list the records that can be decided";
    Problem::new(Code::RecordUnknown, detail)
}
