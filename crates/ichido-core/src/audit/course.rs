//! Checks whether an entry may follow the previous ones of its message, by the rules of the lifecycle.
//!
//! Guarantee: every history that [`crate::lifecycle::State::step`] can produce is accepted, and an entry that it cannot
//! have produced is refused with the reason. There is no second table of transitions here: an entry does not record
//! everything that decided a step (what a repetition could do, whether the call had started), so the step is tried with
//! every possible value.
//!
//! Dates decide nothing, because a database's clock may be set back. Start at [`Walk`].

mod rules;

use std::time::Duration;

use super::entry::{AuditEntry, EntryId};
use crate::lifecycle::State;
use crate::time::Timestamp;
use rules::{Course, PROOF_STEP};

/// Why an entry does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CourseViolation {
    /// Its fence is greater than any the store has issued, or not a fence at all.
    FenceNotIssued,
    /// Its fence and step do not come after those of the previous entry.
    OutOfPlace,
    /// There is no message with its id.
    NoMessage,
    /// It is an operator's action on something else, but has fields of a message.
    ///
    /// These are a message's id, or fields that only a message has.
    NotAnAction,
    /// No step of the lifecycle leads from the previous entry to it.
    NoSuchStep,
    /// It proves that the work was done, but the attempt it belongs to did not end as sent.
    ProofIgnored,
}

impl CourseViolation {
    /// Returns the reason as a sentence.
    pub const fn why(self) -> &'static str {
        match self {
            Self::FenceNotIssued => "its fence was never issued",
            Self::OutOfPlace => "its fence and step do not come after those of the previous entry",
            Self::NoMessage => "there is no message with this id",
            Self::NotAnAction => "it is an operator's action, but has fields that only a message has",
            Self::NoSuchStep => "no lifecycle step leads from the previous entry to this one",
            Self::ProofIgnored => "it proves that the work was done, but its attempt did not end as sent",
        }
    }
}

/// Walks the entries of one message in order and reports those that do not follow.
///
/// ```
/// use ichido_core::audit::course::Walk;
///
/// let mut walk = Walk::from_the_first();
/// # let entries: [ichido_core::audit::entry::AuditEntry; 0] = [];
/// # let last_issued = 1;
/// for entry in &entries {
///     if let Err(misfit) = walk.step(entry, last_issued) {
///         println!("entry {} does not follow: {}", entry.id, misfit.why());
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Walk {
    course: Course,
    /// The course without the last entry, in case that entry does not belong here.
    without: Option<Course>,
    at: Option<Timestamp>,
}

impl Walk {
    /// Starts at the first entry of a message.
    pub const fn from_the_first() -> Self {
        Self { course: Course::new(true), without: None, at: None }
    }

    /// Starts at some entry: whatever came before is assumed to allow it.
    pub const fn from_the_middle() -> Self {
        Self { course: Course::new(false), without: None, at: None }
    }

    /// Continues with the next entry. `issued` is the last fence that the store has issued.
    ///
    /// After an entry that does not follow, the next one may follow either from it or from the one before: so an
    /// inserted entry, and one that follows a removed entry, are reported alone.
    pub fn step(&mut self, entry: &AuditEntry, issued: i64) -> Result<(), CourseViolation> {
        let other = self.without.take();
        let (next, violation) = match self.course.follow(entry, issued) {
            Ok(next) => (next, None),
            Err(violation) => match other.and_then(|course| course.follow(entry, issued).ok()) {
                Some(next) => (next, None),
                None => (self.course.after(entry), Some(violation)),
            },
        };
        let before = std::mem::replace(&mut self.course, next);
        if let Some(violation) = violation {
            self.without = Some(before);
            return Err(violation);
        }
        if entry.id.step != PROOF_STEP {
            self.at = Some(entry.at);
        }
        Ok(())
    }

    /// Returns by how much an entry is dated before its predecessor: then a clock was set back.
    ///
    /// A late proof is stored among older entries, so it says nothing about this.
    pub fn set_back(&self, entry: &AuditEntry) -> Option<Duration> {
        let at = self.at.filter(|at| entry.id.step != PROOF_STEP && entry.at < *at)?;
        Some(at.since(entry.at))
    }

    /// Returns the last entry so far.
    pub const fn last(&self) -> Option<EntryId> {
        self.course.last
    }

    /// Judges what only the end shows. `is_sending` says whether a worker holds the message now.
    pub fn end(&self, is_sending: bool) -> Result<(), (EntryId, CourseViolation)> {
        match self.course.proof {
            Some(proof) if self.course.state != Some(State::Sent) && !is_sending => {
                Err((proof, CourseViolation::ProofIgnored))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
