//! The starting set, and changes to it.

use ichido_boundary::{Boundary, Finding, ReadErrors, STARTING, check};
use serde_json::Value;

pub(crate) const BROWSER: &str = "browser_to_bff.json";
pub(crate) const BFF: &str = "bff_to_gateway.json";
pub(crate) const GATEWAY: &str = "gateway_to_adapter.json";
pub(crate) const ADAPTER: &str = "adapter.json";
/// The owner's guarantees, in [`GATEWAY`].
pub(crate) const ENABLED: &str = "/http/idempotency/enabled";

/// The starting set as values that a test can change, by file.
#[derive(Clone)]
pub(crate) struct Set(pub(crate) Vec<(String, Value)>);

impl Set {
    pub(crate) fn starting() -> Self {
        Self(STARTING.iter().map(|(file, text)| ((*file).to_owned(), value(text))).collect())
    }

    pub(crate) fn file(&mut self, file: &str) -> &mut Value {
        let found = self.0.iter_mut().find(|(name, _)| name == file);
        found.map_or_else(|| panic!("there is no {file}"), |(_, value)| value)
    }

    /// Writes `text` at the pointer, whether something was there or not; `null` for a whole file leaves it out.
    #[track_caller]
    pub(crate) fn with(mut self, file: &str, pointer: &str, text: &str) -> Self {
        if pointer.is_empty() && text.trim() == "null" {
            self.0.retain(|(name, _)| name != file);
            return self;
        }
        put(self.file(file), pointer, value(text));
        self
    }

    /// Removes the value at the pointer.
    #[track_caller]
    pub(crate) fn without(mut self, file: &str, pointer: &str) -> Self {
        take(self.file(file), pointer);
        self
    }

    pub(crate) fn read(&self) -> Result<Vec<Boundary>, ReadErrors> {
        let text = |value: &Value| serde_json::to_string_pretty(value).expect("a value has a text");
        self.0.iter().map(|(file, value)| Boundary::read(file, text(value).as_bytes())).collect()
    }

    /// The findings of the set; an unreadable file is a finding.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        match self.read() {
            Ok(files) => check(&files),
            Err(errors) => errors.into_iter().map(Finding::from).collect(),
        }
    }

    /// The ids of the broken rules, each once, in order.
    pub(crate) fn broken(&self) -> Vec<&'static str> {
        let mut ids: Vec<&str> = self.findings().iter().map(|finding| finding.rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Checks that a change to the starting set breaks these rules and no other.
#[track_caller]
pub(crate) fn finds(file: &str, pointer: &str, text: &str, rules: &[&str]) {
    let set = Set::starting().with(file, pointer, text);
    assert_eq!(set.broken(), rules, "{file}{pointer}: {text}\n{:#?}", set.findings());
}

#[track_caller]
pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// The parent of a pointer's target, and the target's name in it.
fn split(pointer: &str) -> (&str, String) {
    let (holder, name) = pointer.rsplit_once('/').expect("a pointer begins with a slash");
    (holder, name.replace("~1", "/").replace("~0", "~"))
}

#[track_caller]
fn put(file: &mut Value, pointer: &str, value: Value) {
    if pointer.is_empty() {
        *file = value;
        return;
    }
    let (holder, name) = split(pointer);
    match file.pointer_mut(holder) {
        Some(Value::Object(members)) => _ = members.insert(name, value),
        Some(Value::Array(elements)) => elements[name.parse::<usize>().expect("an index")] = value,
        _ => panic!("nothing at {holder}"),
    }
}

#[track_caller]
fn take(file: &mut Value, pointer: &str) {
    let (holder, name) = split(pointer);
    let taken = match file.pointer_mut(holder) {
        Some(Value::Object(members)) => members.remove(&name),
        Some(Value::Array(elements)) => Some(elements.remove(name.parse().expect("an index"))),
        _ => None,
    };
    assert!(taken.is_some(), "nothing at {pointer}");
}
