//! A TOML document, read member by member: what is asked for is known, and what was never asked for is a problem.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use ichido_core::settings::Faults;
use ichido_core::settings::duration;
use ichido_core::settings::size;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::show::{Asked, Said};

/// Two names that are less alike than this are not taken for a slip.
const ALIKE_MIN: f64 = 0.8;

/// A file's text under the name by which it is shown.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// The variables that stand after its end, each as wide as a character.
    pub(super) variables: &'a [(String, String)],
    /// What was asked for so far.
    pub(super) asked: RefCell<Vec<Asked>>,
}

impl Source<'_> {
    /// Where the first of the variables stands.
    pub(super) fn end(&self) -> usize {
        self.text.len() + 1
    }

    /// `ichido.toml:3:9`, or the variable.
    pub(super) fn place(&self, offset: usize) -> String {
        if let Some((name, _)) = offset.checked_sub(self.end()).and_then(|index| self.variables.get(index)) {
            return format!("the variable {name}");
        }
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }
}

/// One table of a document, and which of its members were asked for.
pub(super) struct Section<'a> {
    source: &'a Source<'a>,
    table: &'a DeTable<'a>,
    /// Where it stands among the others: `queues.orders`; empty for the document itself.
    path: String,
    at: Range<usize>,
    known: Vec<&'static str>,
}

/// A member's value, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Section<'a> {
    /// The document itself.
    pub(super) fn root(source: &'a Source<'a>, table: &'a Spanned<DeTable<'a>>) -> Self {
        Self { source, table: table.get_ref(), path: String::new(), at: 0..0, known: Vec::new() }
    }

    /// Where a member stands, or, where it is missing, the table that it is missing from; and its whole name.
    pub(super) fn place(&self, name: &str) -> String {
        let at = self.table.get(name).map_or(self.at.start, |value| value.span().start);
        format!("{} {}", self.source.place(at), self.name_of(name))
    }

    /// Where something inside stands, by its path: `rules[1].status`; where it is missing, what is nearest to it on the way there.
    pub(super) fn place_within(&self, path: &str) -> String {
        let mut at = self.at.start;
        let mut inside: Option<&Spanned<DeValue<'_>>> = None;
        for step in path.split(['.', '[']) {
            let next = match (step.strip_suffix(']'), inside) {
                (None, None) => self.table.get(step),
                (None, Some(value)) => value.get_ref().as_table().and_then(|table| table.get(step)),
                (Some(index), Some(value)) => {
                    let index = index.parse::<usize>().ok();
                    value.get_ref().as_array().and_then(|items| items.get(index?))
                }
                (Some(_), None) => None,
            };
            let Some(value) = next else { break };
            (at, inside) = (value.span().start, Some(value));
        }
        format!("{} {}", self.source.place(at), self.name_of(path))
    }

    /// Where the table itself stands.
    pub(super) fn own_place(&self) -> String {
        format!("{} {}", self.source.place(self.at.start), self.path)
    }

    fn name_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A member, if it is there. From now on its name is known.
    pub(super) fn get(&mut self, name: &'static str) -> Option<Member<'a>> {
        self.known.push(name);
        let found = self.table.get(name);
        let path = self.name_of(name);
        let said = found.map(|value| self.said(&path, value));
        self.source.asked.borrow_mut().push(Asked { path, said, holds: None });
        found.map(|value| Member { value })
    }

    fn said(&self, path: &str, value: &Spanned<DeValue<'_>>) -> Said {
        let start = value.span().start;
        Said::new(path, value.get_ref(), self.source.place(start), self.source.end() <= start)
    }

    /// Tells whoever looks what a setting is where nobody says it, as TOML. It was asked for before.
    pub(super) fn holds(&self, name: &str, value: impl fmt::Display) {
        let path = self.name_of(name);
        let mut asked = self.source.asked.borrow_mut();
        if let Some(asked) = asked.iter_mut().rev().find(|asked| asked.path == path) {
            asked.holds = Some(value.to_string());
        }
    }

    /// The same of a length of time.
    pub(super) fn holds_time(&self, name: &str, value: Duration) {
        self.holds(name, format_args!("{:?}", duration::shown(value)));
    }

    /// Whether a variable of the environment says it, and not the file.
    pub(super) fn is_by_variable(&self, name: &str) -> bool {
        self.table.get(name).is_some_and(|value| self.source.end() <= value.span().start)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// A member read by `read`; a value that it does not take is a problem, `expected` says what it takes.
    fn read<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        faults: &mut Faults,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name)?.value.get_ref();
        let taken = read(value);
        if taken.is_none() {
            faults.add(self.place(name), format!("is {}; write {expected}", kind_of(value)));
        }
        taken
    }

    pub(super) fn text(&mut self, name: &'static str, faults: &mut Faults) -> Option<&'a str> {
        self.read(name, "a text in quotes", faults, DeValue::as_str)
    }

    /// One of several words, each with what it stands for; `None` where none is given, or one that is not known.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        faults: &mut Faults,
    ) -> Option<T> {
        let given = self.text(name, faults)?;
        let found = words.iter().find(|(word, _)| *word == given);
        if found.is_none() {
            let meant = nearest(given, words.iter().map(|(word, _)| *word));
            let meant = meant.map(|word| format!("; did you mean {word}")).unwrap_or_default();
            faults.add(
                self.place(name),
                format!("{given:?} is not known{meant}; there are: {}", listed(words)),
            );
        }
        found.map(|(_, value)| *value)
    }

    /// The same, where one must be given.
    pub(super) fn needed_word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        faults: &mut Faults,
    ) -> Option<T> {
        if !self.has(name) {
            faults.add(self.place(name), format!("is missing; write one of: {}", listed(words)));
        }
        self.word(name, words, faults)
    }

    pub(super) fn flag(&mut self, name: &'static str, faults: &mut Faults) -> Option<bool> {
        self.read(name, "true or false", faults, DeValue::as_bool)
    }

    pub(super) fn time(&mut self, name: &'static str, faults: &mut Faults) -> Option<Duration> {
        let text = self.read(name, "a length of time, such as \"3s\"", faults, DeValue::as_str)?;
        let place = self.place(name);
        faults.check(&place, duration::parse(text))
    }

    pub(super) fn count(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u32>,
        faults: &mut Faults,
    ) -> Option<u32> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        self.read(name, &expected, faults, |value| {
            let whole = value.as_integer()?;
            u32::from_str_radix(whole.as_str(), whole.radix()).ok().filter(|whole| range.contains(whole))
        })
    }

    /// A size in bytes: a text such as `"2 MiB"`, or a whole number.
    pub(super) fn size(
        &mut self,
        name: &'static str,
        range: RangeInclusive<usize>,
        faults: &mut Faults,
    ) -> Option<usize> {
        let parsed = self.read(name, "a size, such as \"2 MiB\"", faults, |value| match value {
            DeValue::String(text) => Some(size::parse(text)),
            DeValue::Integer(whole) if whole.radix() == 10 => Some(size::parse(whole.as_str())),
            _ => None,
        })?;
        let place = self.place(name);
        let bytes = faults.check(&place, parsed)?;
        if let Some(said) = self.source.asked.borrow_mut().last_mut().and_then(|asked| asked.said.as_mut()) {
            said.value = Some(format!("{:?}", size::shown(bytes)));
        }
        let found = usize::try_from(bytes).ok().filter(|bytes| range.contains(bytes));
        if found.is_none() {
            let [first, last] = [range.start(), range.end()].map(|bytes| size::told(*bytes));
            faults.add(place, format!("is {}; write a size from {first} to {last}", size::shown(bytes)));
        }
        found
    }

    pub(super) fn number(&mut self, name: &'static str, faults: &mut Faults) -> Option<f64> {
        self.read(name, "a number above 0", faults, |value| decimal(value).filter(|number| 0.0 < *number))
    }

    /// A number that may be 0.
    pub(super) fn measure(&mut self, name: &'static str, faults: &mut Faults) -> Option<f64> {
        self.read(name, "a number, 0 or more", faults, |value| decimal(value).filter(|number| 0.0 <= *number))
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, name: &'static str, faults: &mut Faults) -> Option<Vec<&'a str>> {
        self.read(name, "a list of texts, such as [\"one\", \"two\"]", faults, |value| {
            value.as_array()?.iter().map(|item| item.get_ref().as_str()).collect()
        })
    }

    /// A table inside.
    pub(super) fn section(&mut self, name: &'static str, faults: &mut Faults) -> Option<Section<'a>> {
        let at = self.get(name)?.value.span();
        let table = self.read(name, "a table, such as { name = value }", faults, DeValue::as_table)?;
        Some(self.within(self.name_of(name), table, at))
    }

    /// A table of tables, each under a name that somebody chose; in the order of the file.
    pub(super) fn sections(
        &mut self,
        name: &'static str,
        faults: &mut Faults,
    ) -> Vec<(&'a str, Section<'a>)> {
        let Some(table) = self.read(name, "tables, such as [queues.orders]", faults, DeValue::as_table)
        else {
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (key, value) in table {
            let path = format!("{}.{}", self.name_of(name), key.get_ref());
            match value.get_ref().as_table() {
                Some(table) => sections.push((key.get_ref().as_ref(), self.within(path, table, key.span()))),
                None => faults.add(
                    format!("{} {path}", self.source.place(value.span().start)),
                    format!("is {}; write a table, such as [{path}]", kind_of(value.get_ref())),
                ),
            }
        }
        sections.sort_by_key(|(_, section)| section.at.start);
        sections
    }

    /// A list of tables.
    pub(super) fn rows(&mut self, name: &'static str, faults: &mut Faults) -> Option<Vec<Section<'a>>> {
        let rows: Vec<_> =
            self.read(name, "a list of tables, such as [{ name = value }]", faults, |value| {
                value.as_array()?.iter().map(|item| Some((item.get_ref().as_table()?, item.span()))).collect()
            })?;
        let path = self.name_of(name);
        let rows = rows.into_iter().enumerate();
        Some(rows.map(|(index, (table, at))| self.within(format!("{path}[{index}]"), table, at)).collect())
    }

    fn within(&self, path: String, table: &'a DeTable<'a>, at: Range<usize>) -> Self {
        Section { source: self.source, table, path, at, known: Vec::new() }
    }

    /// All members whose names somebody chose, such as those of header fields, with their values; in the order of the file.
    pub(super) fn chosen(&self) -> Vec<(&'a str, Member<'a>)> {
        let mut members: Vec<_> =
            self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), Member { value })).collect();
        members.sort_by_key(|(_, member)| member.value.span().start);
        let mut asked = self.source.asked.borrow_mut();
        for (name, member) in &members {
            let path = self.name_of(name);
            let said = Some(self.said(&path, member.value));
            asked.push(Asked { path, said, holds: None });
        }
        members
    }

    /// Ends the reading: a member that nobody asked for is a problem.
    pub(super) fn finish(self, faults: &mut Faults) {
        for (key, _) in self.table.iter().filter(|(key, _)| !self.known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref();
            let place = format!("{} {}", self.source.place(key.span().start), self.name_of(name));
            let mut known = self.known.clone();
            known.sort_unstable();
            known.dedup();
            let known_here = known.join(", ");
            match nearest(name, known.iter().copied()) {
                Some(meant) => {
                    faults
                        .add(place, format!("is no setting; did you mean {meant}? Known here: {known_here}"));
                }
                None => faults.add(place, format!("is no setting; take it out. Known here: {known_here}")),
            }
        }
    }
}

impl<'a> Member<'a> {
    pub(super) fn as_str(self) -> Option<&'a str> {
        self.value.get_ref().as_str()
    }

    pub(super) fn as_bool(self) -> Option<bool> {
        self.value.get_ref().as_bool()
    }

    pub(super) fn is_table(self) -> bool {
        self.value.get_ref().is_table()
    }

    /// What kind of value it is, for a problem.
    pub(super) fn kind(self) -> &'static str {
        kind_of(self.value.get_ref())
    }
}

/// A number that is written with ten digits.
fn decimal(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(whole) if whole.radix() == 10 => whole.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return None,
    };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The name that is meant, where one is close.
pub(super) fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name = name.to_lowercase().replace('-', "_");
    let alike = known.into_iter().map(|known| (strsim::jaro_winkler(&name, known), known));
    alike.filter(|(alike, _)| ALIKE_MIN <= *alike).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

fn listed<T>(words: &[(&'static str, T)]) -> String {
    words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
}

/// What a value is; never the value, which may be a secret in the wrong place.
fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number that is not taken here",
        DeValue::Float(_) => "a number that is not taken here",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list of something else",
        DeValue::Table(_) => "a table",
    }
}
