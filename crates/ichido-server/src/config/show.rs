//! `ichido config show`: the configuration as it holds, setting by setting, and where each was said.
//!
//! Guarantee: secrets are references, and are shown as such. The store's address is not shown if it has a password, nor is the address of a
//! receiver that a variable says; of every other address what may be secret is hidden (`redacted`).

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::environment::Environment;
use super::{DEFAULT_FILE, holds_password};
use crate::redacted;

/// Settings that have no value of their own; what the commented file has there are examples.
const UNSET: [&str; 9] = [
    "url",
    "audit_key",
    "marks",
    "schema",
    "digest_without",
    "drain_within",
    "waiting_max",
    "endpoint",
    "peer_connections_max",
];
/// What a queue has from `[queue_defaults]` where it says nothing itself.
const FROM_DEFAULTS: [&str; 4] = ["parallelism", "batch_size", "retries_max", "lease"];
/// Of alerts for single queues, and of who is told, what was said is enough: the commented file has examples of them.
const AS_SAID: [&str; 2] = ["alerts.queues", "alerts.to"];
/// What stands in place of a text that may be secret.
const HIDDEN: &str = "\"…\"";

/// A setting that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Its whole name: `queues.orders.lease`.
    pub(super) path: String,
    /// What was said of it, and where; `None` where nothing was.
    pub(super) said: Option<Said>,
    /// What it is then, as TOML, where whoever read it told.
    pub(super) holds: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Said {
    /// As TOML; `None` for a table, whose members are asked for themselves.
    pub(super) value: Option<String>,
    /// `ichido.toml:3:9`, or a variable.
    pub(super) origin: String,
}

impl Said {
    pub(super) fn new(path: &str, value: &DeValue<'_>, origin: String, by_variable: bool) -> Self {
        let is_receiver =
            path.starts_with("destinations.") && matches!(path.rsplit('.').next(), Some("url" | "urls"));
        let hides = match value {
            DeValue::String(text) if path == "store.url" => holds_password(text),
            // A header field that a variable sets may be anything, and an address may have a secret in its path.
            _ => by_variable && (path.contains(".headers") || is_receiver),
        };
        let value = match value {
            DeValue::Table(_) => None,
            _ if hides => Some(HIDDEN.to_owned()),
            value => Some(written(value)),
        };
        Self { value, origin }
    }
}

/// What was said over the file and its variables: by a flag, mostly.
pub struct Over {
    /// The whole name of the setting.
    pub path: &'static str,
    /// As TOML.
    pub value: String,
    /// Who says it.
    pub by: &'static str,
}

impl Over {
    /// The store's address, which may hold a password.
    pub fn store(url: &str, by: &'static str) -> Self {
        let path = "store.url";
        let said = Said::new(path, &DeValue::String(url.into()), String::new(), true);
        Self { path, value: said.value.unwrap_or_default(), by }
    }
}

/// One setting as it is shown.
pub struct Shown {
    /// The table that it stands in, and its name there.
    table: String,
    name: String,
    /// As TOML, and who said it; `None` where it is not set.
    held: Option<(String, String)>,
}

/// A value as TOML has it, in one line, without what may be secret in addresses.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", redacted::url(text)),
        DeValue::Integer(whole) => whole.to_string(),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{} = {}", key.get_ref(), written(value.get_ref())));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Everything that was asked for, in the order in which it was.
pub(super) fn shown(asked: &[Asked], environment: &Environment, over: &[Over]) -> Vec<Shown> {
    let defaults = uncommented();
    let defaults = DeTable::parse(&defaults).map(toml::Spanned::into_inner).unwrap_or_default();
    let mut all: Vec<Shown> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for Asked { path, .. } in asked {
        let Some((table, name)) = path.rsplit_once('.') else { continue };
        // What stands in a list is shown with the list.
        if told.contains(&path.as_str()) || table.ends_with(']') {
            continue;
        }
        told.push(path);
        let held = match over.iter().find(|over| over.path == path) {
            Some(Over { value, by, .. }) => Some((value.clone(), (*by).to_owned())),
            None => match value(path, asked, environment, &defaults) {
                // A table's members are shown themselves.
                Some((None, _)) => continue,
                Some((Some(value), origin)) => Some((value, origin)),
                None if is_as_said(path) => continue,
                None => None,
            },
        };
        all.push(Shown { table: table.to_owned(), name: name.to_owned(), held });
    }
    all
}

fn is_as_said(path: &str) -> bool {
    let within =
        |table: &&str| path.strip_prefix(*table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    AS_SAID.iter().any(within)
}

/// As a file would have it, a line each under the tables that they stand in.
pub fn text(shown: &[Shown], with_origin: bool) -> String {
    let mut out = String::new();
    let mut tables: Vec<&str> = Vec::new();
    for Shown { table, .. } in shown {
        if !tables.contains(&table.as_str()) {
            tables.push(table);
        }
    }
    for table in tables {
        // A string takes all that is written to it.
        _ = writeln!(out, "{}[{table}]", if out.is_empty() { "" } else { "\n" });
        for Shown { name, held, .. } in shown.iter().filter(|shown| shown.table == table) {
            _ = match held {
                Some((value, origin)) if with_origin => writeln!(out, "{name} = {value}  # {origin}"),
                Some((value, _)) => writeln!(out, "{name} = {value}"),
                None => writeln!(out, "# {name} is not set"),
            };
        }
    }
    out
}

/// The same for programs: each setting by its whole name, with who said it.
pub fn json(shown: &[Shown]) -> Value {
    let setting = |Shown { table, name, held }: &Shown| {
        let value = held.as_ref().and_then(|(value, _)| DeValue::parse(value).ok());
        json!({
            "name": format!("{table}.{name}"),
            "value": value.map(|value| as_json(value.get_ref())),
            "origin": held.as_ref().map(|(_, origin)| origin),
        })
    };
    json!({ "settings": shown.iter().map(setting).collect::<Vec<_>>() })
}

fn as_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Integer(whole) => json!(i64::from_str_radix(whole.as_str(), whole.radix()).ok()),
        DeValue::Float(float) => json!(float.as_str().parse::<f64>().ok()),
        DeValue::Datetime(date) => json!(date.to_string()),
        DeValue::Array(items) => items.iter().map(|item| as_json(item.get_ref())).collect(),
        DeValue::Table(members) => {
            let members =
                members.iter().map(|(key, value)| (key.get_ref().to_string(), as_json(value.get_ref())));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// What holds, and who said so.
fn value(
    path: &str,
    asked: &[Asked],
    environment: &Environment,
    defaults: &DeTable<'_>,
) -> Option<(Option<String>, String)> {
    let said = |path: &str| asked.iter().find(|asked| asked.path == path)?.said.clone();
    let by_variable = |path: &str| {
        environment.said(path).map(|(value, name)| (Some(value), format!("the variable {name}")))
    };
    let own = said(path).map(|said| (said.value, said.origin));
    let (table, name) = path.rsplit_once('.')?;
    let is_queue = table.strip_prefix("queues.").is_some();
    if is_queue && FROM_DEFAULTS.contains(&name) {
        let common = format!("queue_defaults.{name}");
        return own.or_else(|| value(&common, asked, environment, defaults));
    }
    let holds = asked.iter().find_map(|asked| asked.holds.clone().filter(|_| asked.path == path));
    by_variable(path).or(own).or_else(|| {
        if let Some(holds) = holds {
            return Some((Some(holds), "default".to_owned()));
        }
        if UNSET.contains(&name) || path.starts_with("destinations.") || is_as_said(path) {
            return None;
        }
        let table = if is_queue { "queues.orders" } else { table };
        let mut found: Option<&DeValue<'_>> = None;
        for part in table.split('.').chain([name]) {
            let inside = match found {
                None => defaults.get(part),
                Some(value) => value.as_table()?.get(part),
            };
            found = Some(inside?.get_ref());
        }
        Some((found.map(written), "default".to_owned()))
    })
}

/// The commented file with every setting in it.
pub(super) fn uncommented() -> String {
    let line = |line: &'static str| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && (!rest.starts_with(' ') || rest.starts_with("  {")) => rest,
        _ => line,
    };
    DEFAULT_FILE.lines().map(line).collect::<Vec<_>>().join("\n")
}
