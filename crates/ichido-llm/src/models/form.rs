//! The JSON that a model must answer with, and how it is read from a reply.
//!
//! Guarantee: a value that is read is valid for the schema. The text is parsed as it is; if it is not JSON, common
//! damage is repaired once: a code fence, text around the JSON, a byte order mark. Nothing is guessed: if two different
//! values fit, neither is used. No error shows any of the text, and the work is bounded for every input.
// SPEC B1, B8.

mod provider_schema;
mod repair;

use serde_json::Value;

use super::{FinishReason, Reply};

/// Maximum length of a form's name; the providers' limit.
const MAX_NAME_BYTES: usize = 64;
/// Maximum length of a reply that is read.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The JSON that a model must answer with.
pub struct AnswerForm {
    name: String,
    schema: Value,
    check: jsonschema::Validator,
}

/// Why a form is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the form {name:?} cannot be used: {why}")]
pub struct FormError {
    name: String,
    why: String,
}

/// A value read from a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedAnswer {
    /// The value, valid for the form.
    pub value: Value,
    /// Whether it had to be extracted from a code fence or surrounding text.
    pub was_repaired: bool,
}

/// Why a reply is not a usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The model ran out of its allowed tokens, so the end is missing.
    #[error("the answer was cut off: the model reached its token limit; raise it")]
    CutOff,
    /// The model, or a filter in front of it, refused to answer.
    #[error("the model, or a filter in front of it, declined to answer")]
    Declined,
    /// The reply contains no JSON.
    #[error("the answer is not JSON: {0}")]
    NoJson(String),
    /// The reply contains JSON, but not in the requested form.
    #[error("the answer does not have the requested form: {0}")]
    OtherForm(String),
    /// The reply contains several different values in the requested form.
    #[error("the answer contains several different values of the requested form")]
    Ambiguous,
}

impl Reply {
    /// Returns the text if the reply is complete.
    ///
    /// ```
    /// use ichido_llm::models::{FinishReason, Reply, Unusable};
    ///
    /// let reply = Reply { text: "It was a dark and".to_owned(), finish_reason: FinishReason::CutOff, id: None, usage: None };
    /// assert_eq!(reply.whole(), Err(Unusable::CutOff));
    /// ```
    pub fn whole(&self) -> Result<&str, Unusable> {
        match self.finish_reason {
            FinishReason::Whole => Ok(&self.text),
            FinishReason::CutOff => Err(Unusable::CutOff),
            FinishReason::Declined => Err(Unusable::Declined),
        }
    }
}

impl AnswerForm {
    /// Creates a form from its JSON Schema.
    ///
    /// The name is sent to the provider: 1 to 64 letters, digits, `_` and `-`.
    pub fn new(name: impl Into<String>, schema: Value) -> Result<Self, FormError> {
        let name = name.into();
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || MAX_NAME_BYTES < name.len() || !name.bytes().all(is_fine) {
            let why = format!("its name must be 1 to {MAX_NAME_BYTES} letters, digits, _ and -");
            return Err(FormError { name, why });
        }
        match jsonschema::validator_for(&schema) {
            Ok(check) => Ok(Self { name, schema, check }),
            Err(error) => Err(FormError { name, why: format!("it is not a JSON Schema: {error}") }),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the JSON Schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Reads a value from a reply, if it is complete.
    pub fn read_reply(&self, reply: &Reply) -> Result<ParsedAnswer, Unusable> {
        self.read(reply.whole()?)
    }

    /// Reads a value from a reply's text; no error shows any of it.
    ///
    /// ```
    /// use ichido_llm::models::AnswerForm;
    /// use serde_json::json;
    ///
    /// let form = AnswerForm::new("label", json!({"type": "object", "required": ["label"]}))?;
    /// let read = form.read("Sure! Here you are:\n```json\n{\"label\": \"FYI\"}\n```").expect("it is in there");
    /// assert_eq!((read.value, read.was_repaired), (json!({"label": "FYI"}), true));
    /// # Ok::<(), ichido_llm::models::FormError>(())
    /// ```
    pub fn read(&self, text: &str) -> Result<ParsedAnswer, Unusable> {
        if MAX_TEXT_BYTES < text.len() {
            return Err(Unusable::NoJson(format!("it is longer than {MAX_TEXT_BYTES} bytes")));
        }
        if text.trim().is_empty() {
            return Err(Unusable::NoJson("it is empty".to_owned()));
        }
        let error = match serde_json::from_str(text) {
            Ok(value) => return self.check(&value).map(|()| ParsedAnswer { value, was_repaired: false }),
            Err(error) => error,
        };
        let found = repair::values(text);
        let mut fitting = Vec::new();
        let mut misfit = None;
        for value in found {
            match self.check(&value) {
                Ok(()) if fitting.contains(&value) => (),
                Ok(()) => fitting.push(value),
                Err(other) => misfit = misfit.or(Some(other)),
            }
        }
        match (fitting.pop(), misfit) {
            (Some(_), _) if !fitting.is_empty() => Err(Unusable::Ambiguous),
            (Some(value), _) => Ok(ParsedAnswer { value, was_repaired: true }),
            (None, Some(misfit)) => Err(misfit),
            (None, None) => {
                Err(Unusable::NoJson(format!("at line {} column {}", error.line(), error.column())))
            }
        }
    }

    fn check(&self, value: &Value) -> Result<(), Unusable> {
        // The path in the schema: the path in the answer may hold member names, which are part of the answer.
        let misfit = self.check.iter_errors(value).next().map(|error| error.schema_path().to_string());
        match misfit {
            None => Ok(()),
            Some(path) => Err(Unusable::OtherForm(format!("it fails {path:?} of the schema"))),
        }
    }
}

ichido_core::debug_only! {
    AnswerForm as form { name }
}

#[cfg(test)]
mod tests;
