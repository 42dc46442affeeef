//! JSON Schemas of queues (draft 2020-12), which new messages must match.
//!
//! Guarantee: a schema is complete in its one file, and validation reads nothing else. The cost is bounded by the message:
//! patterns match in time linear in the text. A violation names its location and what the schema requires there, never a value of
//! the message.
//!
//! `format` and the `content…` keywords are annotations, as in the draft, and refuse nothing. Numbers are compared as 64-bit
//! integers or as doubles.

mod references;
#[cfg(test)]
mod tests;

use std::fmt;

use ichido_core::json::{Document, LineColumn};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// Maximum size of a schema. Its maximum depth is [`ichido_core::json::MAX_DEPTH`].
pub(crate) const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// Maximum violations that are reported for one message.
pub(crate) const MAX_VIOLATIONS: usize = 20;
/// Maximum body whose violations are all reported. For a longer one only the first is: the validator would find all of them, and
/// there may be as many as the body has values.
pub(crate) const MAX_ALL_VIOLATIONS_BYTES: usize = 64 << 10;
/// Maximum characters of a violation's location and description, which contain names that the sender chose.
const MAX_VIOLATION_CHARS: usize = 200;
/// Maximum memory of one compiled pattern, and of its cache while it matches.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The draft's name in `$schema`.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A schema that validates messages.
pub(crate) struct Schema(Validator);

/// Why a text is not a valid schema for a queue.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("is larger than {MAX_SCHEMA_BYTES} bytes, the maximum for a schema")]
    TooLarge,
    #[error("is not valid JSON: {what} in line {}, column {}", .at.line, .at.column)]
    Json { what: String, at: LineColumn },
    #[error("at {place}: {what}")]
    Wrong { place: String, what: String },
}

/// The violations of a message, up to the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaViolations {
    pub(crate) violations: Vec<SchemaViolation>,
    /// Whether there are, or may be, more.
    pub(crate) more: bool,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaViolation {
    /// Its location as a JSON Pointer; empty for the whole body.
    pub(crate) pointer: String,
    pub(crate) what: String,
}

impl Schema {
    /// Parses a schema, or returns what is wrong and where.
    pub(crate) fn parse(text: &str) -> Result<Self, SchemaError> {
        if MAX_SCHEMA_BYTES < text.len() {
            return Err(SchemaError::TooLarge);
        }
        // The strict reader refuses ambiguous JSON and anything deeper than its limit.
        let strict = Document::parse(text.as_bytes(), MAX_SCHEMA_BYTES);
        strict.map_err(|error| SchemaError::Json {
            what: error.fault.to_string(),
            at: LineColumn::new(text.as_bytes(), error.position),
        })?;
        let schema: Value = serde_json::from_str(text).map_err(|error| SchemaError::Json {
            what: "a number exceeds the range of a double".to_owned(),
            at: LineColumn { line: error.line(), column: error.column() },
        })?;
        if !schema.is_object() {
            return Err(invalid("", "is not an object; write one, such as {\"type\": \"object\"}"));
        }
        if schema
            .get("$schema")
            .is_some_and(|draft| draft.as_str().is_none_or(|draft| draft.trim_end_matches('#') != DRAFT))
        {
            return Err(invalid(
                "/$schema",
                &format!("is not \"{DRAFT}\"; convert the schema to that draft, or remove $schema"),
            ));
        }
        references::check(&schema)?;
        let patterns =
            PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let built = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .build(&schema);
        built.map(Self).map_err(|error| invalid(error.instance_path().as_str(), &error.to_string()))
    }

    /// Validates a body that the strict reader accepted as JSON.
    pub(crate) fn check(&self, body: &[u8]) -> Result<(), SchemaViolations> {
        let one = |what: &str| SchemaViolations {
            violations: vec![SchemaViolation { pointer: String::new(), what: what.to_owned() }],
            more: false,
        };
        if body.is_empty() {
            return Err(one("the body is empty"));
        }
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| one("a number exceeds the range of a double and cannot be validated"))?;
        if self.0.is_valid(&value) {
            return Ok(());
        }
        let mut errors = if body.len() <= MAX_ALL_VIOLATIONS_BYTES {
            self.0.iter_errors(&value).take(MAX_VIOLATIONS + 1).map(|error| violation(&error)).collect()
        } else {
            self.0.validate(&value).err().map(|error| violation(&error)).into_iter().collect::<Vec<_>>()
        };
        let more = MAX_VIOLATIONS < errors.len() || MAX_ALL_VIOLATIONS_BYTES < body.len();
        errors.truncate(MAX_VIOLATIONS);
        Err(SchemaViolations { violations: errors, more })
    }
}

/// Leaves out the schema, which may be long.
impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// `at /qty: … ; at /side: …`
impl fmt::Display for SchemaViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, SchemaViolation { pointer, what }) in self.violations.iter().enumerate() {
            let between = if index == 0 { "" } else { "; " };
            let place = if pointer.is_empty() { "the root" } else { pointer };
            write!(f, "{between}at {place}: {what}")?;
        }
        if self.more { f.write_str("; there may be more") } else { Ok(()) }
    }
}

fn violation(error: &ValidationError<'_>) -> SchemaViolation {
    SchemaViolation {
        pointer: truncate(error.instance_path().as_str()),
        what: truncate(&error.masked_with("the value").to_string()),
    }
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_VIOLATION_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn invalid(place: &str, what: &str) -> SchemaError {
    let place = if place.is_empty() { "the root".to_owned() } else { truncate(place) };
    SchemaError::Wrong { place, what: truncate(what) }
}
