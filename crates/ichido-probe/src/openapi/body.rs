//! A body that a schema allows.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value, json};

use super::resolved;
use crate::target::MARKER;

/// The maximum nesting of a body that is built.
const MAX_DEPTH: usize = 32;
/// The largest body that is built.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// Why a body is not built.
const TOO_LARGE: &str = "the schema is recursive or too large; pass --body";
/// The length of what replaces the marker, such as `probe-01234567-p06`.
const MARKER_CHARS: u64 = 18;
/// The largest number of characters or elements that is built.
const MAX_BUILT: u64 = 1_000;

/// Returns a body as text, or says why there is none.
pub(super) fn built(document: &Value, body: &Value) -> Result<String, String> {
    let Some(kinds) = body["content"].as_object() else { return Ok(String::new()) };
    let json = kinds.iter().find(|(kind, _)| kind.starts_with("application/json") || kind.ends_with("+json"));
    let (_, media) = json.ok_or("its body is not JSON; probe it with a URL")?;
    let first = media["examples"].as_object().and_then(|all| all.values().next());
    let given = match (media.get("example"), first) {
        (None, Some(first)) => resolved(document, first)?.get("value"),
        (given, _) => given,
    };
    let builder = Builder { document, left: Cell::new(MAX_BODY_BYTES), open: RefCell::default() };
    let body = given.map_or_else(|| builder.sample(&media["schema"]), |given| builder.copied(given));
    // A member that was left out does not make more of it.
    if builder.left.get() == 0 { Err(TOO_LARGE.to_owned()) } else { Ok(body?.to_string()) }
}

/// Builds one body, within its limits.
struct Builder<'a> {
    document: &'a Value,
    /// How many bytes it may still have.
    left: Cell<usize>,
    /// The schemas that are being followed.
    open: RefCell<Vec<*const Value>>,
}

impl Builder<'_> {
    /// Takes this many bytes, or says that there are none left.
    fn take(&self, bytes: usize) -> Result<(), String> {
        self.left.set(self.left.get().saturating_sub(bytes));
        if self.left.get() == 0 { Err(TOO_LARGE.to_owned()) } else { Ok(()) }
    }

    /// Returns a value of the document.
    fn copied(&self, value: &Value) -> Result<Value, String> {
        self.take(1)?;
        self.take(value.to_string().len())?;
        Ok(value.clone())
    }

    /// Returns a value that a schema allows, as far as it can be told.
    fn sample(&self, schema: &Value) -> Result<Value, String> {
        let schema = resolved(self.document, schema)?;
        let is_open = self.open.borrow().iter().any(|open| std::ptr::eq(*open, schema));
        if is_open || MAX_DEPTH <= self.open.borrow().len() {
            return Err(TOO_LARGE.to_owned());
        }
        self.take(1)?;
        self.open.borrow_mut().push(schema);
        let value = self.of_schema(schema);
        self.open.borrow_mut().pop();
        value
    }

    fn of_schema(&self, schema: &Value) -> Result<Value, String> {
        let first = |name: &str| schema[name].as_array().and_then(|all| all.first());
        let given = schema.get("example").or_else(|| first("examples")).or_else(|| schema.get("default"));
        if let Some(value) = given.or_else(|| schema.get("const")).or_else(|| first("enum")) {
            return self.copied(value);
        }
        if let Some(all) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            let mut all = all.iter().map(|one| self.sample(one));
            let first = all.next().unwrap_or_else(|| Ok(json!({})));
            return first.or_else(|why| all.find_map(Result::ok).ok_or(why));
        }
        let kind = schema["type"].as_str().or_else(|| first("type").and_then(Value::as_str));
        match kind {
            Some("integer" | "number") => Ok(number(schema)),
            Some("boolean") => Ok(json!(true)),
            Some("array") => {
                let least = schema["minItems"].as_u64().unwrap_or(0);
                let count = least.clamp(1, MAX_BUILT);
                let all: Result<Value, String> = (0..count).map(|_| self.sample(&schema["items"])).collect();
                // Whatever cannot be built need not be in the list.
                if least == 0 { all.or(Ok(json!([]))) } else { all }
            }
            Some("string") => {
                let text = text(schema);
                self.take(text.len())?;
                Ok(json!(text))
            }
            _ => self.object(schema),
        }
    }

    /// Returns the members that are required, of the schema and of those that it combines; if none is, all that can be built of
    /// those that a caller may send.
    fn object(&self, schema: &Value) -> Result<Value, String> {
        let mut members = Map::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            if let Value::Object(more) = self.sample(part)? {
                members.extend(more);
            }
        }
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_free = required.is_empty() && members.is_empty();
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            let is_sent = is_required || is_free;
            // A reference that leads nowhere is found below.
            let is_read_only = resolved(self.document, inner).is_ok_and(|inner| inner["readOnly"] == true);
            if !is_sent || is_read_only {
                continue;
            }
            self.take(name.len())?;
            match self.sample(inner) {
                Ok(value) => _ = members.insert(name.clone(), value),
                Err(why) if is_required => return Err(why),
                Err(_) => (),
            }
        }
        Ok(Value::Object(members))
    }
}

fn number(schema: &Value) -> Value {
    let least = schema["minimum"].as_f64();
    let above = schema["exclusiveMinimum"].as_f64().map(|least| least.floor() + 1.0);
    let chosen = least.map(f64::ceil).or(above).unwrap_or(1.0);
    let chosen = schema["maximum"].as_f64().map_or(chosen, |most| chosen.min(most));
    // A count of money or goods that a double holds exactly.
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number that a schema names, or 1")]
    if chosen.fract() == 0.0 { json!(chosen as i64) } else { json!(chosen) }
}

/// Returns a text of the schema's format. A free text carries the marker, so that its effects can be counted.
fn text(schema: &Value) -> String {
    match schema["format"].as_str() {
        Some("uuid") => "01a1df2e-24dc-702a-8000-3798d20b2380".to_owned(),
        Some("date-time") => "2026-01-01T00:00:00Z".to_owned(),
        Some("date") => "2026-01-01".to_owned(),
        Some("email") => "probe@example.org".to_owned(),
        Some("uri" | "url") => format!("https://example.org/{MARKER}"),
        _ => {
            let least = schema["minLength"].as_u64().unwrap_or(0).min(MAX_BUILT);
            let most = schema["maxLength"].as_u64().unwrap_or(MAX_BUILT);
            let filled = |count: u64| "p".repeat(usize::try_from(count).unwrap_or_default());
            if most < MARKER_CHARS {
                return filled(most);
            }
            MARKER.to_owned() + &filled(least.saturating_sub(MARKER_CHARS))
        }
    }
}
