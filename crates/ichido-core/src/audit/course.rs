//! Whether an entry may follow the ones before it of the same message, by the rules of the lifecycle.
//!
//! Guarantee: every history that [`crate::lifecycle::State::step`] can produce is accepted, and an entry that it cannot have produced is refused
//! with the reason. There is no second table of transitions here: an entry does not record everything that decided a step (what a
//! repetition could do, whether the call had begun), so the step is tried with every value that these can have.
//!
//! Dates decide nothing, because a database's clock may be set back. Start at [`Walk`].

mod rules;

use std::time::Duration;

use super::entry::{Entry, EntryId};
use crate::lifecycle::State;
use crate::time::Timestamp;
use rules::{Course, PROOF_STEP};

/// Why an entry does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misfit {
    /// Its fence is greater than any that the store has issued, or not a fence at all.
    FenceNotIssued,
    /// Its fence and step do not come after those of the entry before it.
    OutOfPlace,
    /// There is no message with its id.
    NoMessage,
    /// It is an operator's action on something else, under the id of a message or with what only a message has.
    NotAnAction,
    /// No step of the lifecycle leads from the entry before it to what it says.
    NoSuchStep,
    /// It proves that the work was done, and the attempt that met the proof did not end as sent.
    ProofIgnored,
}

impl Misfit {
    /// In a sentence.
    pub const fn why(self) -> &'static str {
        match self {
            Self::FenceNotIssued => "its fence was never issued",
            Self::OutOfPlace => "its fence and step do not come after those of the entry before it",
            Self::NoMessage => "there is no message with this id",
            Self::NotAnAction => "it is an operator's action with what only a message has",
            Self::NoSuchStep => "no step leads from the entry before it to what it says",
            Self::ProofIgnored => {
                "it proves that the work was done, yet the attempt that met it did not end as sent"
            }
        }
    }
}

/// Walks along the entries of one message in order, and says which of them do not follow.
///
/// ```
/// use ichido_core::audit::course::Walk;
///
/// let mut walk = Walk::from_the_first();
/// # let entries: [ichido_core::audit::entry::Entry; 0] = [];
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
    /// The course without the last entry, should that be the one that does not belong here.
    without: Option<Course>,
    at: Option<Timestamp>,
}

impl Walk {
    /// From the first entry of a message on.
    pub const fn from_the_first() -> Self {
        Self { course: Course::new(true), without: None, at: None }
    }

    /// From some entry on: what came before it is taken to allow it.
    pub const fn from_the_middle() -> Self {
        Self { course: Course::new(false), without: None, at: None }
    }

    /// Goes on by the next entry. `issued` is the last fence that the store has issued.
    ///
    /// After one that does not follow, the next may follow either from it or from what was before it: so an entry that was put
    /// in, and one that follows an entry that was taken away, are named alone.
    pub fn step(&mut self, entry: &Entry, issued: i64) -> Result<(), Misfit> {
        let other = self.without.take();
        let (next, misfit) = match self.course.follow(entry, issued) {
            Ok(next) => (next, None),
            Err(misfit) => match other.and_then(|course| course.follow(entry, issued).ok()) {
                Some(next) => (next, None),
                None => (self.course.after(entry), Some(misfit)),
            },
        };
        let before = std::mem::replace(&mut self.course, next);
        if let Some(misfit) = misfit {
            self.without = Some(before);
            return Err(misfit);
        }
        if entry.id.step != PROOF_STEP {
            self.at = Some(entry.at);
        }
        Ok(())
    }

    /// By how much an entry is dated before the one that it follows: then a clock was set back. A late proof is kept among
    /// entries that are older than it, so it says nothing of this.
    pub fn set_back(&self, entry: &Entry) -> Option<Duration> {
        let at = self.at.filter(|at| entry.id.step != PROOF_STEP && entry.at < *at)?;
        Some(at.since(entry.at))
    }

    /// The last entry so far.
    pub const fn last(&self) -> Option<EntryId> {
        self.course.last
    }

    /// Judges what only the end shows. `is_sending` is whether a worker holds the message now.
    pub fn end(&self, is_sending: bool) -> Result<(), (EntryId, Misfit)> {
        match self.course.proof {
            Some(proof) if self.course.state != Some(State::Sent) && !is_sending => {
                Err((proof, Misfit::ProofIgnored))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
