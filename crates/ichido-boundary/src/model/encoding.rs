//! The rules of canonical JSON, all of which must be honoured.

use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema, members};

members! {
    /// The rules of canonical JSON that are known.
    EncodingRuleMembers {
        /// The order of members: `sorted` (also `sort_keys`, `lexicographic`).
        object_member_order: Option<String>,
        /// How numbers are compared: `exact`, `exact_no_exponent` (exponents are refused; also `normalized_json_number`) or
        /// `double`.
        number_representation: Option<String>,
        /// How strings are compared: `as_written` or `nfc`.
        unicode_normalization: Option<String>,
        /// The order of elements, which always counts: `preserve`.
        array_order: Option<String>,
        /// The encoding of strings: `utf-8`.
        string_encoding: Option<String>,
        /// How characters are escaped in the canonical form: `minimal`.
        string_escaping: Option<String>,
        /// Whether strings lose the white space around them: false, because it counts.
        trim_strings: Option<bool>,
        /// The white space between values in the canonical form: `none`.
        whitespace: Option<String>,
    }
}

/// The rules of canonical JSON.
///
/// A rule that is not known could change which bodies are equal, so it is kept, and the file is refused.
// SPEC C3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodingRules {
    members: EncodingRuleMembers,
    /// The names of the rules that are not known.
    pub unknown: Vec<String>,
}

/// Gives access to the members as if they were part of this: `rules.array_order`.
impl std::ops::Deref for EncodingRules {
    type Target = EncodingRuleMembers;

    fn deref(&self) -> &EncodingRuleMembers {
        &self.members
    }
}

impl FromJson for EncodingRules {
    fn schema() -> Schema {
        Schema::Object(EncodingRuleMembers::members())
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        at.object(EncodingRuleMembers::NAMES, context)?;
        at.count(at.value().members().count())?;
        let members = EncodingRuleMembers::read_members(at, context);
        let names = at.value().members().map(|(name, _)| name.into_owned());
        let unknown = names.filter(|name| !EncodingRuleMembers::NAMES.contains(&name.as_str())).collect();
        Ok(Self { members, unknown })
    }
}
