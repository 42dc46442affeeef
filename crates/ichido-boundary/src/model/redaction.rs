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
    /// What is recorded as a hash, by a list such as `hashed` or a word such as `sha256`.
    pub Vec<String>,
);

/// What happens to a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Removed,
    Shown,
    Hashed,
}

/// Names of members that list what is hashed, and words that say so of one name.
const HASHED: [&str; 6] = ["hash", "hashed", "hashes", "digest", "fingerprint", "sha256"];

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
    /// Returns whether it keeps the header or field out, in any case: removed or hashed.
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().chain(&self.2).any(|one| one.eq_ignore_ascii_case(name)) && !self.shows(name)
    }

    /// Returns whether nothing of the header or field is recorded, in any case.
    pub fn removes(&self, name: &str) -> bool {
        self.names(name) && !self.2.iter().any(|one| one.eq_ignore_ascii_case(name))
    }

    /// Returns whether it says that the header or field is shown, in any case.
    pub fn shows(&self, name: &str) -> bool {
        self.1.iter().any(|one| one.eq_ignore_ascii_case(name))
    }

    fn list(&mut self, treatment: Treatment) -> &mut Vec<String> {
        match treatment {
            Treatment::Removed => &mut self.0,
            Treatment::Shown => &mut self.1,
            Treatment::Hashed => &mut self.2,
        }
    }

    /// Recurses no deeper than the JSON reader allows.
    fn gather(&mut self, value: JsonValue<'_, '_>, outside: Treatment) {
        if is_off(value) {
            return;
        }
        let treatment = if is_hashing(value) { Treatment::Hashed } else { outside };
        self.list(treatment).extend(value.as_str().map(std::borrow::Cow::into_owned));
        for (name, member) in value.members() {
            let word = member.as_str();
            let is_word = |words: &[&str]| word.as_deref().is_some_and(|word| is_one_of(words, word));
            match () {
                () if is_one_of(&SWITCHES, &name) && is_single(member) => (),
                () if is_one_of(&SHOWING, &name) => self.gather(member, Treatment::Shown),
                () if is_one_of(&HASHED, &name) => self.gather(member, Treatment::Hashed),
                () if member.as_bool() == Some(false) || is_word(&SHOWN) => self.1.push(name.into_owned()),
                () if is_word(&HASHED) => self.2.push(name.into_owned()),
                () => {
                    self.list(treatment).push(name.into_owned());
                    self.gather(member, treatment);
                }
            }
        }
        for element in value.elements() {
            self.gather(element, treatment);
        }
    }
}

/// Returns whether one of its members says that its names are hashed: `"mode": "hash"`.
fn is_hashing(value: JsonValue<'_, '_>) -> bool {
    value.members().any(|(name, member)| {
        is_one_of(&SWITCHES, &name) && member.as_str().is_some_and(|word| is_one_of(&HASHED, &word))
    })
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
        found.gather(at.value(), Treatment::Removed);
        at.count(found.0.len() + found.1.len() + found.2.len())?;
        Ok(found)
    }
}
