//! Reactions: what happens to a request that cannot simply pass.

use ichido_core::json::Kind;

use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema, members};

members! {
    /// A reaction: an object with `action`, `status` and `error_code`, or only the action or the status.
    ///
    /// A word that names its status (`return_202`) has that status.
    Reaction {
        /// The action, such as `reject` or `replay`.
        action: Option<String>,
        /// The status of the response.
        status: Option<u16>,
        /// The error code in the response body.
        error_code: Option<String>,
    }
}

/// Words for refusing a request.
///
/// An action that begins with one is a refusal, if the rest of it says nothing else.
const REFUSING: [&str; 6] = ["reject", "refuse", "deny", "error", "fail", "conflict"];

/// What may follow in the words for a refusal. `fail_open` and `reject_or_execute` are not refusals.
const OF_A_REFUSAL: [&str; 21] = [
    "bad",
    "body",
    "client",
    "closed",
    "code",
    "conflict",
    "duplicate",
    "entity",
    "error",
    "fast",
    "http",
    "key",
    "large",
    "missing",
    "payload",
    "request",
    "response",
    "status",
    "too",
    "unprocessable",
    "with",
];

/// Words for replaying the stored response, of which one must be present.
const REPLAYING: [&str; 6] = ["replay", "stored", "cached", "original", "saved", "recorded"];

/// What else may appear in the words for a replay. `replay_or_execute` is not one.
const OF_A_REPLAY: [&str; 17] = [
    "and",
    "answer",
    "body",
    "exact",
    "first",
    "headers",
    "http",
    "identical",
    "outcome",
    "respond",
    "response",
    "result",
    "return",
    "same",
    "status",
    "verbatim",
    "with",
];

/// Words for "the first request is still in flight".
///
/// One must be present, unless it is a refusal.
const RUNNING: [&str; 8] =
    ["accepted", "flight", "inflight", "pending", "processing", "progress", "running", "unfinished"];

/// What else may appear in those words. `execute` is not one.
const OF_RUNNING: [&str; 14] = [
    "after", "answer", "error", "http", "in", "key", "later", "request", "respond", "response", "retry",
    "return", "status", "with",
];

impl Reaction {
    /// Returns whether the action is a refusal.
    ///
    /// It is if it has a word such as `reject` or `reject_request` or, without a word, a status from 400 on.
    pub fn refuses(&self) -> bool {
        match &self.action {
            Some(action) => {
                let words = words(action);
                let begins = words.first().is_some_and(|word| REFUSING.contains(&word.as_str()));
                begins && words[1..].iter().all(|word| is_one_of(word, &[&OF_A_REFUSAL]))
            }
            None => self.status.is_some_and(|status| 400 <= status),
        }
    }

    /// Returns whether the action replays the stored response: `replay`, `replay_stored_response`,
    /// `return_stored_response`.
    pub fn replays(&self) -> bool {
        self.action.as_deref().is_some_and(|action| {
            let words = words(action);
            words.iter().any(|word| REPLAYING.contains(&word.as_str()))
                && words.iter().all(|word| is_one_of(word, &[&REPLAYING, &OF_A_REPLAY]))
        })
    }

    /// Returns whether the action reports that the first request is still in flight.
    ///
    /// Such words are `processing`, `return_202_processing` and `reject`; without a word, any status does.
    pub fn reports_in_flight(&self) -> bool {
        self.action.as_deref().is_none_or(|action| {
            let words = words(action);
            let tells = |word: &String| RUNNING.contains(&word.as_str()) || status_in(word).is_some();
            let is_told = words.iter().any(tells)
                && words.iter().all(|word| is_one_of(word, &[&RUNNING, &OF_RUNNING, &REFUSING]));
            is_told || self.refuses()
        })
    }

    /// Returns the status that the action's words name, if it differs from the one next to them.
    pub fn conflicting_status(&self) -> Option<u16> {
        status_in(self.action.as_deref()?).filter(|named| self.status != Some(*named))
    }
}

fn words(action: &str) -> Vec<String> {
    let words = action.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

fn is_one_of(word: &str, lists: &[&[&str]]) -> bool {
    lists.iter().any(|list| list.contains(&word)) || status_in(word).is_some()
}

/// Returns the status that a word names: three digits from 100 to 599 that stand alone.
fn status_in(word: &str) -> Option<u16> {
    let numbers = word.split(|character: char| !character.is_ascii_digit());
    numbers
        .filter(|digits| digits.len() == 3)
        .find_map(|digits| digits.parse().ok().filter(|status| (100..600).contains(status)))
}

impl FromJson for Reaction {
    fn schema() -> Schema {
        Schema::AnyOf(vec![Schema::String, u16::schema(), Schema::Object(Self::members())])
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        match at.kind() {
            Kind::String => {
                let action = String::read(at, context)?;
                Ok(Self { status: status_in(&action), action: Some(action), error_code: None })
            }
            Kind::Number => Ok(Self { status: Some(u16::read(at, context)?), ..Self::default() }),
            Kind::Object => {
                at.object(Self::NAMES, context)?;
                let members = Self::read_members(at, context);
                Ok(Self {
                    status: members.status.or_else(|| status_in(members.action.as_deref()?)),
                    ..members
                })
            }
            Kind::Null | Kind::Bool | Kind::Array => {
                Err(at.mismatch("a string, a status, or an object with action and status"))
            }
        }
    }
}
