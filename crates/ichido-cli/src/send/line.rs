//! Parses one line of NDJSON into a key, a body and a schedule.
//!
//! Guarantee: the body is a part of the line, byte for byte. Numbers, escapes and spaces stay as written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ichido_core::json::{Document, JsonError, JsonValue, Pointer};
use ichido_core::key::{IdempotencyKey, KeyError};
use ichido_http::clock;
use ichido_server::accept::MAX_REQUEST_BYTES;
use ichido_server::schedule::{MEMBERS, Schedule, ScheduleError};
use serde_json::value::RawValue;

/// The maximum line length: the largest request plus a key and some space.
pub(super) const MAX_LINE_BYTES: usize = MAX_REQUEST_BYTES + 4096;

/// The message that a line describes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineMessage {
    pub(super) key: IdempotencyKey,
    pub(super) body: Vec<u8>,
    /// Its own schedule; the flags apply where it has none.
    pub(super) schedule: Schedule,
}

/// Where the key of a line is.
#[derive(Clone, Debug)]
pub(super) enum KeyFrom {
    /// The line is `{"key": …, "body": …}`, with or without a schedule, and the member `body` is sent.
    Member,
    /// The whole line is sent, and its key is at this JSON pointer.
    Pointer(Pointer, String),
}

/// Why a line is invalid. No variant contains any of its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LineError {
    #[error("the line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("the line is not valid JSON: {0}")]
    Json(#[from] JsonError),
    #[error(
        "the line must be an object with \"key\" and \"body\", and optionally \"priority\", \"delay\" or \"run_at\"; if lines are bodies themselves, pass the key's location with --key-from"
    )]
    Shape,
    #[error("the key at {0} is missing, or neither a string nor a whole number")]
    NoKey(String),
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    Schedule(#[from] ScheduleError),
}

impl LineError {
    /// Returns the error code for programs.
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::TooLong => "body_too_large",
            Self::Json(_) | Self::Shape | Self::Schedule(_) => "line_invalid",
            Self::NoKey(_) => "key_missing",
            Self::Key(_) => "key_invalid",
        }
    }
}

/// Parses a line without its line break.
pub(super) fn parse(line: &[u8], key_from: &KeyFrom) -> Result<LineMessage, LineError> {
    let document = Document::parse(line, MAX_LINE_BYTES)?;
    match key_from {
        KeyFrom::Member => {
            // The strict parser has rejected ambiguous input; this one gives access to the bytes as written.
            let texts: BTreeMap<Cow<'_, str>, &RawValue> =
                serde_json::from_slice(line).map_err(|_| LineError::Shape)?;
            // An additional member is probably part of the body, or a typing error.
            let is_known = |name: &str| ["key", "body"].contains(&name) || MEMBERS.contains(&name);
            let (true, Some(key), Some(body)) =
                (texts.keys().all(|name| is_known(name)), document.root().get("key"), texts.get("body"))
            else {
                return Err(LineError::Shape);
            };
            let schedule = Schedule::from_line(document.root(), clock::now())?;
            let key = key_of(key).ok_or_else(|| LineError::NoKey("/key".to_owned()))?;
            let (key, body) = (IdempotencyKey::parse(&key)?, body.get().as_bytes().to_vec());
            Ok(LineMessage { key, body, schedule })
        }
        KeyFrom::Pointer(pointer, shown) => {
            let key = document.at(pointer).and_then(key_of).ok_or_else(|| LineError::NoKey(shown.clone()))?;
            let (key, body) = (IdempotencyKey::parse(&key)?, line.to_vec());
            Ok(LineMessage { key, body, schedule: Schedule::default() })
        }
    }
}

/// Accepts a string, or a whole number as written.
///
/// 7 and 7.0 are equal but would be two keys.
fn key_of(value: JsonValue<'_, '_>) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.into_owned());
    }
    let number = value.as_number_text()?;
    let is_whole = number != "-0" && number.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(line: &str) -> String {
        let item = parse(line.as_bytes(), &KeyFrom::Member).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(item.key.as_str(), "k1");
        String::from_utf8(item.body).unwrap()
    }

    #[test]
    fn line_body_is_kept_byte_for_byte() {
        for written in [
            "{}",
            "[]",
            "null",
            "true",
            "-0.50e+2",
            r#""a \" } \\""#,
            r#"{ "z" : 1.0,"a":[ "}]", {"b":"\\"} ] , "\u0061b": {}}"#,
            r#"[[["{"],"]"] ]"#,
            "{\"ö\":\"𝄞\"}",
        ] {
            assert_eq!(body(&format!(r#"{{"key":"k1","body":{written}}}"#)), written);
            assert_eq!(body(&format!(r#"{{ "body" :  {written} , "key" : "k1" }}"#)), written);
            assert_eq!(body(&format!("{{\"body\":\t{written}\t,\"key\":\"\\u006b1\"}} ")), written);
        }
    }

    #[test]
    fn line_can_be_the_body_and_contain_its_key() {
        let from = |pointer: &str| KeyFrom::Pointer(Pointer::parse(pointer).unwrap(), pointer.to_owned());
        let line = br#" {"order": {"id": "o-7", "number": 42, "odd": 7.0} } "#;
        for (pointer, key) in [("/order/id", "o-7"), ("/order/number", "42")] {
            let item = parse(line, &from(pointer)).unwrap();
            assert_eq!((item.key.as_str(), item.body.as_slice()), (key, line.as_slice()));
        }
        for pointer in ["/order/none", "/order", "/order/odd"] {
            assert_eq!(parse(line, &from(pointer)), Err(LineError::NoKey(pointer.to_owned())));
        }
    }

    #[test]
    fn invalid_line_is_refused() {
        let refused = |line: &str| parse(line.as_bytes(), &KeyFrom::Member).unwrap_err();
        for line in ["[]", "7", "{}", r#"{"key":"k"}"#, r#"{"body":1}"#, r#"{"key":"k","body":1,"bdy":2}"#] {
            assert_eq!(refused(line), LineError::Shape, "{line}");
        }
        for line in ["{", "k1 {}", r#"{"key":"k","body":1,"body":2}"#, r#"{"key":"k","body":NaN}"#] {
            assert_eq!(refused(line).code(), "line_invalid", "{line}");
        }
        assert_eq!(refused(r#"{"key":null,"body":1}"#), LineError::NoKey("/key".to_owned()));
        let late = refused(r#"{"key":"k","body":1,"delay":"soon"}"#);
        assert!(late.code() == "line_invalid" && late.to_string().starts_with("delay is not"), "{late}");
        assert_eq!(refused(r#"{"key":"a b","body":1}"#), LineError::Key(KeyError::NotVisible { index: 1 }));
    }
}
