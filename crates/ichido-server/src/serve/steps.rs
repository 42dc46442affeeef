//! Operators' actions on one message: requeue, cancel, discard, decide.
//!
//! Guarantee: the lifecycle and the queue's policy judge each step when it is taken, as they do for `ichido dead`. A refused step
//! changes nothing and gets 409 with the reason. The message's history records who took a step.

// Spec: D17, E4, F2.

use axum::response::Response;
use http::StatusCode;
use ichido::dead_letters::{BulkAction, RequeuePolicies, Resolution, record_resolution};
use ichido_core::lifecycle::{Decision, StateName, StepRefusal};
use ichido_core::time::Timestamp;
use ichido_store::dead_letter::{DeadLetterRow, DeadLetterStep};
use ichido_store::message::{CancelOutcome, Note, StepResult};
use ichido_store::token::TokenRole;
use serde::Deserialize;
use serde_json::json as value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::api::ApiState;
use super::caller::ApiCaller;
use super::dead_letters::find_letter;
use super::json_body::{BodyShape, JsonBody};
use super::messages::{find_visible, message_response, unknown_message};
use super::models::Message;
use super::problem::{Code, Problem};
use super::request::{AuthorizedRequest, Operator, RequiredRole, Segment};
use super::text;

/// An optional reason.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Because {
    /// Stored in the message's history.
    reason: Option<text::Reason>,
}

impl BodyShape for Because {
    const EXAMPLE: &'static str = r#"nothing, or {"reason":"…"}"#;

    fn empty() -> Option<Self> {
        Some(Self::default())
    }
}

/// Why a message needs no more attention.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Discard {
    /// Stored in the message's history.
    reason: text::Reason,
}

impl BodyShape for Discard {
    const EXAMPLE: &'static str = r#"{"reason":"why it needs no more attention"}"#;
}

/// A person's decision on a message of unknown effect.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Decide {
    decision: OperatorDecision,
    /// The reason, such as how the effect is known.
    reason: Option<text::Reason>,
}

impl BodyShape for Decide {
    const EXAMPLE: &'static str =
        r#"{"decision":"done" or "not_done" or "give_up","reason":"how it is known"}"#;
}

/// A person's decision on an unknown effect, of a message or of a request.
///
/// A dead message stays dead, but its effect becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Decision)]
pub(super) enum OperatorDecision {
    /// It took effect: a parked message becomes sent, and a request's replays say so.
    Done,
    /// It had no effect: a parked message is sent again, and a request's key is released.
    NotDone,
    /// It cannot be found out: a parked message becomes dead, and a request stays refused.
    GiveUp,
}

impl OperatorDecision {
    /// Returns the decision about a message.
    pub(super) const fn about_message(self) -> Decision {
        match self {
            Self::Done => Decision::Done,
            Self::NotDone => Decision::NotDone,
            Self::GiveUp => Decision::GiveUp,
        }
    }
}

/// Requeues a dead message, with its attempts reset to 0, or makes a failed one due at once.
///
/// The queue of a dead message must allow it, and it must not be able to take effect twice. A parked message is requeued if its
/// destination's guarantee, which may have changed since, makes that safe. The attempts of a failed message still count.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/requeue",
    params(("id" = Uuid, Path, description = "The message's id")),
    request_body(content = Option<Because>, description = "Optional"),
    responses(
        (status = 200, description = "The message is queued", body = Message),
        (status = 409, description = "The message was not requeued; `reason` says why"),
    )
)]
pub(super) async fn requeue_message(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(id): Segment,
    JsonBody(because): JsonBody<Because>,
) -> Result<Response, Problem> {
    let message = find_visible(&api, &caller, &id).await?;
    match message.status {
        StateName::Dead | StateName::Parked => (),
        StateName::Failed => return retry_now(&api, message.id, &note(&caller, because.reason)).await,
        status @ (StateName::Queued | StateName::Sending | StateName::Sent | StateName::Cancelled) => {
            let status = status.as_str();
            let detail =
                format!("only a failed, dead or parked message can be requeued; this one is {status}");
            return Err(action_refused("not_dead", detail));
        }
    }
    let letter = FoundLetter::find(&api, &caller, &id).await?;
    let policies = api.policies().await?;
    // With the reason of the preflight, which says how to fix it.
    let why_not = |why| match policies.judge(&letter.row.traits(), letter.now) {
        Err(refusal) => action_refused(refusal.as_str(), format!("the message was not requeued: {refusal}")),
        Ok(()) => lifecycle_refused(why),
    };
    let note = note(&caller, because.reason);
    let stepped = api.store.dead_letters().requeue(&[letter.row.id], |row| policies.of(row), &note).await?;
    letter.stepped(&api, &stepped, Resolution::Requeued, why_not).await
}

/// Makes a failed message due, unless somebody else moved it.
async fn retry_now(api: &ApiState, id: Uuid, note: &Note) -> Result<Response, Problem> {
    match api.store.messages().retry_now(id, note).await? {
        StepResult::Now(_) => message_response(api, StatusCode::OK, id).await,
        StepResult::Refused(why) => {
            Err(action_refused(reason(why), "the message is no longer waiting for a retry"))
        }
        StepResult::NoSuchMessage => Err(unknown_message()),
    }
}

/// A producer, who may cancel its own messages, or a caller who may change everything.
pub(super) struct Canceller;

impl RequiredRole for Canceller {
    fn check(caller: &ApiCaller) -> Result<(), Problem> {
        match caller.role {
            TokenRole::Producer { .. } => Ok(()),
            TokenRole::Viewer | TokenRole::Operator | TokenRole::Admin => caller.require_operator(),
        }
    }
}

/// Cancels a message, or asks its worker to stop if it is being sent.
///
/// A producer may cancel its own. The worker of a message in flight sees the request within seconds and signals its handler. If the
/// attempt has no effect, the message becomes cancelled; otherwise what is known of the effect decides, as without the request.
/// Repeating the request has no further effect.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/cancel",
    params(("id" = Uuid, Path, description = "The message's id")),
    request_body(content = Option<Because>, description = "Optional"),
    responses(
        (status = 200, description = "The message is cancelled", body = Message),
        (status = 202, description = "The message is being sent, and its worker is asked to stop; read the message to see what comes of it", body = Message),
        (status = 409, description = "The message is finished or parked"),
    )
)]
pub(super) async fn cancel_message(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Canceller>,
    Segment(id): Segment,
    JsonBody(because): JsonBody<Because>,
) -> Result<Response, Problem> {
    let id = find_visible(&api, &caller, &id).await?.id;
    match api.store.messages().cancel(id, &note(&caller, because.reason)).await? {
        CancelOutcome::Cancelled => message_response(&api, StatusCode::OK, id).await,
        CancelOutcome::Requested => message_response(&api, StatusCode::ACCEPTED, id).await,
        CancelOutcome::Refused(state) => Err(action_refused(
            reason(StepRefusal::WrongState),
            format!("only a message that waits or is being sent can be cancelled; this one is {state}"),
        )),
        CancelOutcome::NoSuchMessage => Err(unknown_message()),
    }
}

/// Discards a dead message.
///
/// It then needs no more attention. It stays dead, and is kept.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/discard",
    params(("id" = Uuid, Path, description = "The message's id")),
    request_body = Discard,
    responses(
        (status = 200, description = "The message is discarded", body = Message),
        (status = 409, description = "The message is not dead"),
    )
)]
pub(super) async fn discard_message(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(id): Segment,
    JsonBody(Discard { reason: because }): JsonBody<Discard>,
) -> Result<Response, Problem> {
    let letter = FoundLetter::find(&api, &caller, &id).await?;
    // A discard does not depend on the queue's policy.
    let traits = letter.row.traits();
    let why_not = |why| match BulkAction::Discard.judge(&RequeuePolicies::default(), &traits, letter.now) {
        Err(refusal) => action_refused(reason(why), refusal.to_string()),
        Ok(()) => lifecycle_refused(why),
    };
    let stepped = api.store.dead_letters().discard(&[letter.row.id], &note(&caller, Some(because))).await?;
    letter.stepped(&api, &stepped, Resolution::Discarded, why_not).await
}

/// Decides a message of unknown effect.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/decide",
    params(("id" = Uuid, Path, description = "The message's id")),
    request_body = Decide,
    responses(
        (status = 200, description = "The message is decided", body = Message),
        (status = 409, description = "There is nothing to decide, or it is too early; `reason` says why"),
    )
)]
pub(super) async fn decide_message(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Operator>,
    Segment(id): Segment,
    JsonBody(Decide { decision, reason: because }): JsonBody<Decide>,
) -> Result<Response, Problem> {
    let letter = FoundLetter::find(&api, &caller, &id).await?;
    let (decision, note) = (decision.about_message(), note(&caller, because));
    let stepped = api.store.dead_letters().decide(&[letter.row.id], decision, &note).await?;
    let why_not = |why| action_refused(reason(why), letter.why_undecided(why));
    letter.stepped(&api, &stepped, Resolution::Decided, why_not).await
}

/// A dead or parked message that was found.
struct FoundLetter {
    row: DeadLetterRow,
    now: Timestamp,
}

impl FoundLetter {
    async fn find(api: &ApiState, caller: &ApiCaller, id: &str) -> Result<Self, Problem> {
        let (row, now) = find_letter(api, caller, id).await?;
        Ok(Self { row, now })
    }

    /// Returns the message after an action; records how long it waited for this.
    async fn stepped(
        &self,
        api: &ApiState,
        stepped: &[DeadLetterStep],
        by: Resolution,
        why_not: impl FnOnce(StepRefusal) -> Problem,
    ) -> Result<Response, Problem> {
        match stepped.first() {
            Some(DeadLetterStep::Now(_)) => {
                record_resolution(&self.row.queue, by, self.row.since, self.now);
                message_response(api, StatusCode::OK, self.row.id).await
            }
            Some(DeadLetterStep::Refused(why)) => Err(why_not(*why)),
            Some(DeadLetterStep::NoLetter) | None => Err(moved_meanwhile()),
        }
    }

    /// Describes why a decision changes nothing.
    fn why_undecided(&self, why: StepRefusal) -> String {
        match (why, self.row.history.doubt) {
            (StepRefusal::TooEarly, Some(doubt)) => {
                format!("its call may still arrive until {}; decide after that", doubt.in_flight_until)
            }
            (StepRefusal::WrongState, _) => {
                "there is nothing to decide: it is already dead, or its effect is known".to_owned()
            }
            (why, _) => why.to_string(),
        }
    }
}

pub(super) fn note(caller: &ApiCaller, reason: Option<text::Reason>) -> Note {
    Note { actor: Some(caller.name.clone()), excerpt: reason.map(|reason| reason.0), ..Note::default() }
}

pub(super) fn action_refused(
    reason: &'static str,
    detail: impl Into<std::borrow::Cow<'static, str>>,
) -> Problem {
    Problem::new(Code::ActionRefused, detail).with("reason", value!(reason))
}

pub(super) fn lifecycle_refused(why: StepRefusal) -> Problem {
    action_refused(reason(why), why.to_string())
}

fn moved_meanwhile() -> Problem {
    action_refused("not_dead", "the message is no longer dead or parked: somebody else changed it")
}

/// Returns why the lifecycle refused, as a code.
const fn reason(why: StepRefusal) -> &'static str {
    match why {
        StepRefusal::WrongState => "wrong_state",
        StepRefusal::StaleFence => "stale_fence",
        StepRefusal::NotDue => "not_due",
        StepRefusal::NoAttemptLeft => "no_try_left",
        StepRefusal::AttemptLeft => "try_left",
        StepRefusal::MayHaveStarted => "may_have_started",
        StepRefusal::TooEarly => "too_early",
        StepRefusal::RequeueNotAllowed => "not_allowed",
        StepRefusal::CouldDoItTwice => "effect_unknown",
        StepRefusal::HasSuccessor => "has_successor",
        StepRefusal::WasDone => "was_done",
    }
}
