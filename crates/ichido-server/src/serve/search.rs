//! Searches messages: by what the store can filter, and by a field of their requests.
//!
//! Guarantee: a search reads a bounded number of messages, holds a bounded number of requests at once, and shows no byte of them.
//! If it stops before its page is full, it says how far it came and where to continue. A producer sees only its own messages.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use ichido_core::json::{Pointer, Redaction};
use ichido_core::key::IdempotencyKey;
use ichido_core::time::Timestamp;
use ichido_store::message::limits::MAX_SEARCHED;
use ichido_store::message::{MessageFilter, MessageRow};
use ichido_store::token::TokenRole;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::api::ApiState;
use super::caller::{ApiCaller, unknown_queue};
use super::cursor::{self, Cursor};
use super::field::Field;
use super::models::Listed;
use super::problem::{Code, Problem};
use super::queues::check_known;
use super::request::{Anyone, AuthorizedRequest};
use super::response::json;
use super::text;
use crate::limits::{LIST_PART, MAX_LIST_SCANNED};

/// Where a queue that redacts receipts has them.
const RECEIPT: &str = "/receipt";

/// Filters for messages.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MessageQuery {
    /// With these first digits of the id.
    id: Option<text::MessageIdPrefix>,
    /// In this queue.
    queue: Option<text::QueueName>,
    /// In this state.
    state: Option<text::MessageState>,
    /// With this idempotency key.
    #[param(value_type = Option<text::IdempotencyKey>)]
    key: Option<String>,
    /// With this identity.
    identity: Option<text::Identity>,
    /// With this correlation id, which the request carries.
    trace_id: Option<text::TraceId>,
    /// With this receipt, the receiver's own id for what it did.
    receipt: Option<text::Receipt>,
    /// With this code of the last error.
    code: Option<text::ErrorCode>,
    /// Enqueued since this time, inclusive.
    created_from: Option<text::Moment>,
    /// Enqueued before this time.
    created_before: Option<text::Moment>,
    /// A JSON pointer into the request, such as `/symbol`; with `value`.
    #[param(value_type = Option<text::JsonPointer>)]
    field: Option<String>,
    /// The value there: a JSON value, or a string without quotes; with `field`.
    value: Option<String>,
    /// Maximum messages on a page; 50 by default.
    limit: Option<text::Limit>,
    /// Cursor of the page: `next` of the previous page.
    #[param(value_type = Option<text::PageCursor>)]
    cursor: Option<Cursor<Uuid>>,
}

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessagePage {
    /// Newest first.
    messages: Vec<Listed>,
    /// The `cursor` of the next page; null on the last one. A page can be short and still have one, since the number of messages
    /// that one request examines is limited.
    next: Option<String>,
    /// How far back the messages were examined, by the time in their ids, if that limit was reached; null otherwise.
    searched_back_to: Option<String>,
}

/// Lists messages, newest first.
///
/// A message must match all filters. `field` and `value` search requests that are valid JSON, whatever their content type: the value at the
/// pointer must be the same JSON value, or a string with this text.
///
/// `id`, `key`, `trace_id` and `code` are found by an index, and so are every `state` but `sent` and `cancelled`, and an `identity` with
/// fewer than 1,000 messages. Other filters compare messages one by one, newest first: one request examines about 10,000 messages, or the
/// requests of 1,000. A page can therefore be short and still have a `next`; `searched_back_to` then says how far it came.
#[utoipa::path(
    get,
    path = "/v1/messages",
    params(MessageQuery),
    responses(
        (status = 200, description = "A page of the messages that you may see", body = MessagePage),
    )
)]
pub(super) async fn list_messages(
    AuthorizedRequest { api, caller, query, .. }: AuthorizedRequest<Anyone, MessageQuery>,
) -> Result<Response, Problem> {
    let search = MessageSearch::new(query, &caller)?;
    search.check_redacted(&api)?;
    // Requests may be large, and a listing holds some of them, so only a few listings run at once.
    let _permit = api.listings.acquire(&caller).await;
    let queue = search.filter.queue.clone();
    let page = search.run(&api, &caller).await?;
    if page.messages.is_empty() {
        check_known(&api, &caller, queue.as_ref()).await?;
    }
    Ok(json(StatusCode::OK, &page))
}

/// A search with its filters.
struct MessageSearch {
    filter: MessageFilter,
    field: Option<Arc<Field>>,
    limit: u32,
}

impl MessageSearch {
    fn new(query: MessageQuery, caller: &ApiCaller) -> Result<Self, Problem> {
        let queue = query.queue.map(|queue| queue.0);
        if queue.as_ref().is_some_and(|queue| !caller.can_see_queue(queue.as_str())) {
            return Err(unknown_queue());
        }
        let key = query.key.as_deref().map(IdempotencyKey::parse).transpose().map_err(Problem::from_key)?;
        let identity = match (&caller.role, query.identity.map(|identity| identity.0)) {
            (TokenRole::Producer { identity: own, .. }, Some(identity)) if identity != *own => {
                let detail = "the token sees only messages of its own identity; leave identity out";
                return Err(Problem::new(Code::RoleInsufficient, detail));
            }
            (TokenRole::Producer { identity, .. }, _) => Some(identity.clone()),
            (TokenRole::Viewer | TokenRole::Operator | TokenRole::Admin, identity) => identity,
        };
        let field = match (query.field, query.value) {
            (None, None) => None,
            (Some(pointer), Some(value)) => Some(Arc::new(Field::read(&pointer, value)?)),
            _ => {
                let detail = "field and value belong together; send both, or neither";
                return Err(Problem::new(Code::ParameterInvalid, detail));
            }
        };
        let filter = MessageFilter {
            id: query.id.map(|prefix| prefix.0),
            queue,
            status: query.state.map(|state| state.0),
            key,
            identity,
            trace_id: query.trace_id.map(|trace_id| trace_id.0),
            receipt: query.receipt.map(|receipt| receipt.0),
            code: query.code.map(|code| code.0),
            created_from: query.created_from.map(|moment| moment.0),
            created_before: query.created_before.map(|moment| moment.0),
            after: query.cursor.map(|cursor| cursor.0),
        };
        Ok(Self { filter, field, limit: query.limit.map_or(text::PAGE_DEFAULT, |limit| limit.0) })
    }

    /// Refuses a field that is redacted in a queue that is searched: whether it has a value would tell the value.
    fn check_redacted(&self, api: &ApiState) -> Result<(), Problem> {
        let receipt = self.filter.receipt.is_some().then(|| Pointer::parse(RECEIPT).ok()).flatten();
        let pointers = || self.field.iter().map(|field| field.pointer()).chain(&receipt);
        let is_searched = |name: &str| self.filter.queue.as_ref().is_none_or(|queue| queue.as_str() == name);
        let mut searched = api.queues.keys().filter(|name| is_searched(name));
        let hidden = |name: &String| {
            let redaction = api.redaction(name);
            pointers().find(|pointer| redaction.overlaps(pointer)).map(|pointer| (name.clone(), pointer))
        };
        match searched.find_map(hidden) {
            None => Ok(()),
            Some((name, pointer)) => {
                let detail = format!(
                    "the field {pointer} is redacted in queue {name}, so it cannot be searched; search another field, or name another queue"
                );
                Err(Problem::new(Code::ParameterInvalid, detail))
            }
        }
    }

    /// Whether a message may be found by its receipt: one that is not shown must not be confirmed either.
    fn shows_receipt(&self, row: &MessageRow, redaction: &Redaction) -> bool {
        let Some(receipt) = self.filter.receipt.as_deref().filter(|_| !redaction.is_empty()) else {
            return true;
        };
        redaction.of_request(&row.request).text(receipt) == receipt
    }

    async fn run(mut self, api: &ApiState, caller: &ApiCaller) -> Result<MessagePage, Problem> {
        let mut page = MessagePage { messages: Vec::new(), next: None, searched_back_to: None };
        let (begin, mut last) = (self.filter.after, None);
        let (mut examined, mut scanned) = (0, 0);
        loop {
            let remaining = self.limit - u32::try_from(page.messages.len()).unwrap_or(self.limit);
            // Without a field every message matches, so no more are read than needed.
            let part = if self.field.is_some() { LIST_PART } else { LIST_PART.min(remaining) };
            let found = api.store.messages().search(&self.filter, part).await?;
            examined += found.examined;
            let mut matched = self.matched(found.messages).await?.into_iter();
            for (row, fits) in matched.by_ref() {
                scanned += 1;
                self.filter.after = Some(row.id);
                let redaction = api.redaction(&row.queue);
                let is_shown =
                    caller.can_see(&row.queue, &row.identity) && self.shows_receipt(&row, redaction);
                if fits && is_shown {
                    last = Some(row.id);
                    page.messages.push(Listed::new(row, redaction));
                }
                if page.messages.len() == self.limit as usize {
                    break;
                }
            }
            // The next page begins with the messages that are left of this part.
            if matched.len() == 0 {
                self.filter.after = found.next;
            }
            let is_full = page.messages.len() == self.limit as usize;
            let Some(after) = self.filter.after else { return Ok(page) };
            if is_full || MAX_LIST_SCANNED <= scanned || MAX_SEARCHED <= examined {
                page.next = Some(cursor::encode(&blurred(after, begin, last)));
                page.searched_back_to = enqueued_at(after).filter(|_| !is_full).map(|at| at.to_string());
                return Ok(page);
            }
        }
    }

    /// Checks which messages have the field.
    ///
    /// Runs on a blocking thread, because parsing large requests takes time.
    async fn matched(&self, rows: Vec<MessageRow>) -> Result<Vec<(MessageRow, bool)>, Problem> {
        let Some(field) = self.field.clone() else {
            return Ok(rows.into_iter().map(|row| (row, true)).collect());
        };
        let judge = move || {
            let matched = rows.into_iter().map(|row| {
                let fits = field.is_in(&row.request);
                (row, fits)
            });
            matched.collect()
        };
        tokio::task::spawn_blocking(judge).await.map_err(|error| {
            tracing::error!(%error, "failed to search requests");
            Problem::new(Code::StoreRefused, "the server failed to search the requests")
        })
    }
}

/// Returns where to continue after the last examined message, without its id: it may belong to another identity.
///
/// The random digits of the id are left out. What was listed comes before, and the search before this one too.
fn blurred(after: Uuid, begin: Option<Uuid>, listed: Option<Uuid>) -> Uuid {
    let blurred = Uuid::from_u128(after.as_u128() | u128::from(u32::MAX));
    let end = [begin, listed].into_iter().flatten().fold(blurred, Ord::min);
    // A search must come further than the one before.
    if Some(end) == begin { after } else { end }
}

/// Returns about when a message was enqueued, by its id.
fn enqueued_at(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    Some(Timestamp::from_micros(micros.checked_add(i64::from(nanos / 1_000))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_has_no_id_of_an_unlisted_message_and_skips_nothing() {
        let id = |digits: u128| Uuid::from_u128((0x0199_5b1c << 96) + digits);
        let examined = id(0x1234_5678);
        let cursor = blurred(examined, None, None);
        assert!(examined < cursor, "what comes after it is not skipped");
        assert_eq!(cursor, blurred(id(0x9999), None, None), "its random digits are not in it");
        assert_eq!(
            blurred(examined, None, Some(id(0x2000_0000))),
            id(0x2000_0000),
            "nothing is listed twice"
        );
        assert_eq!(blurred(examined, None, Some(examined)), examined, "a listed one is the caller's own");
        assert_eq!(blurred(examined, Some(cursor), None), examined, "it comes further");
    }
}
