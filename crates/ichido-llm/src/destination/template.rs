//! A text with placeholders that a message fills.

use std::fmt::Write as _;

use ichido_core::json::{Document, JsonValue, Kind, Pointer};

use super::settings::{MAX_LOCATIONS, MAX_PROMPT_BYTES, MAX_TEMPLATE_BYTES};

/// A text with placeholders `{/pointer}`. All other braces are literal.
#[derive(Clone)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone)]
enum Part {
    Text(String),
    /// A pointer, and its source text.
    Placeholder(Pointer, String),
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TemplateError {
    #[error("has {found} bytes; at most {MAX_TEMPLATE_BYTES} are allowed")]
    TooLong { found: usize },
    #[error("is empty")]
    Empty,
    #[error("has a placeholder that starts with {{{0} and does not end; write the }} after it")]
    Open(String),
    #[error("its placeholder {{{0}}} is not a JSON pointer: {1}")]
    Pointer(String, String),
    #[error("has more than {MAX_LOCATIONS} placeholders")]
    TooMany,
}

/// Why a message cannot fill a template. It shows nothing of the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FillError {
    #[error("the message has nothing at {0}, which the prompt needs")]
    Lacks(String),
    #[error("the prompt would have more than {MAX_PROMPT_BYTES} bytes")]
    TooLong,
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        match text.len() {
            0 => return Err(TemplateError::Empty),
            found if MAX_TEMPLATE_BYTES < found => return Err(TemplateError::TooLong { found }),
            _ => (),
        }
        let (mut parts, mut rest, mut placeholders) = (Vec::new(), text, 0);
        while let Some((before, after)) = rest.split_once("{/") {
            let begun = || {
                format!(
                    "/{}",
                    after.chars().take_while(|letter| !letter.is_whitespace()).take(20).collect::<String>()
                )
            };
            let (inside, next) = after.split_once('}').ok_or_else(|| TemplateError::Open(begun()))?;
            let written = format!("/{inside}");
            let pointer = Pointer::parse(&written)
                .map_err(|error| TemplateError::Pointer(written.clone(), error.to_string()))?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Placeholder(pointer, written));
            placeholders += 1;
            if MAX_LOCATIONS < placeholders {
                return Err(TemplateError::TooMany);
            }
            rest = next;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts })
    }

    pub(super) fn has_placeholders(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Placeholder(..)))
    }

    pub(super) fn fill(&self, document: &Document<'_>) -> Result<String, FillError> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Placeholder(pointer, written) => {
                    // A null counts as missing.
                    let value = document.at(pointer).filter(|value| value.kind() != Kind::Null);
                    let value = value.ok_or_else(|| FillError::Lacks(written.clone()))?;
                    match value.as_str() {
                        Some(text) => filled.push_str(&text),
                        None => write(value, &mut filled),
                    }
                }
            }
            if MAX_PROMPT_BYTES < filled.len() {
                return Err(FillError::TooLong);
            }
        }
        Ok(filled)
    }
}

/// Writes a value as JSON, numbers as they are written. The document's depth is bounded, so this ends.
fn write(value: JsonValue<'_, '_>, into: &mut String) {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value.kind() {
        Kind::Null => into.push_str("null"),
        Kind::Bool => into.push_str(if value.as_bool() == Some(true) { "true" } else { "false" }),
        Kind::Number => into.push_str(value.as_number_text().unwrap_or_default()),
        Kind::String => into.push_str(&quoted(&value.as_str().unwrap_or_default())),
        Kind::Array => {
            into.push('[');
            for (index, element) in value.elements().enumerate() {
                into.push_str(if index == 0 { "" } else { "," });
                write(element, into);
            }
            into.push(']');
        }
        Kind::Object => {
            into.push('{');
            for (index, (name, member)) in value.members().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                // Writing to a `String` does not fail.
                _ = write!(into, "{comma}{}:", quoted(&name));
                write(member, into);
            }
            into.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str, message: &str) -> Result<String, FillError> {
        let document = Document::parse(message.as_bytes(), message.len()).expect("JSON");
        Template::parse(template).expect("a template").fill(&document)
    }

    #[test]
    fn placeholders_are_filled_from_message() {
        let message =
            r#"{"title":"A \"B\"","n":1.10,"tags":["x",{"y":[true,null]}],"a/b":{"c~":"d"},"no":false}"#;
        for (template, expected) in [
            ("On {/title}!", "On A \"B\"!"),
            ("{/n} {/no}", "1.10 false"),
            ("{/tags}", r#"["x",{"y":[true,null]}]"#),
            ("{/tags/1/y/0}{/a~1b/c~0}", "trued"),
            (r#"Say {"label": "{/title}"} {} {x}"#, r#"Say {"label": "A "B""} {} {x}"#),
        ] {
            assert_eq!(fill(template, message).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn missing_value_is_named_in_error() {
        for message in ["{}", r#"{"title":null}"#, "[]", "3"] {
            let error = fill("On {/title}", message).expect_err("nothing is there");
            assert_eq!(error.to_string(), "the message has nothing at /title, which the prompt needs");
        }
    }

    #[test]
    fn invalid_template_is_refused_with_location() {
        for (text, error) in [
            ("", "is empty"),
            (
                "On {/title",
                "has a placeholder that starts with {/title and does not end; write the } after it",
            ),
            ("On {/a~2}", "its placeholder {/a~2} is not a JSON pointer"),
        ] {
            let found = Template::parse(text).err().expect("no template").to_string();
            assert!(found.starts_with(error), "{found}");
        }
        assert_eq!(Template::parse(&"{/a}".repeat(MAX_LOCATIONS + 1)).err(), Some(TemplateError::TooMany));
        assert!(Template::parse(&"{/a}".repeat(MAX_LOCATIONS)).is_ok());
        let long = "x".repeat(MAX_TEMPLATE_BYTES + 1);
        assert!(matches!(Template::parse(&long), Err(TemplateError::TooLong { .. })));
        assert!(!Template::parse("none {} here").expect("a template").has_placeholders());
    }

    #[test]
    fn prompt_length_is_limited() {
        let message = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_PROMPT_BYTES / 4));
        assert_eq!(fill("{/a}{/a}{/a}{/a}{/a}", &message), Err(FillError::TooLong));
    }
}
