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
    /// A rule that nobody honours.
    #[error(
        "`input.encoding.rules` has \"{rule}\", which is not a known rule and could change which bodies are equal; remove it"
    )]
    UnknownRule {
        /// The name of the rule.
        rule: String,
    },
    /// Strings are to be trimmed.
    #[error(
        "`input.encoding.rules.trim_strings` is true, but white space in strings counts; set it to false"
    )]
    TrimmedStrings,
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
            Self::UnknownRule { .. } => "input.encoding.rules",
            Self::TrimmedStrings => "input.encoding.rules.trim_strings",
            Self::BadPointer { .. } | Self::TooWide { .. } | Self::TooManyLeftOut(_) => "input.leave_out",
        }
    }
}

/// The words for the canonical forms of a body.
const ENCODINGS: &[&str] = &["canonical_json", "jcs", "rfc8785"];
/// The words for the order of members. There is only one order.
const MEMBER_ORDERS: &[&str] =
    &["sorted", "sort_keys", "lexicographic", "lexicographical", "utf16_code_units"];
/// The words for what makes two numbers equal.
const NUMBERS: &[&str] = &["exact", "decimal", "exact_no_exponent", "normalized_json_number", "double"];
/// The words for the order of elements. JSON arrays are ordered, so there is only one.
const ARRAY_ORDERS: &[&str] = &["preserve", "preserve_order", "keep", "as_written", "significant"];
/// The words for the encoding of strings. JSON is UTF-8.
const STRING_ENCODINGS: &[&str] = &["utf-8", "utf8"];
/// The words for the white space between values, and for the escapes, of the canonical form.
const WHITESPACE: &[&str] = &["none"];
const ESCAPES: &[&str] = &["minimal"];
/// The words for what makes two texts equal.
const UNICODE: &[&str] = &["as_written", "none", "nfc"];

impl BodyHash {
    /// Returns the digest rules of a body, for [`ichido_core::digest`].
    ///
    /// The defaults are exact numbers and text as written.
    pub fn body_rules(&self) -> Result<BodyRules, BodyRulesError> {
        match self.body_rules_errors().into_iter().next() {
            Some(error) => Err(error),
            None => self.parse_body_rules(),
        }
    }

    /// Returns everything for which [`BodyHash::body_rules`] refuses the file.
    pub(crate) fn body_rules_errors(&self) -> Vec<BodyRulesError> {
        let rules = &self.input.encoding.rules;
        let words = [
            self.encoding().err(),
            word(
                "input.encoding.rules.object_member_order",
                rules.object_member_order.as_ref(),
                MEMBER_ORDERS,
            )
            .err(),
            self.numbers().err(),
            self.unicode().err(),
            word("input.encoding.rules.array_order", rules.array_order.as_ref(), ARRAY_ORDERS).err(),
            word("input.encoding.rules.string_encoding", rules.string_encoding.as_ref(), STRING_ENCODINGS)
                .err(),
            word("input.encoding.rules.string_escaping", rules.string_escaping.as_ref(), ESCAPES).err(),
            word("input.encoding.rules.whitespace", rules.whitespace.as_ref(), WHITESPACE).err(),
            (rules.trim_strings == Some(true)).then_some(BodyRulesError::TrimmedStrings),
            self.leave_out().err(),
        ];
        let unknown = rules.unknown.iter().map(|rule| BodyRulesError::UnknownRule { rule: rule.clone() });
        words.into_iter().flatten().chain(unknown).collect()
    }

    fn parse_body_rules(&self) -> Result<BodyRules, BodyRulesError> {
        let is_jcs = matches!(self.encoding()?, Some("jcs" | "rfc8785"));
        let numbers = match self.numbers()? {
            Some("double") => Numbers::Double,
            Some("exact_no_exponent" | "normalized_json_number") => Numbers::ExactNoExponent,
            None if is_jcs => Numbers::Double,
            _ => Numbers::Exact,
        };
        let unicode = if self.unicode()? == Some("nfc") { Unicode::Nfc } else { Unicode::AsWritten };
        let max_bytes = self.max_body_bytes_to_hash.and_then(|bytes| usize::try_from(bytes).ok());
        Ok(BodyRules {
            form: CanonicalForm { numbers, unicode, leave_out: self.leave_out()? },
            max_bytes: max_bytes.unwrap_or(BodyRules::DEFAULT_MAX_BYTES),
        })
    }

    fn encoding(&self) -> Result<Option<&'static str>, BodyRulesError> {
        word("input.encoding.type", self.input.encoding.r#type.as_ref(), ENCODINGS)
    }

    fn numbers(&self) -> Result<Option<&'static str>, BodyRulesError> {
        let numbers = self.input.encoding.rules.number_representation.as_ref();
        word("input.encoding.rules.number_representation", numbers, NUMBERS)
    }

    fn unicode(&self) -> Result<Option<&'static str>, BodyRulesError> {
        let unicode = self.input.encoding.rules.unicode_normalization.as_ref();
        word("input.encoding.rules.unicode_normalization", unicode, UNICODE)
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
