//! Reads requests strictly.
//!
//! Guarantee: a member that is unknown, missing or of another kind than the provider documents is a [`WireFault`] that
//! names its location. Nothing is guessed and nothing is skipped.

use std::ops::RangeInclusive;

use http::HeaderMap;
use serde_json::{Map, Value};

/// What the provider would not have understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireFault {
    pub(crate) wrong: Wrong,
    /// The member, with dots, or the header.
    pub(crate) at: String,
    pub(crate) why: String,
}

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The member is required.
    Missing,
    /// The member is unknown.
    Unknown,
    /// The value has the wrong type.
    Kind,
    /// The value is not allowed.
    Value,
    /// The body is not JSON, or is not declared as JSON.
    Body,
    /// The credentials are missing or malformed.
    Caller,
}

/// The result of reading a request.
pub(crate) type WireResult<T> = Result<T, WireFault>;

pub(crate) fn fault<T>(wrong: Wrong, at: impl Into<String>, why: impl Into<String>) -> WireResult<T> {
    Err(WireFault { wrong, at: at.into(), why: why.into() })
}

/// Parses the body of a request that is declared as JSON.
pub(crate) fn json(headers: &HeaderMap, body: &[u8]) -> WireResult<Value> {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return fault(Wrong::Body, "content-type", format!("`{kind}` is not application/json"));
    }
    serde_json::from_slice(body)
        .or_else(|error| fault(Wrong::Body, "body", format!("it is not JSON: {error}")))
}

/// Returns whether a part of a message is of a known kind other than text.
pub(crate) fn is_of_other_kind(part: &Value, kinds: &[&str]) -> bool {
    let kind = part.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind != "text" && kinds.contains(&kind))
}

/// Returns a required header.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> WireResult<&'a str> {
    match headers.get(name).map(|value| value.to_str()) {
        Some(Ok(value)) if !value.is_empty() => Ok(value),
        Some(_) => fault(Wrong::Value, name, "the header is empty or not a string"),
        None => fault(Wrong::Missing, name, "the header is missing"),
    }
}

/// An object of the request and its location.
pub(crate) struct Object<'a> {
    at: String,
    members: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// Reads an object that may have these members and no others.
    pub(crate) fn read(value: &'a Value, at: impl Into<String>, known: &[&str]) -> WireResult<Self> {
        let at = at.into();
        let Value::Object(members) = value else {
            return fault(Wrong::Kind, at, "it is not an object");
        };
        let object = Self { at, members };
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => fault(Wrong::Unknown, object.location(name), "it is unknown"),
            None => Ok(object),
        }
    }

    /// Returns the location of a member.
    pub(crate) fn location(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.members.keys().map(String::as_str)
    }

    /// Returns an optional member. `null` counts as missing.
    pub(crate) fn may(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// Returns a required member.
    pub(crate) fn must(&self, name: &str) -> WireResult<&'a Value> {
        self.may(name).map_or_else(|| fault(Wrong::Missing, self.location(name), "it is missing"), Ok)
    }

    pub(crate) fn text(&self, name: &str) -> WireResult<&'a str> {
        self.must(name)?;
        Ok(self.text_may(name)?.unwrap_or_default())
    }

    pub(crate) fn text_may(&self, name: &str) -> WireResult<Option<&'a str>> {
        self.kind(name, "a string", Value::as_str)
    }

    pub(crate) fn flag_may(&self, name: &str) -> WireResult<Option<bool>> {
        self.kind(name, "true or false", Value::as_bool)
    }

    /// Returns a text that is one of a few.
    pub(crate) fn choice(&self, name: &str, known: &[&str]) -> WireResult<&'a str> {
        let text = self.text(name)?;
        if known.contains(&text) {
            return Ok(text);
        }
        fault(Wrong::Value, self.location(name), format!("`{text}` is not one of {}", known.join(", ")))
    }

    pub(crate) fn choice_may(&self, name: &str, known: &[&str]) -> WireResult<Option<&'a str>> {
        self.may(name).map(|_| self.choice(name, known)).transpose()
    }

    pub(crate) fn number_may(&self, name: &str, range: RangeInclusive<f64>) -> WireResult<Option<f64>> {
        match self.kind(name, "a number", Value::as_f64)? {
            Some(number) if !range.contains(&number) => {
                let why = format!("{number} is not from {} to {}", range.start(), range.end());
                fault(Wrong::Value, self.location(name), why)
            }
            number => Ok(number),
        }
    }

    /// Returns a whole number of at least `least`.
    pub(crate) fn whole_may(&self, name: &str, least: u32) -> WireResult<Option<u32>> {
        match self.kind(name, "a whole number", |value| value.as_u64()?.try_into().ok())? {
            Some(number) if number < least => {
                fault(Wrong::Value, self.location(name), format!("{number} is less than {least}"))
            }
            number => Ok(number),
        }
    }

    pub(crate) fn list_may(&self, name: &str) -> WireResult<Option<&'a [Value]>> {
        self.kind(name, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// Returns a required list that is not empty.
    pub(crate) fn list(&self, name: &str) -> WireResult<&'a [Value]> {
        self.must(name)?;
        match self.list_may(name)? {
            Some(list) if !list.is_empty() => Ok(list),
            _ => fault(Wrong::Value, self.location(name), "the list is empty"),
        }
    }

    pub(crate) fn texts_may(&self, name: &str) -> WireResult<()> {
        match self.list_may(name)?.unwrap_or_default().iter().position(|value| !value.is_string()) {
            Some(index) => {
                fault(Wrong::Kind, self.location(&format!("{name}.{index}")), "it is not a string")
            }
            None => Ok(()),
        }
    }

    /// Returns a member that is an object of the caller's own making.
    pub(crate) fn any_object_may(&self, name: &str) -> WireResult<Option<&'a Value>> {
        self.kind(name, "an object", |value| value.is_object().then_some(value))
    }

    /// Returns the tool that `name` names.
    pub(crate) fn named_tool<T>(&self, tools: Vec<(String, T)>) -> WireResult<Option<(String, T)>> {
        let name = self.text("name")?;
        match tools.into_iter().find(|(tool, _)| tool == name) {
            Some(tool) => Ok(Some(tool)),
            None => fault(Wrong::Value, self.location("name"), format!("there is no tool `{name}`")),
        }
    }

    pub(crate) fn object_may(&self, name: &str, known: &[&str]) -> WireResult<Option<Object<'a>>> {
        self.may(name).map(|value| Object::read(value, self.location(name), known)).transpose()
    }

    pub(crate) fn object(&self, name: &str, known: &[&str]) -> WireResult<Object<'a>> {
        Object::read(self.must(name)?, self.location(name), known)
    }

    fn kind<T>(
        &self,
        name: &str,
        kind: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> WireResult<Option<T>> {
        let Some(value) = self.may(name) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => fault(Wrong::Kind, self.location(name), format!("it is not {kind}")),
        }
    }
}
