//! An entry of the audit trail, and the code of its contents.
//!
//! Guarantee: two entries have the same content code only if every field is the same. Fields are as stored in the
//! database, not as the rules require: an entry that breaks a rule is still an entry to judge.

use std::fmt;

use uuid::Uuid;

use super::Code;
use super::framing::Framing;
use crate::time::Timestamp;

/// Identifies an entry: its position in the history of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// The message.
    pub message: Uuid,
    /// The fence of the claim or action, which orders the history.
    pub fence: i64,
    /// The step within the fence.
    pub step: i16,
}

/// Formats `fence.step`, which identifies it within its message.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.fence, self.step)
    }
}

/// One entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// When the attempt that it ends began.
    pub claimed_at: Option<Timestamp>,
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
    /// What happened.
    pub kind: String,
    /// The number of attempts.
    pub attempts: i64,
    /// The number of worker deaths.
    pub deaths: i64,
    /// Since when its effect is in doubt.
    pub doubt_since: Option<Timestamp>,
    /// Until when a call may still be in transit.
    pub in_flight_until: Option<Timestamp>,
    /// What is known of the effect.
    pub effect: String,
    /// The error code.
    pub code: Option<String>,
    /// The response status.
    pub status: Option<i16>,
    /// The digest of the result.
    pub result_digest: Option<Vec<u8>>,
    /// The receiver's id for what it did.
    pub receipt: Option<String>,
    /// The error message, or an operator's reason.
    pub excerpt: Option<String>,
    /// The node.
    pub node: Option<Uuid>,
    /// The person.
    pub actor: Option<String>,
    /// The subject if it is not a message: a queue, a key, dead letters.
    ///
    /// The id's `message` is then that of the subject.
    pub about: Option<String>,
    /// The message; `None` if there is none.
    pub subject: Option<Subject>,
}

/// The message of an entry: a changed key or trace changes all its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its queue.
    pub queue: String,
    /// The caller's identity.
    pub identity: String,
    /// Its key.
    pub key: String,
    /// The digest of its request.
    pub digest: Vec<u8>,
    /// Its trace context.
    pub trace: Option<String>,
    /// The correlation id that the request carries.
    pub trace_id: Option<String>,
    /// The dead message that it replaces.
    pub replacement_of: Option<Uuid>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The maximum number of attempts.
    ///
    /// It is sealed with the request, and is here only to judge what may follow.
    pub max_attempts: u32,
}

impl AuditEntry {
    /// Returns the code of its contents.
    pub fn content(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit entry 1");
        framing.part(self.id.message.as_bytes());
        framing.number(self.id.fence);
        framing.number(self.id.step.into());
        framing.number(self.at.as_micros());
        for text in [&self.from, &self.to, &self.kind, &self.effect] {
            framing.part(text.as_bytes());
        }
        framing.number(self.attempts);
        framing.number(self.deaths);
        for moment in [self.claimed_at, self.doubt_since, self.in_flight_until] {
            framing
                .part_or_none(moment.map(|moment| moment.as_micros().to_be_bytes()).as_ref().map(|b| &b[..]));
        }
        framing.part_or_none(self.status.map(i16::to_be_bytes).as_ref().map(|bytes| &bytes[..]));
        framing.part_or_none(self.result_digest.as_deref());
        for text in [&self.code, &self.receipt, &self.excerpt, &self.actor] {
            framing.part_or_none(text.as_deref().map(str::as_bytes));
        }
        framing.part_or_none(self.node.as_ref().map(|node| &node.as_bytes()[..]));
        framing.part(&[u8::from(self.subject.is_some())]);
        if let Some(subject) = &self.subject {
            subject.add_to(&mut framing);
        }
        // Last, and only if present: everything before it has a fixed number of parts.
        if let Some(about) = &self.about {
            framing.part(about.as_bytes());
        }
        framing.finish()
    }
}

impl Subject {
    fn add_to(&self, framing: &mut Framing) {
        for text in [&self.queue, &self.identity, &self.key] {
            framing.part(text.as_bytes());
        }
        framing.part(&self.digest);
        framing.part_or_none(self.trace.as_deref().map(str::as_bytes));
        framing.part_or_none(self.trace_id.as_deref().map(str::as_bytes));
        framing.part_or_none(self.replacement_of.as_ref().map(|id| &id.as_bytes()[..]));
        framing.number(self.created_at.as_micros());
    }
}
