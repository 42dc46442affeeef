//! What is said of a message, and how many there are of each.

use std::fmt;

use ichido_client::queue::{Accepted, EntryId, Reason, State};
use ichido_core::text::visible;
use serde_json::{Value, json};

use super::super::came::{About, Came, Refused};
use super::super::many::LOST_IN_A_ROW_MAX;

/// How a message stands.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// In the file, and on the disk.
    Queued,
    /// The server took it, or did not.
    Came(Came),
    /// Its tries are spent; or the server refused it in an earlier run.
    Failed(Reason),
    /// It was sent, and is too old to be sent again.
    Held(Reason),
}

impl Said {
    pub(super) const fn refused(refused: Refused) -> Self {
        Self::Came(Came::Refused(refused))
    }

    /// The same of a line that asked for the same.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::Came(Came::New { id }) => Self::Came(Came::Same { id: id.clone() }),
            said => said.clone(),
        }
    }

    pub(super) fn about(&self) -> Option<About> {
        if let Self::Came(Came::Refused(refused)) = self { Some(refused.about) } else { None }
    }

    pub(super) const fn is_refusal(&self) -> bool {
        matches!(self, Self::Came(Came::Refused(_)))
    }

    /// Whether whatever is sent there would fare the same.
    pub(super) fn is_for_all(&self) -> bool {
        self.about() == Some(About::All)
    }

    /// A line for people; `whose` is which message, with a blank before it.
    pub(super) fn text(&self, whose: &str) -> String {
        let marked = |word: &str, reason: &Reason| {
            format!("{word}{whose}: {}", visible(&format!("{}: {}", reason.code, reason.text)))
        };
        match self {
            Self::Queued => format!("queued{whose}"),
            Self::Came(came) => came.text_of(whose),
            Self::Failed(reason) => marked("failed", reason),
            Self::Held(reason) => marked("held", reason),
        }
    }

    /// The same for programs.
    pub(super) fn json(&self, number: Option<u64>, entry: Option<EntryId>) -> String {
        let mut members = match self {
            Self::Came(came) => came.members(number),
            Self::Queued | Self::Failed(_) | Self::Held(_) => {
                let mut members = serde_json::Map::new();
                members.extend(number.map(|number| ("line".to_owned(), json!(number))));
                members
            }
        };
        let mut put = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
        if let Some(entry) = entry {
            put("entry", json!(entry.get()));
        }
        match self {
            Self::Came(_) => {}
            Self::Queued => put("result", json!("queued")),
            Self::Failed(reason) | Self::Held(reason) => {
                put("result", json!(if matches!(self, Self::Held(_)) { "held" } else { "failed" }));
                put("code", json!(reason.code));
                put("detail", json!(reason.text));
            }
        }
        Value::Object(members).to_string()
    }
}

/// What came of a message that was to be put into the file.
pub(super) fn of_accepted(accepted: Accepted) -> (EntryId, Said) {
    match accepted {
        Accepted::Same { id, state: State::Failed, reason: Some(reason) } => (id, Said::Failed(reason)),
        Accepted::Same { id, state: State::Held, reason: Some(reason) } => (id, Said::Held(reason)),
        Accepted::New { id } | Accepted::Same { id, .. } => (id, Said::Queued),
        Accepted::Different { id } => {
            let detail = format!(
                "the key is used for another body in entry {id} of the file; a new action needs a new key"
            );
            let code = Some("key_conflict".to_owned());
            (id, Said::refused(Refused { code, detail, about: About::Key }))
        }
    }
}

/// What came of how many.
#[derive(Default)]
pub(super) struct Counts {
    queued: u64,
    new: u64,
    same: u64,
    refused: u64,
    failed: u64,
    held: u64,
    /// How many of the last ones failed without an answer that says why.
    lost_in_a_row: u32,
    /// Whether it was about one message, and its key was used for another body.
    pub(super) one_conflicts: bool,
    /// What was last in the way.
    pub(super) last_trouble: Option<String>,
}

impl Counts {
    pub(super) fn add(&mut self, said: &Said) {
        match said {
            Said::Queued => return self.queued += 1,
            Said::Came(Came::New { .. }) => self.new += 1,
            Said::Came(Came::Same { .. }) => self.same += 1,
            Said::Came(Came::Refused(_) | Came::Unknown { .. }) => self.refused += 1,
            Said::Failed(_) => self.failed += 1,
            Said::Held(_) => self.held += 1,
        }
        self.lost_in_a_row = if matches!(said, Said::Failed(_)) { self.lost_in_a_row + 1 } else { 0 };
    }

    /// Whether the server failed at so many in a row that it is the server's fault.
    pub(super) const fn is_lost_in_a_row(&self) -> bool {
        LOST_IN_A_ROW_MAX <= self.lost_in_a_row
    }

    /// Whether every message that was spoken of stands, or waits.
    pub(super) const fn is_well(&self) -> bool {
        self.refused + self.failed + self.held == 0
    }
}

/// `3 new, 1 same, 0 refused`
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queued, {} new, {} same, {} refused", self.queued, self.new, self.same, self.refused)?;
        for (count, word) in [(self.failed, "failed"), (self.held, "held")] {
            if 0 < count {
                write!(f, ", {count} {word}")?;
            }
        }
        Ok(())
    }
}
