//! Formats what a file says and said, briefly.

use std::time::Duration;

use ichido_core::json::{Document, JsonValue, Kind};

use super::Pair;
use crate::Boundary;
use crate::read::MAX_BYTES;

/// The longest value that is shown; longer ones are cut.
const MAX_SHOWN_CHARS: usize = 80;

/// Returns `was …, is …` for the value at the pointer, if it has changed.
///
/// An element stands for its list, and an object for its changed members.
pub(super) fn change(pair: &Pair<'_>, pointer: &str) -> Option<String> {
    let (before, after) = (read(pair.before)?, read(pair.after)?);
    let (was, is) = (find(before.root(), pointer), find(after.root(), pointer));
    if let (Some(was), Some(is)) = (was, is)
        && (was.kind(), is.kind()) == (Kind::Object, Kind::Object)
    {
        let changes = members(was, is).into_iter().filter_map(|(name, was, is)| {
            let change = render_change(was, is)?;
            Some(format!("{name} {change}"))
        });
        let changes: Vec<String> = changes.collect();
        return (!changes.is_empty()).then(|| changes.join("; "));
    }
    render_change(was, is)
}

fn read(file: &Boundary) -> Option<Document<'_>> {
    Document::parse(file.text().as_bytes(), MAX_BYTES).ok()
}

fn find<'d, 'a>(root: JsonValue<'d, 'a>, pointer: &str) -> Option<JsonValue<'d, 'a>> {
    let mut value = root;
    for step in pointer.split('/').skip(1) {
        if value.kind() == Kind::Array {
            break;
        }
        value = value.get(&step.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(value)
}

type Member<'d, 'a> = (String, Option<JsonValue<'d, 'a>>, Option<JsonValue<'d, 'a>>);

fn members<'d, 'a>(was: JsonValue<'d, 'a>, is: JsonValue<'d, 'a>) -> Vec<Member<'d, 'a>> {
    let names = was.members().chain(is.members()).map(|(name, _)| name.into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    let both = names.into_iter().map(|name| {
        let (was, is) = (was.get(&name), is.get(&name));
        (name, was, is)
    });
    both.collect()
}

fn render_change(was: Option<JsonValue<'_, '_>>, is: Option<JsonValue<'_, '_>>) -> Option<String> {
    let text = |value: Option<JsonValue<'_, '_>>| value.map_or_else(|| "not set".to_owned(), render_value);
    let (was, is) = (text(was), text(is));
    (was != is).then(|| format!("was {was}, now {is}"))
}

fn render_value(value: JsonValue<'_, '_>) -> String {
    let text = match value.kind() {
        Kind::Null => "null".to_owned(),
        Kind::Bool => value.as_bool().unwrap_or_default().to_string(),
        Kind::Number => value.as_number_text().unwrap_or_default().to_owned(),
        Kind::String => format!("\"{}\"", value.as_str().unwrap_or_default()),
        Kind::Array => bracketed('[', value.elements().map(render_value), ']'),
        Kind::Object => bracketed(
            '{',
            value.members().map(|(name, value)| format!("{name}: {}", render_value(value))),
            '}',
        ),
    };
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn bracketed(open: char, inside: impl Iterator<Item = String>, close: char) -> String {
    format!("{open}{}{close}", inside.collect::<Vec<_>>().join(", "))
}

/// Returns `…: was …, is …` for a time that has become shorter.
pub(super) fn shorter(what: &str, was: Option<Duration>, is: Option<Duration>) -> Option<String> {
    let (was, is) = (was?, is?);
    (is < was).then(|| format!("{what}: was {}, now {}", render_duration(was), render_duration(is)))
}

/// Formats a duration in the greatest exact unit.
pub(super) fn render_duration(time: Duration) -> String {
    const UNITS: [(u128, &str); 4] =
        [(24 * 60 * 60 * 1000, "day"), (60 * 60 * 1000, "hour"), (60 * 1000, "minute"), (1000, "second")];
    let ms = time.as_millis();
    let unit = UNITS.iter().find(|(unit, _)| ms != 0 && ms.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) if ms == *unit => format!("1 {name}"),
        Some((unit, name)) => format!("{} {name}s", ms / unit),
        None => format!("{ms} ms"),
    }
}

/// Formats a list in the order of the file.
pub(super) fn render_names(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}
