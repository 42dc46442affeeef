//! The body that starts a bulk operation, its constraints, and the operation that it describes.

use ichido::dead_letters::{BulkAction, BulkOperation, Canary};
use ichido_core::lifecycle::Decision;
use ichido_store::dead_letter::{DeadLetterFilter, Disposition};
use ichido_store::message::DeadLetterState;
use serde::Deserialize;
use serde_json::{Value, json as value};
use utoipa::ToSchema;

use super::super::api::ApiState;
use super::super::caller::ApiCaller;
use super::super::json_body::BodyShape;
use super::super::problem::{Code, Problem};
use super::super::steps::OperatorDecision;
use super::super::text;

/// A bulk operation to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Begin {
    action: OperationAction,
    /// What happened; required for a decide, and only for it.
    decision: Option<OperatorDecision>,
    /// The messages.
    #[serde(default)]
    filter: BulkFilter,
    /// All dead messages, or for a decide all parked ones; requires an empty filter.
    #[serde(default)]
    all: bool,
    /// For a requeue, or a decide of parked messages as not done: sends 1 % of the counted messages first, then 5 %, 25 % and the rest, each after the previous messages were sent; halts if more than 10 % fail.
    #[serde(default)]
    canary: bool,
    /// The reason, which is stored; required for a discard.
    reason: Option<text::Reason>,
    /// Whether to return only a preview.
    #[serde(default)]
    pub(super) preview: bool,
    /// Only messages that were dead at this time: `as_of` of the preview that a person confirmed.
    #[schema(value_type = Option<text::Moment>)]
    pub(super) as_of: Option<String>,
    /// The number of messages that a person confirmed: `eligible` of the preview. If there are more by now, or more match than are counted,
    /// nothing is started. Without it, all that match are moved.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    pub(super) confirmed: Option<u64>,
}

impl BodyShape for Begin {
    const EXAMPLE: &'static str = r#"{"action":"requeue" or "discard" or "decide","decision":"done" or "not_done" or "give_up","filter":{"queue":"…"},"canary":true,"reason":"…","preview":true}"#;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Action)]
enum OperationAction {
    /// Sends them again.
    Requeue,
    /// Marks them as needing no more attention.
    Discard,
    /// Decides their unknown effect.
    Decide,
}

/// Filters for dead or parked messages; a message must match all members.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Filter)]
struct BulkFilter {
    /// Dead or parked; `dead` by default, for a decide `parked`. A requeue releases parked messages whose destination's guarantee makes
    /// that safe by now.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    state: Option<text::LetterState>,
    /// In this queue.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::QueueName>, nullable = false)]
    queue: Option<String>,
    /// With this code of the last error.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::ErrorCode>, nullable = false)]
    code: Option<String>,
    /// With this known effect.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    effect: Option<text::Effect>,
    /// With this identity.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    identity: Option<text::Identity>,
    /// Dead or parked since this time, inclusive.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::Moment>, nullable = false)]
    since_from: Option<String>,
    /// Dead or parked before this time.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::Moment>, nullable = false)]
    since_before: Option<String>,
    /// With this text in the last error.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(nullable = false)]
    text: Option<text::ErrorText>,
    /// Of this failure group.
    #[serde(default, deserialize_with = "text::given")]
    #[schema(value_type = Option<text::GroupId>, nullable = false)]
    group: Option<String>,
    /// Discarded messages, instead of open ones.
    #[serde(default, deserialize_with = "text::only_true")]
    #[schema(value_type = text::True, required = false)]
    discarded: bool,
    /// Replaced messages, instead of open ones. None of them can be requeued or discarded.
    #[serde(default, deserialize_with = "text::only_true")]
    #[schema(value_type = text::True, required = false)]
    replaced: bool,
}

/// Returns the constraints between members of [`Begin`] and [`BulkFilter`]: schema, keyword and value.
pub(in super::super) fn constraints() -> [(&'static str, &'static str, Value); 2] {
    let discard = value!({ "properties": { "action": { "const": "discard" } } });
    let explained = value!({ "required": ["reason"], "properties": { "reason": { "type": "string" }, "canary": { "const": false } } });
    let decide = value!({ "properties": { "action": { "const": "decide" } } });
    let decided = value!({ "required": ["decision"], "properties": { "decision": { "type": "string" } } });
    let undecided = value!({ "properties": { "decision": { "type": "null" } } });
    let closed = value!([{ "required": ["discarded"] }, { "required": ["replaced"] }]);
    let parked = value!({ "properties": { "state": { "const": "parked" } } });
    let resent = value!({ "properties": {
        "decision": { "const": "not_done" },
        "filter": { "allOf": [parked, { "not": { "anyOf": closed } }] },
    } });
    let with_canary = value!({ "required": ["canary"], "properties": { "action": { "const": "decide" }, "canary": { "const": true } } });
    let some = value!({ "filter": { "minProperties": 1 }, "all": { "const": false } });
    let all = value!({ "filter": { "maxProperties": 0 }, "all": { "const": true } });
    let some = value!({ "required": ["filter"], "properties": some });
    let either = value!([some, { "required": ["all"], "properties": all }]);
    [
        (
            "Begin",
            "allOf",
            value!([
                { "oneOf": either },
                { "if": discard, "then": explained },
                { "if": decide, "then": decided, "else": undecided },
                { "if": with_canary, "then": resent },
            ]),
        ),
        (
            "Filter",
            "not",
            value!({ "anyOf": [
                { "required": ["discarded", "replaced"] },
                { "required": ["state"], "anyOf": closed, "properties": { "state": { "const": "parked" } } },
            ] }),
        ),
    ]
}

/// Checks the body, and makes the operation that it describes.
pub(super) async fn plan(api: &ApiState, caller: &ApiCaller, body: Begin) -> Result<BulkOperation, Problem> {
    let unexpected = |detail: &'static str| Err(Problem::new(Code::BodyUnexpected, detail));
    if body.all == (body.filter != BulkFilter::default()) {
        return unexpected("send either a filter or \"all\":true; nothing was started");
    }
    let canary = body.canary.then_some(Canary::DEFAULT);
    let work = match (body.action, body.decision) {
        (OperationAction::Requeue, None) => BulkAction::Requeue { canary },
        (OperationAction::Discard, None) => BulkAction::Discard,
        (OperationAction::Decide, Some(decision)) => {
            BulkAction::Decide { decision: decision.about_message(), canary }
        }
        (OperationAction::Decide, None) => {
            return unexpected(
                "a decide requires a \"decision\": \"done\", \"not_done\" or \"give_up\"; nothing was started; add it",
            );
        }
        (OperationAction::Requeue | OperationAction::Discard, Some(_)) => {
            return unexpected("only a decide has a \"decision\"; nothing was started; remove it");
        }
    };
    if work == BulkAction::Discard && body.reason.is_none() {
        return unexpected("a discard requires a \"reason\"; nothing was started; add it");
    }
    let mut filter = filter(body.filter, body.action)?;
    if let (Some(group), None) = (filter.group, &filter.queue) {
        // Its messages are in one queue, so operations on other queues may run beside it.
        filter.queue = api.store.failure_groups().get(group).await?.map(|group| group.queue);
    }
    let sends = match work {
        BulkAction::Requeue { .. } => true,
        BulkAction::Discard => false,
        BulkAction::Decide { decision, .. } => {
            decision == Decision::NotDone && filter.state == DeadLetterState::Parked
        }
    };
    if body.canary && !sends {
        return unexpected(
            "only a requeue, and a decide of parked messages as not done, send messages and can have a canary; nothing was started; remove canary",
        );
    }
    Ok(BulkOperation {
        store: api.store.clone(),
        policies: api.policies().await?,
        action: work,
        filter,
        actor: caller.name.clone(),
        reason: body.reason.map(|reason| reason.0),
    })
}

fn filter(body: BulkFilter, action: OperationAction) -> Result<DeadLetterFilter, Problem> {
    let unexpected = |detail: &'static str| Err(Problem::new(Code::BodyUnexpected, detail));
    let standing = match (body.discarded, body.replaced) {
        (false, false) => Disposition::Open,
        (true, false) => Disposition::Discarded,
        (false, true) => Disposition::Replaced,
        (true, true) => {
            return unexpected("the filter has both discarded and replaced, which no message is; remove one");
        }
    };
    let state = match (body.state, action, standing) {
        (Some(text::LetterState(state)), ..) => state,
        (None, OperationAction::Decide, Disposition::Open) => DeadLetterState::Parked,
        (None, ..) => DeadLetterState::Dead,
    };
    if state == DeadLetterState::Parked && standing != Disposition::Open {
        return unexpected("a parked message is neither discarded nor replaced; remove state or the other");
    }
    Ok(DeadLetterFilter {
        state,
        disposition: standing,
        queue: member("the filter's queue", body.queue.as_deref(), text::QueueName::read)?,
        code: member("code", body.code.as_deref(), text::ErrorCode::read)?,
        effect: body.effect.map(|effect| effect.0),
        identity: body.identity.map(|identity| identity.0),
        since_from: member("since_from", body.since_from.as_deref(), text::Moment::read)?,
        since_before: member("since_before", body.since_before.as_deref(), text::Moment::read)?,
        text: body.text.map(|text| text.0),
        group: member("group", body.group.as_deref(), text::GroupId::read)?,
    })
}

/// Reads an optional member of the body.
pub(super) fn member<T>(
    name: &str,
    text: Option<&str>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Problem> {
    text.map(read).transpose().map_err(|what| Problem::new(Code::ParameterInvalid, what).about(name))
}
