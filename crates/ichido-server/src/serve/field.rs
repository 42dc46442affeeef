//! A field of a request: the value at a JSON pointer.

use ichido_core::json::{CanonicalForm, Document, JsonValue, Kind, Pointer};
use ichido_store::message::limits::MAX_REQUEST_BYTES;

use super::problem::{Code, Problem};
use crate::limits::MAX_FIELD_BYTES;

/// A field to search for.
pub(super) struct Field {
    pointer: Pointer,
    /// The value as given: a JSON value, or the text of a string.
    value: String,
}

impl Field {
    pub(super) fn read(pointer: &str, value: String) -> Result<Self, Problem> {
        let pointer = Pointer::parse(pointer).map_err(|error| {
            Problem::new(Code::ParameterInvalid, format!("field is not a JSON pointer: {error}"))
        })?;
        Ok(Self { pointer, value })
    }

    pub(super) fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    /// Whether a request is unambiguous JSON and has this field.
    pub(super) fn is_in(&self, request: &[u8]) -> bool {
        let Ok(document) = Document::parse(request, MAX_REQUEST_BYTES) else { return false };
        let Some(found) = document.at(&self.pointer) else { return false };
        if found.as_str().is_some_and(|text| text == self.value) {
            return true;
        }
        Document::parse(self.value.as_bytes(), MAX_FIELD_BYTES)
            .is_ok_and(|wanted| are_same(found, wanted.root()))
    }
}

/// Whether two values are equal, regardless of spelling.
///
/// The recursion is bounded by the depth of a document.
fn are_same(one: JsonValue<'_, '_>, other: JsonValue<'_, '_>) -> bool {
    match (one.kind(), other.kind()) {
        (Kind::Null, Kind::Null) => true,
        (Kind::Bool, Kind::Bool) => one.as_bool() == other.as_bool(),
        (Kind::String, Kind::String) => one.as_str() == other.as_str(),
        (Kind::Number, Kind::Number) => match (number(one), number(other)) {
            (Some(one), Some(other)) => one == other,
            // A number too long for its canonical form equals nothing.
            _ => false,
        },
        (Kind::Array, Kind::Array) => {
            one.elements().count() == other.elements().count()
                && one.elements().zip(other.elements()).all(|(one, other)| are_same(one, other))
        }
        (Kind::Object, Kind::Object) => {
            one.members().count() == other.members().count()
                && one
                    .members()
                    .all(|(name, value)| other.get(&name).is_some_and(|same| are_same(value, same)))
        }
        (Kind::Null | Kind::Bool | Kind::String | Kind::Number | Kind::Array | Kind::Object, _) => false,
    }
}

/// Returns the canonical form of a number.
fn number(value: JsonValue<'_, '_>) -> Option<Vec<u8>> {
    let text = value.as_number_text()?;
    let document = Document::parse(text.as_bytes(), MAX_REQUEST_BYTES).ok()?;
    document.canonical(&CanonicalForm::default()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(pointer: &str, value: &str, request: &str) -> bool {
        Field::read(pointer, value.to_owned()).expect("a pointer").is_in(request.as_bytes())
    }

    #[test]
    fn a_field_is_found_by_its_value_whatever_its_spelling() {
        let request =
            r#"{"symbol":"ACME","qty":10.0,"no":"10","legs":[{"b":null,"a":true},{}],"n/a":"\"x\""}"#;
        for (pointer, value) in [
            ("/symbol", "ACME"),
            ("/symbol", r#""\u0041CME""#),
            ("/qty", "10"),
            ("/qty", "1e1"),
            ("/no", "10"),
            ("/no", r#""10""#),
            ("/legs/0/a", "true"),
            ("/legs/0/b", "null"),
            ("/legs/0", r#"{"a":true, "b":null}"#),
            ("/legs", r#"[{"a":true,"b":null},{}]"#),
            ("/n~1a", r#""x""#),
        ] {
            assert!(is_in(pointer, value, request), "{pointer} {value}");
        }
        for (pointer, value) in [
            ("/symbol", "acme"),
            ("/qty", r#""10""#),
            ("/qty", "11"),
            ("/legs/2", "{}"),
            ("/legs/0", r#"{"a":true}"#),
            ("/legs", "[]"),
            ("/nothing", "null"),
        ] {
            assert!(!is_in(pointer, value, request), "{pointer} {value}");
        }
    }

    #[test]
    fn invalid_json_has_no_fields() {
        for request in ["", "ACME", r#"{"a":1,"a":1}"#, "\u{feff}{\"a\":1}"] {
            assert!(!is_in("/a", "1", request), "{request}");
        }
        assert!(Field::read("a", String::new()).is_err());
    }
}
