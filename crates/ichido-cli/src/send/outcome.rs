//! What came of a message, for people and for programs.

use std::fmt;

use ichido_client::queue::{EntryId, Reason};
use ichido_core::text::visible;
use ichido_core::verdict::Effect;
use serde_json::{Value, json};

use crate::exit::Exit;

/// How many messages in a row may be left without an outcome. One that no server can handle is that message's fault; so many are the
/// server's.
const LOST_IN_A_ROW_MAX: u32 = 3;

/// What came of a message that was to be put in.
#[derive(Clone, Debug)]
pub(super) enum SendOutcome {
    /// It is in the offline queue, and on the disk.
    Queued,
    /// It stands, since now.
    New { id: String },
    /// It stood before, with the same meaning under the same key.
    Same { id: String },
    /// It will not be taken.
    Refused(SendRefusal),
    /// It is not known to stand.
    Unknown {
        /// `NotDone` where it is known not to stand.
        effect: Effect,
        detail: String,
    },
    /// Its tries from the offline queue are spent; or the server refused it in an earlier run.
    Failed(Reason),
    /// It was sent from the offline queue, and is too old to be sent again.
    Held(Reason),
}

/// Why it will not be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SendRefusal {
    /// One word that programs compare, if there is one.
    pub(super) code: Option<String>,
    pub(super) detail: String,
    pub(super) scope: RefusalScope,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalScope {
    /// This message alone.
    Message,
    /// This message, whose key was used for another body.
    Key,
    /// Whatever is sent there: who asks, or the queue.
    All,
}

impl SendRefusal {
    pub(super) fn message(code: &str, detail: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), detail: detail.into(), scope: RefusalScope::Message }
    }

    fn render(&self) -> String {
        let code = self.code.iter().map(|code| format!("{code}: "));
        visible(&format!("{}{}", code.collect::<String>(), self.detail))
    }
}

impl SendOutcome {
    /// The word for it.
    const fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::New { .. } => "new",
            Self::Same { .. } => "same",
            Self::Refused(_) => "refused",
            Self::Unknown { effect: Effect::NotDone, .. } => "unsent",
            Self::Unknown { .. } => "unknown",
            Self::Failed(_) => "failed",
            Self::Held(_) => "held",
        }
    }

    /// A line for people; `whose` is which message, with a blank before it.
    pub(super) fn render(&self, label: &str) -> String {
        let word = self.word();
        match self {
            Self::Queued => format!("{word}{label}"),
            Self::New { id } | Self::Same { id } => format!("{word} {}{label}", visible(id)),
            Self::Refused(refused) => format!("{word}{label}: {}", refused.render()),
            Self::Unknown { detail, .. } => format!("{word}{label}: {}", visible(detail)),
            Self::Failed(Reason { code, text }) | Self::Held(Reason { code, text }) => {
                format!("{word}{label}: {}", visible(&format!("{code}: {text}")))
            }
        }
    }

    /// The same for programs: of which line, and as which entry of the offline queue, where it is of one.
    pub(super) fn to_json(&self, number: Option<u64>, entry: Option<EntryId>) -> String {
        let (id, code, detail) = match self {
            Self::Queued => (None, None, None),
            Self::New { id } | Self::Same { id } => (Some(id), None, None),
            Self::Refused(SendRefusal { code, detail, .. }) => (None, Some(json!(code)), Some(detail)),
            Self::Unknown { detail, .. } => (None, None, Some(detail)),
            Self::Failed(Reason { code, text }) | Self::Held(Reason { code, text }) => {
                (None, Some(json!(code)), Some(text))
            }
        };
        let members = [
            ("result", Some(self.word().into())),
            ("line", number.map(Value::from)),
            ("entry", entry.map(|entry| entry.get().into())),
            ("id", id.map(|id| id.as_str().into())),
            ("code", code),
            ("detail", detail.map(|detail| detail.as_str().into())),
        ];
        let object: Value = members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        object.to_string()
    }

    /// What came of a further line that asked for the same.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::New { id } => Self::Same { id: id.clone() },
            outcome => outcome.clone(),
        }
    }

    /// What it is about, where it is a refusal.
    pub(super) const fn refusal_scope(&self) -> Option<RefusalScope> {
        if let Self::Refused(refused) = self { Some(refused.scope) } else { None }
    }

    /// How the command ends for the one message it was about.
    pub(super) fn into_result(self) -> Result<(), Exit> {
        match self {
            Self::Queued | Self::New { .. } | Self::Same { .. } => Ok(()),
            Self::Failed(_) | Self::Held(_) => Err(Exit::Failed(self.render(""))),
            Self::Refused(refused) => {
                let why = format!("refused: {}", refused.render());
                Err(if refused.scope == RefusalScope::Key { Exit::Conflict(why) } else { Exit::Failed(why) })
            }
            Self::Unknown { effect, detail } => {
                let known = match effect {
                    Effect::NotDone => "it was not put in",
                    Effect::Done | Effect::Unknown => "nobody knows whether it was put in",
                };
                Err(Exit::Unreachable(format!(
                    "{}; {known}; sending it again with the same key is safe",
                    visible(&detail)
                )))
            }
        }
    }
}

/// What came of how many.
#[derive(Default)]
pub(super) struct SendCounts {
    /// `None` where there is no offline queue.
    queued: Option<u64>,
    new: u64,
    same: u64,
    refused: u64,
    pub(super) unknown: u64,
    failed: u64,
    held: u64,
    /// How many of the last ones were left without an answer that says why.
    lost_in_a_row: u32,
}

impl SendCounts {
    /// Of messages that go into the offline queue first.
    pub(super) fn offline() -> Self {
        Self { queued: Some(0), ..Self::default() }
    }

    pub(super) fn add(&mut self, outcome: &SendOutcome) {
        let count = match outcome {
            SendOutcome::Queued => return self.queued = self.queued.map(|queued| queued + 1),
            SendOutcome::New { .. } => &mut self.new,
            SendOutcome::Same { .. } => &mut self.same,
            SendOutcome::Refused(_) => &mut self.refused,
            SendOutcome::Unknown { .. } => &mut self.unknown,
            SendOutcome::Failed(_) => &mut self.failed,
            SendOutcome::Held(_) => &mut self.held,
        };
        *count += 1;
        let is_lost = matches!(outcome, SendOutcome::Unknown { .. } | SendOutcome::Failed(_));
        self.lost_in_a_row = if is_lost { self.lost_in_a_row + 1 } else { 0 };
    }

    /// Whether so many in a row were lost that it is the server's fault.
    pub(super) const fn is_lost_in_a_row(&self) -> bool {
        LOST_IN_A_ROW_MAX <= self.lost_in_a_row
    }

    /// Whether every message that was spoken of stands, or waits.
    pub(super) const fn is_well(&self) -> bool {
        self.refused + self.unknown + self.failed + self.held == 0
    }
}

/// `3 new, 1 same, 0 refused`
impl fmt::Display for SendCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(queued) = self.queued {
            write!(f, "{queued} queued, ")?;
        }
        write!(f, "{} new, {} same, {} refused", self.new, self.same, self.refused)?;
        let rare = [(self.unknown, "without an outcome"), (self.failed, "failed"), (self.held, "held")];
        rare.iter()
            .filter(|(count, _)| 0 < *count)
            .try_for_each(|(count, word)| write!(f, ", {count} {word}"))
    }
}
