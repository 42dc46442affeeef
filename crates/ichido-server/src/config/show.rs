//! `ichido config show`: the effective value of each setting, and its origin.
//!
//! Guarantee: secrets are references, and are shown as such. The store's URL is hidden if it contains a password, and a
//! receiver's URL if it comes from a variable; every other URL is redacted (`redacted`).

use std::fmt::Write as _;

use ichido_core::settings::size;
use serde::Deserialize as _;
use serde_json::{Value, json};
use toml::de::{DeValue, ValueDeserializer};

use super::holds_password;
use super::kind::{FromSetting as _, Kind};
use super::setting::inline;

/// Replaces a text that may be secret.
pub(super) const HIDDEN: &str = "\"…\"";

/// A value as TOML, with its origin.
#[derive(Clone, Debug)]
pub(super) struct EffectiveValue {
    pub(super) value: String,
    /// `ichido.toml:3:9`, a variable, a flag, or `default`.
    pub(super) origin: String,
}

/// One setting, for display.
#[derive(Clone, Debug)]
pub struct DisplayedConfig {
    /// The table it is in, and its name there.
    pub(super) table: String,
    pub(super) name: String,
    /// `None` if it is not set.
    pub(super) effective: Option<EffectiveValue>,
}

/// A value that wins over the file and the environment, usually from a flag.
pub struct Override {
    /// The full name of the setting.
    pub(super) path: String,
    pub(super) effective: EffectiveValue,
}

impl Override {
    /// The store's URL, which may contain a password, with its origin.
    pub fn store(url: &str, by: &str) -> Self {
        let redacted = || format!("{:?}", crate::redacted::url(url));
        let value = if holds_password(url) { HIDDEN.to_owned() } else { redacted() };
        Self { path: "store.url".to_owned(), effective: EffectiveValue { value, origin: by.to_owned() } }
    }

    /// A setting of `[serve]` from the flag of that name.
    pub fn serve(name: &str, text: &str) -> Self {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_number { text.to_owned() } else { format!("{text:?}") };
        let origin = format!("the flag --{}", name.replace('_', "-"));
        Self { path: format!("serve.{name}"), effective: EffectiveValue { value, origin } }
    }
}

/// Whether a value may be secret.
///
/// That is a store URL with a password, or a URL or header field from a variable.
pub(super) fn is_hidden(path: &str, value: &DeValue<'_>, is_by_variable: bool) -> bool {
    let is_receiver =
        path.starts_with("destinations.") && matches!(path.rsplit('.').next(), Some("url" | "urls"));
    match value {
        DeValue::String(text) if path == "store.url" => holds_password(text),
        _ => is_by_variable && (path.contains(".headers") || is_receiver),
    }
}

/// Formats a value for display, with redacted URLs.
pub(super) fn redacted(kind: &Kind, value: &DeValue<'_>) -> String {
    match (kind, usize::read(value)) {
        (Kind::Size(..), Some(bytes)) => format!("{:?}", size::format(bytes as u64)),
        _ => to_toml(value, &crate::redacted::url),
    }
}

/// Formats a value as TOML in one line.
pub(super) fn to_toml(value: &DeValue<'_>, text: &dyn Fn(&str) -> String) -> String {
    match value {
        DeValue::String(string) => format!("{:?}", text(string)),
        DeValue::Integer(whole) => whole.to_string(),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| to_toml(item.get_ref(), text)).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(members) => inline(
            members.iter().map(|(key, value)| (key.get_ref().as_ref(), to_toml(value.get_ref(), text))),
        ),
    }
}

/// Formats settings as a TOML file, grouped by table.
pub fn text(shown: &[DisplayedConfig], with_origin: bool) -> String {
    let mut out = String::new();
    let mut tables: Vec<&str> = Vec::new();
    for DisplayedConfig { table, .. } in shown {
        if !tables.contains(&table.as_str()) {
            tables.push(table);
        }
    }
    for table in tables {
        // Writing to a string does not fail.
        _ = writeln!(out, "{}[{table}]", if out.is_empty() { "" } else { "\n" });
        for DisplayedConfig { name, effective, .. } in shown.iter().filter(|shown| shown.table == table) {
            _ = match effective {
                Some(EffectiveValue { value, origin }) if with_origin => {
                    writeln!(out, "{name} = {value}  # {origin}")
                }
                Some(EffectiveValue { value, .. }) => writeln!(out, "{name} = {value}"),
                None => writeln!(out, "# {name} is not set"),
            };
        }
    }
    out
}

/// Formats settings as JSON: each with its full name and origin.
pub fn json(shown: &[DisplayedConfig]) -> Value {
    let setting = |DisplayedConfig { table, name, effective }: &DisplayedConfig| {
        json!({
            "name": format!("{table}.{name}"),
            "value": effective.as_ref().and_then(|effective| to_json(&effective.value)),
            "origin": effective.as_ref().map(|effective| &effective.origin),
        })
    };
    json!({ "settings": shown.iter().map(setting).collect::<Vec<_>>() })
}

/// Converts a TOML value to JSON.
pub(super) fn to_json(toml: &str) -> Option<Value> {
    Value::deserialize(ValueDeserializer::parse(toml).ok()?).ok()
}
