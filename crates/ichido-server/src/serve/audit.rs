//! The audit trail over HTTP: who did what to which, before and after, and whether it is sealed.
//!
//! Guarantee: a page reads a bounded number of entries, from an index. Nothing here changes the trail or verifies it; `ichido
//! audit verify` does, with the key.

// Spec: F5.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use axum::response::Response;
use http::StatusCode;
use ichido_core::audit::entry::EntryId;
use ichido_store::audit::{AuditFilter, AuditPage, ListedEntry, SealState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::cursor::{self, Cursor, CursorKey};
use super::problem::Problem;
use super::request::{AuthorizedRequest, Viewer};
use super::response::json;
use super::text;

/// Filters for the audit trail.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// Of this actor.
    actor: Option<text::Actor>,
    /// Of this kind, such as `requeued` or `paused`.
    kind: Option<text::ActionKind>,
    /// Of this subject: a message's id, or `subject` of another entry.
    subject: Option<text::SubjectId>,
    /// Maximum entries on a page; 50 by default.
    limit: Option<text::Limit>,
    /// Cursor of the page: `next` of the previous page.
    #[param(value_type = Option<text::PageCursor>)]
    cursor: Option<Cursor<EntryId>>,
}

/// A page of the audit trail.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AuditEntries {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// The `cursor` of the next page; null on the last one. A page can be short and still have one, since the number of entries that one
    /// request examines is limited.
    pub next: Option<String>,
}

/// An entry of the audit trail.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AuditEntry {
    pub at: String,
    /// Who acted: the name of a token or of a local user; null if the system did.
    pub actor: Option<String>,
    /// What was done, such as `requeued`, `paused` or `revoked`.
    pub kind: String,
    /// The subject in words, such as `queue orders` or `message 0199…`.
    pub about: String,
    /// The subject's id; for a message, the message's.
    pub subject: Uuid,
    /// The queue of a message; null for another subject.
    pub queue: Option<String>,
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
    /// The reason that was given, or what was changed.
    pub detail: Option<String>,
    /// Whether it is sealed. A sealed entry cannot be changed or removed unnoticed.
    pub sealed: bool,
    /// The number of its seal; null while it waits for one, or if an earlier version sealed it.
    pub seal: Option<u64>,
}

impl AuditEntry {
    fn new(ListedEntry { entry, seal }: ListedEntry) -> Self {
        let (sealed, seal) = match seal {
            SealState::Waiting => (false, None),
            SealState::Sealed { seal } => (true, seal),
        };
        let subject = entry.id.message;
        Self {
            at: entry.at.to_string(),
            actor: entry.actor,
            kind: entry.kind,
            about: entry.about.unwrap_or_else(|| format!("message {subject}")),
            subject,
            queue: entry.subject.map(|message| message.queue),
            from: entry.from,
            to: entry.to,
            detail: entry.excerpt,
            sealed,
            seal,
        }
    }
}

impl CursorKey for EntryId {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.fence.to_be_bytes()[..], self.message.as_bytes(), &self.step.to_be_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fence, rest) = bytes.split_first_chunk()?;
        let (message, step) = rest.split_first_chunk()?;
        let (message, step) = (Uuid::from_bytes(*message), i16::from_be_bytes(step.try_into().ok()?));
        Some(Self { message, fence: i64::from_be_bytes(*fence), step })
    }
}

/// Lists the audit trail: what people did, newest first.
///
/// An entry must match all filters. It also has what the system did to anything but messages, such as a key whose outcome became unknown.
/// What workers did to a message is in the message's events. An entry about a message is deleted with the message.
///
/// Each filter alone is found by an index. Two or more compare the entries of one of them, newest first, at most 1,000 for a request. A page
/// can therefore be short and still have a `next`.
#[utoipa::path(
    get,
    path = "/v1/audit",
    params(AuditQuery),
    responses(
        (status = 200, description = "A page of the audit trail", body = AuditEntries),
    )
)]
pub(super) async fn list_audit(
    AuthorizedRequest { api, query, .. }: AuthorizedRequest<Viewer, AuditQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.map_or(text::PAGE_DEFAULT, |limit| limit.0);
    let filter = AuditFilter {
        actor: query.actor.map(|actor| actor.0),
        kind: query.kind.map(|kind| kind.0),
        subject: query.subject.map(|subject| subject.0),
    };
    let AuditPage { entries, next } =
        api.store.audit().list(&filter, query.cursor.map(|cursor| cursor.0), limit).await?;
    let entries = entries.into_iter().map(AuditEntry::new).collect();
    Ok(json(StatusCode::OK, &AuditEntries { entries, next: next.map(|next| cursor::encode(&next)) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_of_an_entry_reads_back() {
        let id = EntryId { message: Uuid::from_u128(7), fence: i64::MAX - 1, step: 2 };
        assert_eq!(EntryId::from_bytes(&id.to_bytes()), Some(id));
        assert_eq!(EntryId::from_bytes(&id.to_bytes()[1..]), None);
    }
}
