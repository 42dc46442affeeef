//! Turns the file's words about a body into the rules of its digest.

use ichido_core::digest::BodyRules;
use ichido_core::json::{CanonicalForm, LeaveOut, Numbers, Pointer, PointerError, TooManyLeftOut, Unicode};

use super::BodyHash;

/// Why the file's words do not describe a form of the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyRulesError {
    /// An unknown word for how numbers, texts or bodies are compared.
    #[error("`{member}` is \"{word}\", expected one of: {}", known.join(", "))]
    UnknownWord {
        /// The member, relative to `body_hash`.
        member: &'static str,
        /// What it says.
        word: String,
        /// What it could say.
        known: &'static [&'static str],
    },
    /// An invalid pointer in `leave_out`.
    #[error("`input.leave_out` has \"{pointer}\": {error}")]
    BadPointer {
        /// The text.
        pointer: String,
        /// What is wrong with it.
        error: PointerError,
    },
    /// A pointer in `leave_out` that seems to mean everything: a step without a name, or a `*`.
    #[error("`input.leave_out` has \"{pointer}\": each segment must be a member name, and `*` is not one")]
    TooWide {
        /// The text.
        pointer: String,
    },
    /// More pointers in `leave_out` than a form accepts.
    #[error("`input.leave_out`: {0}")]
    TooManyLeftOut(TooManyLeftOut),
}

impl BodyRulesError {
    /// Returns the invalid member, relative to `body_hash`, with dots between the steps.
    pub fn member(&self) -> &'static str {
        match self {
            Self::UnknownWord { member, .. } => member,
            Self::BadPointer { .. } | Self::TooWide { .. } | Self::TooManyLeftOut(_) => "input.leave_out",
        }
    }
}

/// The words for the canonical forms of a body.
const ENCODINGS: &[&str] = &["canonical_json", "jcs", "rfc8785"];
/// The words for the order of members. There is only one order.
const MEMBER_ORDERS: &[&str] = &["sorted", "lexicographic", "lexicographical", "utf16_code_units"];
/// The words for what makes two numbers equal.
const NUMBERS: &[&str] = &["exact", "decimal", "exact_no_exponent", "double"];
/// The words for what makes two texts equal.
const UNICODE: &[&str] = &["as_written", "none", "nfc"];

impl BodyHash {
    /// Returns the digest rules of a body, for [`ichido_core::digest`].
    ///
    /// The defaults are exact numbers and text as written.
    pub fn body_rules(&self) -> Result<BodyRules, BodyRulesError> {
        let rules = &self.input.encoding.rules;
        let encoding = word("input.encoding.type", self.input.encoding.r#type.as_ref(), ENCODINGS)?;
        let is_jcs = matches!(encoding, Some("jcs" | "rfc8785"));
        word("input.encoding.rules.object_member_order", rules.object_member_order.as_ref(), MEMBER_ORDERS)?;
        let numbers = word(
            "input.encoding.rules.number_representation",
            rules.number_representation.as_ref(),
            NUMBERS,
        )?;
        let numbers = match numbers {
            Some("double") => Numbers::Double,
            Some("exact_no_exponent") => Numbers::ExactNoExponent,
            None if is_jcs => Numbers::Double,
            _ => Numbers::Exact,
        };
        let unicode = word(
            "input.encoding.rules.unicode_normalization",
            rules.unicode_normalization.as_ref(),
            UNICODE,
        )?;
        let unicode = if unicode == Some("nfc") { Unicode::Nfc } else { Unicode::AsWritten };
        let max_bytes = self.max_body_bytes_to_hash.and_then(|bytes| usize::try_from(bytes).ok());
        Ok(BodyRules {
            form: CanonicalForm { numbers, unicode, leave_out: self.leave_out()? },
            max_bytes: max_bytes.unwrap_or(BodyRules::DEFAULT_MAX_BYTES),
        })
    }

    fn leave_out(&self) -> Result<LeaveOut, BodyRulesError> {
        let texts = self.input.leave_out.iter().flatten();
        let pointers = texts.map(|text| {
            let pointer = Pointer::parse(text)
                .map_err(|error| BodyRulesError::BadPointer { pointer: text.clone(), error })?;
            // JSON could have such members; an author who writes this means all of them, and would leave out nothing.
            let is_wide = text.split('/').skip(1).any(|step| step.is_empty() || step.contains('*'));
            if is_wide { Err(BodyRulesError::TooWide { pointer: text.clone() }) } else { Ok(pointer) }
        });
        LeaveOut::new(pointers.collect::<Result<_, _>>()?).map_err(BodyRulesError::TooManyLeftOut)
    }
}

/// Returns the known spelling of `found`, in any case.
///
/// Returns `None` if the file does not say.
fn word(
    member: &'static str,
    found: Option<&String>,
    known: &'static [&'static str],
) -> Result<Option<&'static str>, BodyRulesError> {
    let Some(found) = found else { return Ok(None) };
    match known.iter().find(|one| one.eq_ignore_ascii_case(found)) {
        Some(one) => Ok(Some(one)),
        None => Err(BodyRulesError::UnknownWord { member, word: found.clone(), known }),
    }
}
