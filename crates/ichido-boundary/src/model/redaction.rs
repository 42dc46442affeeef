//! What is kept out of logs, in whatever form a file says so.

use ichido_core::json::{JsonValue, Kind};

use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema};

/// What is kept out of logs, and what is shown.
///
/// Every text and name in the member is kept out, except what is declared to be shown.
///
/// Files write this in many forms; which of them a logger reads is not our decision, so only the names are collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction(
    /// What is kept out.
    pub Vec<String>,
    /// What is declared to be shown, by a list such as `never_redact` or a word such as `plain`.
    pub Vec<String>,
);

/// Names of members that list what is shown, with `_` for `-`.
const SHOWING: [&str; 16] = [
    "allow",
    "allowed",
    "allowlist",
    "do_not_redact",
    "dont_redact",
    "except",
    "exceptions",
    "exclude",
    "excluded",
    "never",
    "never_redact",
    "no_redact",
    "not_redacted",
    "show",
    "unredacted",
    "visible",
];

/// Words that allow the header of their member to be shown: `"authorization": "plain"`.
const SHOWN: [&str; 11] =
    ["allow", "clear", "full", "keep", "log", "none", "off", "pass", "plain", "raw", "show"];

/// Members that switch their object on or off.
const SWITCHES: [&str; 5] = ["enabled", "active", "redact", "redacted", "mode"];

/// Words for off.
const OFF: [&str; 4] = ["off", "disabled", "none", "never"];

impl Redaction {
    /// Returns whether it keeps the header or field out, in any case.
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().any(|one| one.eq_ignore_ascii_case(name)) && !self.shows(name)
    }

    /// Returns whether it says that the header or field is shown, in any case.
    pub fn shows(&self, name: &str) -> bool {
        self.1.iter().any(|one| one.eq_ignore_ascii_case(name))
    }

    /// Recurses no deeper than the JSON reader allows.
    fn gather(&mut self, value: JsonValue<'_, '_>, is_shown: bool) {
        if is_off(value) {
            return;
        }
        let names = if is_shown { &mut self.1 } else { &mut self.0 };
        names.extend(value.as_str().map(std::borrow::Cow::into_owned));
        for (name, member) in value.members() {
            let word = member.as_str();
            let is_let_out =
                member.as_bool() == Some(false) || word.is_some_and(|word| is_one_of(&SHOWN, &word));
            match () {
                () if is_one_of(&SWITCHES, &name) && is_single(member) => (),
                () if is_one_of(&SHOWING, &name) => self.gather(member, true),
                () if is_let_out => self.1.push(name.into_owned()),
                () => {
                    if is_shown { &mut self.1 } else { &mut self.0 }.push(name.into_owned());
                    self.gather(member, is_shown);
                }
            }
        }
        for element in value.elements() {
            self.gather(element, is_shown);
        }
    }
}

/// Returns whether one of its members switches an object off.
fn is_off(value: JsonValue<'_, '_>) -> bool {
    value.members().any(|(name, member)| {
        let is_no =
            member.as_bool() == Some(false) || member.as_str().is_some_and(|word| is_one_of(&OFF, &word));
        is_one_of(&SWITCHES, &name) && is_no
    })
}

fn is_single(value: JsonValue<'_, '_>) -> bool {
    !matches!(value.kind(), Kind::Array | Kind::Object)
}

fn is_one_of(list: &[&str], word: &str) -> bool {
    let word = word.replace('-', "_");
    list.iter().any(|one| one.eq_ignore_ascii_case(&word))
}

impl FromJson for Redaction {
    fn schema() -> Schema {
        Schema::Any
    }

    fn read(at: LocatedValue<'_>, _: &mut ReadContext) -> Result<Self, InvalidValue> {
        let mut found = Self::default();
        found.gather(at.value(), false);
        at.count(found.0.len() + found.1.len())?;
        Ok(found)
    }
}
