//! Reactions: what is done about a request that cannot simply pass.

use crate::boundary::member::{At, Field, Member, Misfit, Read, Reading, Shape};
use crate::json::Kind;

/// What is done: an object with `action`, `status` and `error_code`, or the action or the status alone.
///
/// A word that names its status (`return_202`) has that status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// What is done, in a word.
    pub action: Option<String>,
    /// The status that is answered.
    pub status: Option<u16>,
    /// The stable code in the answer's body.
    pub error_code: Option<String>,
}

/// Words for refusing a request.
const REFUSING: [&str; 6] = ["reject", "refuse", "deny", "error", "fail", "conflict"];

impl Reaction {
    /// Whether the action is a refusal: a word such as `reject` or `reject_request`, or, without a word, a status
    /// from 400 on.
    pub fn refuses(&self) -> bool {
        match &self.action {
            Some(action) => REFUSING.contains(&first_word(action)),
            None => self.status.is_some_and(|status| 400 <= status),
        }
    }

    /// Whether the action gives the stored answer again: `replay`, `replay_stored_response`, `return_stored_response`.
    pub fn replays(&self) -> bool {
        self.action.as_deref().is_some_and(|action| {
            let action = action.to_ascii_lowercase();
            let returns = matches!(first_word(&action), "return" | "respond");
            first_word(&action) == "replay"
                || (returns && ["stored", "cached", "original"].iter().any(|word| action.contains(word)))
        })
    }
}

fn first_word(action: &str) -> &str {
    action.split(['_', '-', ' ']).next().unwrap_or_default()
}

/// The status that a word names: three digits from 100 to 599 that stand alone.
fn status_in(word: &str) -> Option<u16> {
    let numbers = word.split(|character: char| !character.is_ascii_digit());
    numbers
        .filter(|digits| digits.len() == 3)
        .find_map(|digits| digits.parse().ok().filter(|status| (100..600).contains(status)))
}

impl Read for Reaction {
    fn shape() -> Shape {
        let object = Shape::Object(vec![
            Member {
                name: "action",
                doc: "What is done, in a word: `reject`, `replay`.",
                shape: String::shape(),
            },
            Member { name: "status", doc: "The status that is answered.", shape: u16::shape() },
            Member {
                name: "error_code",
                doc: "The stable code in the answer's body.",
                shape: String::shape(),
            },
        ]);
        Shape::Either(vec![Shape::Text, u16::shape(), object])
    }

    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit> {
        match at.kind() {
            Kind::String => {
                let action = String::read(at, reading)?;
                Ok(Self { status: status_in(&action), action: Some(action), error_code: None })
            }
            Kind::Number => Ok(Self { status: Some(u16::read(at, reading)?), ..Self::default() }),
            Kind::Object => {
                at.object(&["action", "status", "error_code"], reading)?;
                let action: Option<String> = Field::read_member(at, "action", reading)?;
                let status: Option<u16> = Field::read_member(at, "status", reading)?;
                let error_code = Field::read_member(at, "error_code", reading)?;
                Ok(Self { status: status.or_else(|| status_in(action.as_deref()?)), action, error_code })
            }
            Kind::Null | Kind::Bool | Kind::Array => {
                Err(at.misfit("a word, a status, or an object with action and status"))
            }
        }
    }
}
