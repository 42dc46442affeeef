//! What came of a message, for people and for programs.

use ichido_core::text::visible;
use ichido_core::verdict::Effect;
use serde_json::{Map, Value, json};

use crate::exit::Exit;

/// What came of a message that was to be put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It stands, since now.
    New { id: String },
    /// It stood before, with the same meaning under the same key.
    Same { id: String },
    /// It will not be taken.
    Refused(Refused),
    /// It is not known to stand.
    Unknown {
        /// `NotDone` where it is known not to stand.
        effect: Effect,
        detail: String,
    },
}

/// Why it will not be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// One word that programs compare, if there is one.
    pub(super) code: Option<String>,
    pub(super) detail: String,
    pub(super) about: About,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// This message alone.
    Message,
    /// This message, whose key was used for another body.
    Key,
    /// Whatever is sent there: who asks, or the queue.
    All,
}

impl Refused {
    pub(super) fn message(code: &str, detail: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), detail: detail.into(), about: About::Message }
    }

    fn text(&self) -> String {
        let code = self.code.iter().map(|code| format!("{code}: "));
        visible(&format!("{}{}", code.collect::<String>(), self.detail))
    }
}

impl Came {
    /// A line for people; `number` is that of the line it was read from.
    pub(super) fn text(&self, number: Option<u64>) -> String {
        self.text_of(&number.map(|number| format!(" line {number}")).unwrap_or_default())
    }

    /// The same of what is called so, with a blank before it.
    pub(super) fn text_of(&self, whose: &str) -> String {
        match self {
            Self::New { id } => format!("new {}{whose}", visible(id)),
            Self::Same { id } => format!("same {}{whose}", visible(id)),
            Self::Refused(refused) => format!("refused{whose}: {}", refused.text()),
            Self::Unknown { effect, detail } => {
                format!("{}{whose}: {}", word(*effect), visible(detail))
            }
        }
    }

    /// The same for programs.
    pub(super) fn json(&self, number: Option<u64>) -> String {
        Value::Object(self.members(number)).to_string()
    }

    pub(super) fn members(&self, number: Option<u64>) -> Map<String, Value> {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        if let Some(number) = number {
            put("line", json!(number));
        }
        match self {
            Self::New { id } => {
                put("result", json!("new"));
                put("id", json!(id));
            }
            Self::Same { id } => {
                put("result", json!("same"));
                put("id", json!(id));
            }
            Self::Refused(Refused { code, detail, .. }) => {
                put("result", json!("refused"));
                put("code", json!(code));
                put("detail", json!(detail));
            }
            Self::Unknown { effect, detail } => {
                put("result", json!(word(*effect)));
                put("detail", json!(detail));
            }
        }
        members
    }

    /// How the command ends for the one message it was about.
    pub(super) fn end(self) -> Result<(), Exit> {
        match self {
            Self::New { .. } | Self::Same { .. } => Ok(()),
            Self::Refused(refused) => {
                let why = format!("refused: {}", refused.text());
                Err(if refused.about == About::Key { Exit::Conflict(why) } else { Exit::Failed(why) })
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

/// What is known of a message without an outcome.
const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::NotDone => "unsent",
        Effect::Done | Effect::Unknown => "unknown",
    }
}
