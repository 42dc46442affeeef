//! The JSON that a model is to answer with, and reading it out of what it said (SPEC B1).
//!
//! Guarantee: what is read fits the schema. The words are taken as they are; where they are no JSON, the usual damage is mended once: a
//! fence of code, words around the JSON, a mark at the beginning. Nothing is guessed: where two different values would do, none is taken.
//! No error shows any of the words (SPEC B8), and the work is bounded whatever they are.

mod provider_schema;
mod repair;

use serde_json::Value;

use super::{FinishReason, Reply};

/// The longest name of a form, as providers have it.
const NAME_BYTES_MAX: usize = 64;
/// The longest answer that is read at all.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The JSON that a model is to answer with.
pub struct Form {
    name: String,
    schema: Value,
    check: jsonschema::Validator,
}

/// A form that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the form {name:?} cannot be used: {why}")]
pub struct FormError {
    name: String,
    why: String,
}

/// What was read out of a model's words.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedAnswer {
    /// What fits the form.
    pub value: Value,
    /// Whether it had to be taken out of something: a fence of code, words around it.
    pub was_repaired: bool,
}

/// Why a model's words are not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It ran out of the tokens it was given, so that the end is missing.
    #[error("the answer is cut off: the model ran out of the tokens it was given; give it more")]
    CutOff,
    /// It, or a filter before it, would not answer.
    #[error("the model, or a filter before it, declined to answer")]
    Declined,
    /// There is no JSON in it.
    #[error("the answer is no JSON: {0}")]
    NoJson(String),
    /// There is, and it is not of the form.
    #[error("the answer is not of the form that was asked for: {0}")]
    OtherForm(String),
    /// More than one value in it is of the form, and they differ.
    #[error("the answer holds several different values of the form that was asked for")]
    Ambiguous,
}

impl Reply {
    /// The words, where they are all that the model had to say.
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

impl Form {
    /// A form by its JSON Schema. The name goes to the provider: 1 to 64 letters, digits, `_` and `-`.
    pub fn new(name: impl Into<String>, schema: Value) -> Result<Self, FormError> {
        let name = name.into();
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || NAME_BYTES_MAX < name.len() || !name.bytes().all(is_fine) {
            let why = format!("its name must be 1 to {NAME_BYTES_MAX} letters, digits, _ and -");
            return Err(FormError { name, why });
        }
        match jsonschema::validator_for(&schema) {
            Ok(check) => Ok(Self { name, schema, check }),
            Err(error) => Err(FormError { name, why: format!("it is no JSON Schema: {error}") }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its JSON Schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Reads what a model answered, if that is whole.
    pub fn read_reply(&self, reply: &Reply) -> Result<ParsedAnswer, Unusable> {
        self.read(reply.whole()?)
    }

    /// Reads a model's words; no error shows any of them.
    ///
    /// ```
    /// use ichido_llm::models::Form;
    /// use serde_json::json;
    ///
    /// let form = Form::new("label", json!({"type": "object", "required": ["label"]}))?;
    /// let read = form.read("Sure! Here you are:\n```json\n{\"label\": \"FYI\"}\n```").expect("it is in there");
    /// assert_eq!((read.value, read.was_repaired), (json!({"label": "FYI"}), true));
    /// # Ok::<(), ichido_llm::models::FormError>(())
    /// ```
    pub fn read(&self, text: &str) -> Result<ParsedAnswer, Unusable> {
        if TEXT_BYTES_MAX < text.len() {
            return Err(Unusable::NoJson(format!("it is longer than {TEXT_BYTES_MAX} bytes")));
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
                Err(Unusable::NoJson(format!("at line {} column {}", error.http_model(), error.column())))
            }
        }
    }

    fn check(&self, value: &Value) -> Result<(), Unusable> {
        // The place in the schema: that of the answer may hold words of the answer, the names of its members.
        let misfit = self.check.iter_errors(value).next().map(|error| error.schema_path().to_string());
        match misfit {
            None => Ok(()),
            Some(place) => Err(Unusable::OtherForm(format!("it fails {place:?} of the schema"))),
        }
    }
}

ichido_core::debug_only! {
    Form as form { name }
}

#[cfg(test)]
mod tests;
