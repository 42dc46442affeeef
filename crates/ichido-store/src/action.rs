//! Operators' actions on queues, keys and many dead letters at once.
//!
//! Guarantee: each action is an entry of the audit trail with its actor. It is chained to the earlier entries of the same
//! subject and sealed like a message's entry. A pause, a decision about a key, or that the outcome of a key became unknown,
//! commits together with the change it describes, or not at all.
//!
//! An operator's action on one message is an entry of that message's own history:
//! [`Messages::transitions`](crate::Messages::transitions). A request to cancel one in flight is an action here, because what
//! comes of it is not known yet.
// SPEC D13, F5.

use ichido_core::audit::key_record::{KEYS_SEALED, KeyList};
use ichido_core::digest::hex;
use ichido_core::ledger::RecordName;
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::check;
use crate::columns::Columns;
use crate::error::StoreError;
use crate::message::{Note, QueueName, limits};
use crate::placement::excerpt;
use crate::statement::{DbConnection, SqlValue, column, paired};
use crate::subject::{identity_subject, key_subject, subject};

/// The maximum length of a subject, kind or state name, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The kind of the entry that the key records of an identity were deleted.
pub(crate) const KEYS_DELETED: &str = "keys_deleted";

/// An action to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAction {
    /// The subject. Its actions form one chain; for anything with a beginning and an end, the caller chooses an id.
    pub subject: Uuid,
    /// The subject in words for people: `queue orders`, `letters`.
    pub about: String,
    /// The kind of action.
    pub kind: String,
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
    /// Who did it.
    pub actor: Option<String>,
    /// Details. Only the first [`limits::MAX_EXCERPT_BYTES`] bytes are stored.
    pub detail: Option<String>,
}

impl AuditAction {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check::text("the subject of the action", &self.about, MAX_NAME_BYTES)?;
        for name in [&self.kind, &self.from, &self.to] {
            check::text("the name of an action or a state", name, MAX_NAME_BYTES)?;
        }
        check::text("the actor", self.actor.as_deref().unwrap_or_default(), limits::MAX_EXCERPT_BYTES)?;
        check::no_nul("the detail", self.detail.as_deref().unwrap_or_default())
    }

    /// The pause of a queue, or the end of its pause.
    pub(crate) fn pause(queue: &QueueName, was: bool, paused: bool, by: Option<&str>) -> Self {
        let state = |paused: bool| if paused { "paused" } else { "running" }.to_owned();
        Self {
            subject: subject("queue", queue.as_str().as_bytes()),
            about: format!("queue {}", queue.as_str()),
            kind: if paused { "paused" } else { "resumed" }.to_owned(),
            from: state(was),
            to: state(paused),
            actor: by.map(str::to_owned),
            detail: None,
        }
    }

    pub(crate) fn parallelism(
        queue: &QueueName,
        was: Option<i64>,
        wanted: Option<i64>,
        by: Option<&str>,
    ) -> Self {
        let state = |count: Option<i64>| count.map_or("as configured".to_owned(), |count| count.to_string());
        Self {
            subject: subject("queue", queue.as_str().as_bytes()),
            about: format!("queue {}", queue.as_str()),
            kind: if wanted.is_some() { "parallelism_set" } else { "parallelism_cleared" }.to_owned(),
            from: state(was),
            to: state(wanted),
            actor: by.map(str::to_owned),
            detail: None,
        }
    }

    /// A request to cancel a message in flight. It is not a step of the message's life: its attempt may end otherwise.
    pub(crate) fn cancel_requested(message: Uuid, note: &Note) -> Self {
        Self {
            subject: subject("cancellation", message.as_bytes()),
            about: format!("message {message}"),
            kind: "cancel_requested".to_owned(),
            from: StateName::Sending.as_str().to_owned(),
            to: StateName::Sending.as_str().to_owned(),
            actor: note.actor.clone(),
            detail: note.excerpt.clone(),
        }
    }

    /// The outcome of a key became unknown.
    pub(crate) fn unknown(name: &RecordName) -> Self {
        Self::of_key(name, "unknown", ("claimed", "unknown"), None)
    }

    /// The receiver was asked about a key of unknown outcome, and answered.
    pub(crate) fn reconciled(name: &RecordName, to: &str) -> Self {
        Self::of_key(name, "reconciled", ("unknown", to), None)
    }

    /// A person's decision about a key of unknown outcome.
    pub(crate) fn decided(name: &RecordName, to: &str, by: &str) -> Self {
        Self::of_key(name, "decided", ("unknown", to), Some(by))
    }

    /// Settled key records were sealed.
    pub(crate) fn keys_sealed(id: Uuid, list: &KeyList) -> Self {
        Self {
            subject: id,
            about: "sealed keys".to_owned(),
            kind: KEYS_SEALED.to_owned(),
            from: "none".to_owned(),
            to: "sealed".to_owned(),
            actor: None,
            detail: Some(list.to_string()),
        }
    }

    /// The key records of an identity were deleted. The entry outlives them, so it does not name the identity.
    pub(crate) fn keys_deleted(identity: &str) -> Self {
        let subject = identity_subject(identity);
        Self {
            subject,
            about: format!("identity {subject}"),
            kind: KEYS_DELETED.to_owned(),
            from: "kept".to_owned(),
            to: "deleted".to_owned(),
            actor: None,
            detail: None,
        }
    }

    fn of_key(name: &RecordName, kind: &str, (from, to): (&str, &str), by: Option<&str>) -> Self {
        Self {
            subject: key_subject(name),
            about: format!("key {}", hex(&name.hash())),
            kind: kind.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            actor: by.map(str::to_owned),
            detail: Some(format!("{} {} {}", name.operation, name.identity, name.key.as_str())),
        }
    }
}

/// A recorded action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRow {
    /// The position among all actions; later actions have greater numbers.
    pub number: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The action.
    pub action: AuditAction,
}

pub(crate) fn action_row(row: &impl Columns) -> Result<ActionRow, StoreError> {
    Ok(ActionRow {
        number: row.number("fence")?.unsigned_abs(),
        at: row.timestamp("at")?,
        action: AuditAction {
            subject: row.uuid("message_id")?,
            about: row.text("about")?.to_owned(),
            kind: row.text("kind")?.to_owned(),
            from: row.text("from_state")?.to_owned(),
            to: row.text("to_state")?.to_owned(),
            actor: row.text_or_none("actor")?,
            detail: row.text_or_none("excerpt")?,
        },
    })
}

/// Adds entries to the audit trail, on SQLite with the fences after `last`.
pub(crate) async fn record(
    connection: &mut DbConnection<'_>,
    actions: &[AuditAction],
    last: i64,
) -> Result<(), StoreError> {
    if actions.is_empty() {
        return Ok(());
    }
    let details: Vec<_> = actions.iter().map(|action| action.detail.as_deref().map(excerpt)).collect();
    let fences: Vec<i64> = (last..).skip(1).take(actions.len()).collect();
    let rows = [
        column(actions, |action| action.subject),
        column(actions, |action| &*action.from),
        column(actions, |action| &*action.to),
        column(actions, |action| &*action.kind),
        column(&details, |detail| detail.as_deref()),
        column(actions, |action| action.actor.as_deref()),
        column(actions, |action| &*action.about),
        column(&fences, |fence| *fence),
    ];
    connection.execute(paired!("action_add"), &[SqlValue::Rows(&rows), SqlValue::Now]).await.map(drop)
}
