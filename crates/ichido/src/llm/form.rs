//! The JSON that a model is to answer with, and reading it out of what it said (SPEC B1).

use std::fmt;

use serde_json::Value;

/// The JSON that a model is to answer with.
pub struct Form {
    name: String,
    schema: Value,
    check: jsonschema::Validator,
}

/// A schema that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the form {name:?} is no JSON Schema: {why}")]
pub struct FormError {
    name: String,
    why: String,
}

/// What was read out of a model's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// What fits the form.
    pub value: Value,
    /// Whether it had to be taken out of something: a fence of code, words around it.
    pub was_mended: bool,
}

/// Why a model's words are not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// There is no JSON in it.
    #[error("the answer is no JSON: {0}")]
    NoJson(String),
    /// There is, and it is not of the form.
    #[error("the answer is not of the form that was asked for: {0}")]
    OtherForm(String),
}

impl Form {
    /// A form by its JSON Schema. The name goes to the provider: letters, digits, `_` and `-`.
    pub fn new(name: impl Into<String>, schema: Value) -> Result<Self, FormError> {
        let name = name.into();
        match jsonschema::validator_for(&schema) {
            Ok(check) => Ok(Self { name, schema, check }),
            Err(error) => Err(FormError { name, why: error.to_string() }),
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

    /// Reads a model's words; neither error shows any of them.
    pub fn read(&self, text: &str) -> Result<Read, Unusable> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Unusable::NoJson(format!("line {} column {}", error.line(), error.column())))?;
        let misfit = self.check.iter_errors(&value).next().map(|error| error.instance_path().to_string());
        match misfit {
            None => Ok(Read { value, was_mended: false }),
            Some(place) => Err(Unusable::OtherForm(format!("at {place:?}"))),
        }
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("name", &self.name).finish_non_exhaustive()
    }
}
