//! Environment variables named after settings: `ICHIDO__STORE__URL` is `url` in `[store]`, `ICHIDO__QUEUES__ORDERS__PARALLELISM`
//! is `parallelism` in `[queues.orders]`.
//!
//! Two underscores separate the parts of a name. Parts match names in the file regardless of case, and one underscore matches any
//! character that is not a letter or digit, so `MAIL_EU` matches `mail-eu` too. A part that matches nothing in the file is taken
//! in lower case. Queues and destinations are never added, because a typing error would then add a queue.
//!
//! A value is read as TOML if it is TOML (`8`, `true`, `["a", "b"]`), and otherwise as text (`5s`, `sqlite:ichido.db`).

use std::borrow::Cow;

use ichido_core::settings::ConfigErrors;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::did_you_mean;
use super::kind::Kind;
use super::setting::Variable;
use super::sources::ConfigSources;
use super::table::ROOT;
use crate::environment;

/// The prefix of the names.
pub(super) const PREFIX: &str = "ICHIDO__";
/// Separates the parts of a name.
const SEPARATOR: &str = "__";
/// The tables whose members have user-chosen names.
const USER_NAMED: [&str; 2] = ["queues", "destinations"];

/// Returns the variables that are named after settings, sorted by name.
pub(super) fn named_variables() -> Vec<(String, String)> {
    environment::variables_with(PREFIX)
}

/// A setting from the environment.
pub(super) struct Override {
    /// The variable, and the line if it is in a file.
    pub(super) origin: String,
    /// The setting, as the name of the variable named after it.
    setting: String,
    value: String,
}

/// Collects all overrides.
///
/// Variables with names of their own follow those named after settings, and win.
pub(super) fn overrides(outside: &ConfigSources<'_>, faults: &mut ConfigErrors) -> Vec<Override> {
    let named = outside.named.iter().cloned();
    let mut all: Vec<_> = named
        .map(|(name, value)| Override { origin: environment::origin(&name), setting: name, value })
        .collect();
    for section in ROOT.iter().copied().flatten() {
        let Kind::Table(table) = section.kind else { continue };
        for setting in table.iter().copied().flatten() {
            let Some(Variable::Number(name, unit, _)) = setting.variable else { continue };
            let Some(text) = (outside.variable)(name) else { continue };
            let Ok(number) = text.trim().parse::<u64>() else {
                let what = format!("{text:?} is not a whole number; fix or unset the variable");
                faults.add(environment::origin(name), what);
                continue;
            };
            let setting = format!("{PREFIX}{}{SEPARATOR}{}", section.name, setting.name);
            all.push(Override {
                origin: environment::origin(name),
                setting,
                value: format!("{number}{unit}"),
            });
        }
    }
    all
}

/// Applies the overrides to a document.
///
/// The n-th variable is at position `end + n`, which is beyond the text.
pub(super) fn apply<'a>(
    document: &mut DeTable<'a>,
    variables: &'a [Override],
    end: usize,
    faults: &mut ConfigErrors,
) {
    for (index, variable) in variables.iter().enumerate() {
        if let Err(what) = set(document, &variable.setting, &variable.value, end + index) {
            faults.add(&variable.origin, what);
        }
    }
}

fn set<'a>(document: &mut DeTable<'a>, name: &str, value: &'a str, at: usize) -> Result<(), String> {
    let parts: Vec<&str> = name.trim_start_matches(PREFIX).split(SEPARATOR).collect();
    let Some((setting, tables)) = parts.split_last().filter(|(_, tables)| !tables.is_empty()) else {
        return Err("does not name a setting; use the form ICHIDO__SECTION__KEY, such as ICHIDO__STORE__URL"
            .to_owned());
    };
    if parts.iter().any(|part| part.is_empty()) {
        return Err(
            "has an empty part in its name; separate the parts with exactly two underscores".to_owned()
        );
    }
    let mut table = document;
    let mut path: Vec<String> = Vec::new();
    for part in tables {
        let found = find_name(table, part)?;
        if found.is_none() && matches!(&path[..], [chosen] if USER_NAMED.contains(&chosen.as_str())) {
            let names: Vec<String> = table.keys().map(|key| key.get_ref().to_string()).collect();
            let fix = "add it to the file, or unset the variable";
            let meant = did_you_mean(part, names.iter().map(String::as_str), fix);
            return Err(format!("[{}.{}] does not exist{meant}", path[0], part.to_lowercase()));
        }
        let key = found.unwrap_or_else(|| part.to_lowercase());
        path.push(key.clone());
        let empty = || Spanned::new(at..at, DeValue::Table(DeTable::new()));
        let inside = table.entry(Spanned::new(at..at, Cow::Owned(key))).or_insert_with(empty);
        let DeValue::Table(inside) = inside.get_mut() else {
            return Err(format!("{} is not a table and has no settings; set it as a whole", path.join(".")));
        };
        table = inside;
    }
    let key = find_name(table, setting)?.unwrap_or_else(|| setting.to_lowercase());
    table.remove(key.as_str());
    table.insert(Spanned::new(at..at, Cow::Owned(key)), parse_value(value, at));
    Ok(())
}

/// Finds the name in a table that matches a part of a variable's name.
fn find_name(table: &DeTable<'_>, part: &str) -> Result<Option<String>, String> {
    let mut alike = table.keys().map(Spanned::get_ref).filter(|key| fold_name(key) == fold_name(part));
    match (alike.next(), alike.next()) {
        (found, None) => Ok(found.map(ToString::to_string)),
        (Some(one), Some(other)) => {
            Err(format!("is ambiguous: {one} or {other}; set it in the file instead"))
        }
        (None, Some(_)) => Ok(None),
    }
}

fn fold_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

fn parse_value(text: &str, at: usize) -> Spanned<DeValue<'_>> {
    match DeValue::parse(text) {
        Ok(value) => relocate(value, at),
        Err(_) => Spanned::new(at..at, DeValue::String(Cow::Borrowed(text))),
    }
}

/// Moves a value, with everything in it, to one position.
fn relocate(value: Spanned<DeValue<'_>>, at: usize) -> Spanned<DeValue<'_>> {
    let value = match value.into_inner() {
        DeValue::Array(items) => DeValue::Array(items.into_iter().map(|item| relocate(item, at)).collect()),
        DeValue::Table(members) => {
            let members = members.into_iter();
            DeValue::Table(
                members
                    .map(|(key, value)| (Spanned::new(at..at, key.into_inner()), relocate(value, at)))
                    .collect(),
            )
        }
        plain => plain,
    };
    Spanned::new(at..at, value)
}
