//! An entry of the trail, and the code of all it says.
//!
//! Guarantee: two entries have the same content code only when every field is the same. Fields are as the
//! database holds them, not as the rules would have them: an entry that breaks a rule is still an entry to be judged.

use std::fmt;

use uuid::Uuid;

use super::Code;
use super::framing::Framing;
use crate::time::Timestamp;

/// Which entry it is: its place in the history of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// The message.
    pub message: Uuid,
    /// The claim or action, which orders the history.
    pub fence: i64,
    /// The step within it.
    pub step: i16,
}

/// `fence.step`, which is enough to find it within its message.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.fence, self.step)
    }
}

/// One entry with everything that SPEC D13 asks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which one.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// When the try began that it ends.
    pub claimed_at: Option<Timestamp>,
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
    /// What happened.
    pub kind: String,
    /// How often it was tried.
    pub tries: i64,
    /// How often a worker died with it.
    pub deaths: i64,
    /// Since when its effect is in doubt.
    pub doubt_since: Option<Timestamp>,
    /// Until when a call may still be travelling.
    pub travels_until: Option<Timestamp>,
    /// What is known of the effect.
    pub effect: String,
    /// The error's code.
    pub code: Option<String>,
    /// The answer's status.
    pub status: Option<i16>,
    /// The digest of the result.
    pub result_digest: Option<Vec<u8>>,
    /// The receiver's name for what it did.
    pub receipt: Option<String>,
    /// The beginning of what was answered.
    pub excerpt: Option<String>,
    /// Which node.
    pub node: Option<Uuid>,
    /// Which person.
    pub actor: Option<String>,
    /// What it was about, where that is no message: a queue, a key, letters. The id's `message` is then that subject's.
    pub about: Option<String>,
    /// The message that it is about; `None` when there is no such message.
    pub subject: Option<Subject>,
}

/// What a message is, for its entries: a changed key or trace changes them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its queue.
    pub queue: String,
    /// Whose it is.
    pub identity: String,
    /// Its key.
    pub key: String,
    /// The digest of its request.
    pub digest: Vec<u8>,
    /// Its trace.
    pub trace: Option<String>,
    /// The dead message that it was made from.
    pub made_from: Option<Uuid>,
    /// When it was put in.
    pub created_at: Timestamp,
    /// How often it may be tried. It is sealed with the request, and here only to judge what may follow what.
    pub tries_allowed: u32,
}

impl Entry {
    /// The code of all it says.
    pub fn content(&self) -> Code {
        let mut framing = Framing::new(None, "ichido audit entry 1");
        framing.part(self.id.message.as_bytes());
        framing.number(self.id.fence);
        framing.number(self.id.step.into());
        framing.number(self.at.as_micros());
        for text in [&self.from, &self.to, &self.kind, &self.effect] {
            framing.part(text.as_bytes());
        }
        framing.number(self.tries);
        framing.number(self.deaths);
        for moment in [self.claimed_at, self.doubt_since, self.travels_until] {
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
        // Last, and only where it is there: what is said before it has a fixed number of parts.
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
        framing.part_or_none(self.made_from.as_ref().map(|id| &id.as_bytes()[..]));
        framing.number(self.created_at.as_micros());
    }
}
