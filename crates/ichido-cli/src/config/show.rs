//! `ichido config show`: the configuration as it holds, setting by setting, and where each was said.
//!
//! Secrets are references, and are shown as such; an address with a password is not shown.

use std::fmt::Write as _;

use toml::de::{DeTable, DeValue};

use super::environment::Environment;
use super::{DEFAULT_FILE, holds_password};

/// Settings that have no value of their own; what the commented file has there are examples.
const UNSET: [&str; 6] = ["url", "audit_key", "marks", "schema", "drain_within", "waiting_max"];
/// What a queue has from `[queue_defaults]` where it says nothing itself.
const FROM_DEFAULTS: [&str; 4] = ["parallelism", "batch_size", "retries_max", "lease"];
/// What stands in place of a text that may be secret.
const HIDDEN: &str = "\"…\"";

/// A setting that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Its whole name: `queues.orders.lease`.
    pub(super) path: String,
    /// What was said of it, and where; `None` where nothing was.
    pub(super) said: Option<Said>,
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
        let hides = match value {
            DeValue::String(text) if path == "store.url" => holds_password(text),
            // A header field that a variable sets may be anything.
            _ => by_variable && path.contains(".headers"),
        };
        let value = match value {
            DeValue::Table(_) => None,
            _ if hides => Some(HIDDEN.to_owned()),
            value => Some(written(value)),
        };
        Self { value, origin }
    }
}

/// A value as TOML has it, in one line.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
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

/// Everything that was asked for, a line each, under the tables that it stands in.
pub(super) fn text(
    asked: &[Asked],
    environment: &Environment,
    store: Option<&(String, &str)>,
    with_origin: bool,
) -> String {
    let defaults = uncommented();
    let defaults = DeTable::parse(&defaults).map(toml::Spanned::into_inner).unwrap_or_default();
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for Asked { path, .. } in asked {
        let Some((table, name)) = path.rsplit_once('.') else { continue };
        if told.contains(&path.as_str()) {
            continue;
        }
        told.push(path);
        let found = match store {
            Some((url, by)) if path == "store.url" => {
                let said = Said::new(path, &DeValue::String(url.as_str().into()), (*by).to_owned(), true);
                Some((said.value, said.origin))
            }
            _ => value(path, asked, environment, &defaults),
        };
        let line = match found {
            Some((None, _)) => continue,
            Some((Some(value), origin)) if with_origin => format!("{name} = {value}  # {origin}"),
            Some((Some(value), _)) => format!("{name} = {value}"),
            // Of destinations what was said is enough.
            None if path.starts_with("destinations.") => continue,
            None => format!("# {name} is not set"),
        };
        lines.push((table.to_owned(), line));
    }
    let mut out = String::new();
    let mut tables: Vec<&str> = Vec::new();
    for (table, _) in &lines {
        if !tables.contains(&table.as_str()) {
            tables.push(table);
        }
    }
    for table in tables {
        // A string takes all that is written to it.
        _ = writeln!(out, "{}[{table}]", if out.is_empty() { "" } else { "\n" });
        for (_, line) in lines.iter().filter(|(of, _)| of == table) {
            _ = writeln!(out, "{line}");
        }
    }
    out
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
    by_variable(path).or(own).or_else(|| {
        if UNSET.contains(&name) || path.starts_with("destinations.") {
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
