//! The outcome of sending a message, for people and as JSON.

use std::fmt;

use ichido_client::queue::{EntryId, Reason};
use ichido_core::text::visible;
use ichido_core::verdict::Effect;
use serde_json::{Value, json};

use crate::exit::Exit;

/// How many messages in a row may have no outcome.
///
/// A single one may be that message's fault; several in a row are the server's.
const MAX_LOST_IN_A_ROW: u32 = 3;

/// The outcome of sending a message.
#[derive(Clone, Debug)]
pub(super) enum SendOutcome {
    /// It is in the offline queue, on disk.
    Queued,
    /// It was enqueued now.
    New { id: String },
    /// It was enqueued before, with an equivalent body under the same key.
    Same { id: String },
    /// It was refused.
    Refused(SendRefusal),
    /// It is not known to be enqueued.
    Unknown {
        /// `NotDone` if it is known not to be enqueued.
        effect: Effect,
        detail: String,
    },
    /// Its attempts are used up, or the server refused it earlier.
    Failed(Reason),
    /// It was sent from the offline queue too long ago to retry.
    Held(Reason),
}

/// Why a message was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SendRefusal {
    /// The error code for programs, if there is one.
    pub(super) code: Option<String>,
    pub(super) detail: String,
    pub(super) scope: RefusalScope,
}

/// What a refusal applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalScope {
    /// This message only.
    Message,
    /// This message, because its key was used for another body.
    Key,
    /// Every message: the caller or the queue is refused.
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
    /// Returns the word for the outcome.
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

    /// Renders a line for people. `label` names the message, with a leading space.
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

    /// Renders the outcome as JSON.
    ///
    /// Includes the number of the line and the entry of the offline queue, if there are any.
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

    /// Returns the outcome for another line with the same action.
    pub(super) fn for_repeated_line(&self) -> Self {
        match self {
            Self::New { id } => Self::Same { id: id.clone() },
            outcome => outcome.clone(),
        }
    }

    /// Returns the scope, if this is a refusal.
    pub(super) const fn refusal_scope(&self) -> Option<RefusalScope> {
        if let Self::Refused(refused) = self { Some(refused.scope) } else { None }
    }

    /// Converts the outcome of a single message into the command's result.
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
                    Effect::NotDone => "it was not enqueued",
                    Effect::Done | Effect::Unknown => "it is unknown whether it was enqueued",
                };
                Err(Exit::Unreachable(format!(
                    "{}; {known}; sending it again with the same key is safe",
                    visible(&detail)
                )))
            }
        }
    }
}

/// How many messages had each outcome.
#[derive(Default)]
pub(super) struct SendCounts {
    /// `None` without an offline queue.
    queued: Option<u64>,
    new: u64,
    same: u64,
    refused: u64,
    pub(super) unknown: u64,
    failed: u64,
    held: u64,
    /// How many of the latest messages had no conclusive response.
    lost_in_a_row: u32,
}

impl SendCounts {
    /// Counts messages that go through the offline queue.
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

    /// Returns whether the failures in a row show a fault of the server.
    pub(super) const fn is_lost_in_a_row(&self) -> bool {
        MAX_LOST_IN_A_ROW <= self.lost_in_a_row
    }

    /// Returns whether every reported message is enqueued or waiting.
    pub(super) const fn is_success(&self) -> bool {
        self.refused + self.unknown + self.failed + self.held == 0
    }
}

/// Formats as `3 new, 1 same, 0 refused`.
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
