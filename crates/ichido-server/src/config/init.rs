//! `ichido config init`: a file with every setting, explained.
//!
//! `init.toml` is the template. A line `@NAME` is replaced by a group of settings, each with its meaning and its default or an
//! example. `@NAME setting = value` sets one of them to another value, which is commented out if the line begins with `#`.

use std::fmt::Write as _;

use super::kind::Kind;
use super::setting::{Setting, SettingTable};
use super::table::{HTTP, MODEL, NATS, OPENAI, PACE, QUEUE, QUEUE_DESTINATION, RECEIVER, ROOT};

const TEMPLATE: &str = include_str!("init.toml");
/// Maximum width of a comment.
const MAX_COLUMNS: usize = 120;

/// The groups that the template names in addition to the document's sections.
const GROUPS: [(&str, SettingTable); 5] = [
    ("receiver", &[RECEIVER]),
    ("queue", &[QUEUE_DESTINATION, QUEUE]),
    ("http", &[HTTP, PACE]),
    ("nats", &[NATS]),
    ("openai", &[MODEL, OPENAI]),
];

/// Returns the file that `ichido config init` writes. It works unchanged.
pub fn commented_file() -> String {
    let mut out = String::new();
    for line in TEMPLATE.lines() {
        if let Some(directive) = line.trim_start_matches('#').strip_prefix('@') {
            list(&mut out, directive, line.starts_with('#'));
            continue;
        }
        let header = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        let section = ROOT.iter().copied().flatten().find(|section| header == Some(section.name));
        out += &section.map(|section| comment(section.about)).unwrap_or_default();
        out.extend([line, "\n"]);
    }
    out
}

/// Writes the settings of a group.
fn list(out: &mut String, directive: &str, is_left_out: bool) {
    let (group, given) = directive.split_once(' ').unwrap_or((directive, ""));
    let (given, value) = given.split_once(" = ").unwrap_or_default();
    let section = |setting: &'static Setting| match setting.kind {
        Kind::Table(table) => Some((setting.name, table)),
        _ => None,
    };
    let mut groups = GROUPS.into_iter().chain(ROOT.iter().copied().flatten().filter_map(section));
    let group = groups.find(|(name, _)| *name == group);
    let settings = group.into_iter().flat_map(|(_, table)| table.iter().copied().flatten());
    for setting in settings.filter(|setting| !matches!(setting.kind, Kind::Named(_))) {
        let is_given = setting.name == given;
        let value = if is_given { value.to_owned() } else { setting.example() };
        let mark = if is_given && !is_left_out { "" } else { "#" };
        // Writing to a string does not fail.
        _ = writeln!(out, "{}{mark}{} = {value}", comment(&setting.description()), setting.name);
    }
}

/// Wraps a text as comment lines.
fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split(' ') {
        let last = lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < MAX_COLUMNS);
        match last {
            Some(line) => line.extend([" ", word]),
            None => lines.push(format!("# {word}")),
        }
    }
    lines.join("\n") + "\n"
}
