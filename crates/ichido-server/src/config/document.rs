//! A TOML document, checked against the table of settings and then read by name.
//!
//! [`Section::check`] reports every error that the table can find: unknown names, wrong kinds, values out of range, missing
//! settings. The modules that read sections afterwards get a valid value or the default, and report only errors that involve
//! several settings.

mod check;
mod nested;
mod show;

use std::borrow::Cow;
use std::cell::RefCell;

use ichido_core::settings::ConfigErrors;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::env_overlay::Override;
use super::kind::{FromSetting, Kind};
use super::setting::{Presets, Setting, SettingTable};
use super::sources::ConfigSources;
use super::table::ROOT;

pub use check::did_you_mean;
pub(super) use check::kind_of;

/// How the full names of destinations begin.
const DESTINATIONS: &str = "destinations.";

/// The text of a file, its display name, its overrides, and its errors so far.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// The environment overrides, which follow the end of the text, each one character wide.
    pub(super) variables: &'a [Override],
    pub(super) outside: &'a ConfigSources<'a>,
    pub(super) faults: RefCell<ConfigErrors>,
}

impl Source<'_> {
    /// Returns the position of the first override.
    pub(super) fn end(&self) -> usize {
        self.text.len() + 1
    }

    /// Formats a position: `ichido.toml:3:9`, or the origin of the variable.
    pub(super) fn location(&self, offset: usize) -> String {
        if let Some(variable) = offset.checked_sub(self.end()).and_then(|index| self.variables.get(index)) {
            return variable.origin.clone();
        }
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }
}

/// One table of a document.
#[derive(Clone)]
pub(super) struct Section<'a> {
    pub(super) source: &'a Source<'a>,
    /// The name that the user chose.
    pub(super) name: &'a str,
    /// Its full name, such as `queues.orders`; empty for the document itself.
    path: String,
    at: usize,
    /// The whole document.
    document: &'a DeTable<'a>,
    /// The members from the file and the environment.
    given: Option<&'a DeTable<'a>>,
    table: SettingTable,
    /// Where to look for absent settings. It comes first, then the presets, then the defaults of the table.
    fallback: Option<Box<Section<'a>>>,
    presets: Presets,
    /// Whether absent settings have no default.
    has_no_defaults: bool,
    /// Whether unknown names are accepted, because its kind is unknown.
    is_unknown: bool,
}

type SpannedValue<'a> = Spanned<DeValue<'a>>;

impl<'a> Section<'a> {
    /// Returns the document itself.
    pub(super) fn root(source: &'a Source<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        Self::of_document(source, document.get_ref())
    }

    fn of_document(source: &'a Source<'a>, document: &'a DeTable<'a>) -> Self {
        Self::new(source, document, String::new(), 0, Some(document), ROOT)
    }

    fn new(
        source: &'a Source<'a>,
        document: &'a DeTable<'a>,
        path: String,
        at: usize,
        given: Option<&'a DeTable<'a>>,
        table: SettingTable,
    ) -> Self {
        let (name, presets, fallback) = ("", Presets::new(), None);
        Self {
            source,
            name,
            path,
            at,
            document,
            given,
            table,
            fallback,
            presets,
            has_no_defaults: false,
            is_unknown: false,
        }
    }

    fn nested_section(
        &self,
        path: String,
        at: usize,
        given: Option<&'a DeTable<'a>>,
        table: SettingTable,
    ) -> Self {
        let section = Self::new(self.source, self.document, path, at, given, table);
        Self { has_no_defaults: self.has_no_defaults, ..section }
    }

    fn settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.table.iter().copied().flatten()
    }

    fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.settings().find(|setting| setting.name == name)
    }

    fn member(&self, name: &str) -> Option<&'a SpannedValue<'a>> {
        self.given?.get(name)
    }

    /// Returns all members, in the order of the file.
    fn members(&self) -> Vec<(&'a Spanned<Cow<'a, str>>, &'a SpannedValue<'a>)> {
        let mut members: Vec<_> = self.given.into_iter().flatten().collect();
        members.sort_by_key(|(key, _)| key.span().start);
        members
    }

    fn path_of(&self, name: &str) -> String {
        let between = if self.path.is_empty() || name.is_empty() { "" } else { "." };
        format!("{}{between}{name}", self.path)
    }

    /// Whether the section itself sets this.
    pub(super) fn has(&self, name: &str) -> bool {
        self.member(name).is_some()
    }

    /// Whether an environment variable sets this, rather than the file.
    pub(super) fn is_by_variable(&self, name: &str) -> bool {
        self.member(name).is_some_and(|value| self.source.end() <= value.span().start)
    }

    /// Formats the location and full name of a path such as `rules[1].status`.
    ///
    /// If it is missing, uses the nearest part that exists; without a path, the table itself.
    pub(super) fn location(&self, path: &str) -> String {
        let first = path.split(['.', '[']).next().unwrap_or(path);
        if let Some(fallback) = self.fallback.as_ref().filter(|other| !self.has(first) && other.has(first)) {
            return fallback.location(path);
        }
        let mut at = self.at;
        let mut inside: Option<&SpannedValue<'_>> = None;
        // A table name that the user chose may contain dots.
        let steps = if self.has(path) { vec![path] } else { path.split(['.', '[']).collect() };
        for step in steps {
            let next = match (step.strip_suffix(']'), inside) {
                (None, None) => self.member(step),
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
        format!("{} {}", self.source.location(at), self.path_of(path))
    }

    /// Reports an error at a path.
    pub(super) fn report(&self, path: &str, what: impl Into<String>) {
        self.report_at(self.location(path), what);
    }

    /// Reports an error at any location.
    pub(super) fn report_at(&self, place: impl Into<String>, what: impl Into<String>) {
        self.source.faults.borrow_mut().add(place, what);
    }

    /// Reports all errors of what was built from these settings, which uses the same names.
    pub(super) fn report_all(&self, faults: ConfigErrors) {
        for fault in faults.0 {
            self.report(&fault.place, fault.what);
        }
    }

    /// Returns the value, or reports its error at a setting.
    pub(super) fn checked<T, E: std::fmt::Display>(&self, name: &str, checked: Result<T, E>) -> Option<T> {
        checked.map_err(|error| self.report(name, error.to_string())).ok()
    }

    /// Returns the value of a setting, or its default; `None` if it has neither.
    pub(super) fn get<T: FromSetting>(&self, name: &str) -> Option<T> {
        let setting = self.setting(name)?;
        let given = self.member(name).or_else(|| self.fallback.as_ref()?.member(name)).map(Spanned::get_ref);
        match given.filter(|value| setting.kind.reject(value).is_none()) {
            Some(value) => T::read(value),
            None => T::read(DeValue::parse(&self.default(setting)?).ok()?.get_ref()),
        }
    }

    /// Returns the value of a setting that has a default.
    pub(super) fn get_or_default<T: FromSetting + Default>(&self, name: &str) -> T {
        self.get(name).unwrap_or_default()
    }

    /// Returns the value only if this section sets it.
    pub(super) fn explicit<T: FromSetting>(&self, name: &str) -> Option<T> {
        T::read(self.member(name)?.get_ref())
    }

    /// Returns the meaning of a keyword setting.
    pub(super) fn word<T>(&self, name: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
        parse(&self.get::<String>(name)?)
    }

    /// Returns the text of a setting with its reference resolved.
    ///
    /// A secret must be a reference; a path is replaced by the text of its file.
    pub(super) fn resolved(&self, name: &str) -> Option<String> {
        self.checked(name, self.look_up(name, &self.get::<String>(name)?))?
    }

    /// `None` if the text is not needed: only what delivers messages needs secrets and the addresses of destinations.
    fn look_up(&self, name: &str, text: &str) -> Result<Option<String>, String> {
        let outside = self.source.outside;
        match self.setting(name).map(|setting| &setting.kind) {
            Some(Kind::Secret | Kind::Secrets) => outside.secret(text),
            Some(Kind::Path) => outside.read(text).map(Some),
            _ if self.path.starts_with(DESTINATIONS) => outside.resolve_if_needed(text),
            _ => outside.resolve(text).map(Some),
        }
    }

    /// Resolves every text of a list; `None` if one cannot be resolved.
    pub(super) fn all_resolved(&self, name: &str) -> Option<Vec<String>> {
        let resolved = self.resolved_list(name);
        let is_whole = resolved.len() == self.get::<Vec<String>>(name)?.len();
        is_whole.then(|| resolved.into_iter().map(|(_, text)| text).collect())
    }

    /// Resolves the texts of a list, and returns each with its index.
    pub(super) fn resolved_list(&self, name: &str) -> Vec<(usize, String)> {
        let texts = self.get_or_default::<Vec<String>>(name).into_iter().enumerate();
        let resolved = texts.filter_map(|(index, text)| {
            Some((index, self.checked(&format!("{name}[{index}]"), self.look_up(name, &text))??))
        });
        resolved.collect()
    }

    /// Returns the members of a table of texts, in the order of the file.
    pub(super) fn fields(&self, name: &str) -> Vec<(&'a str, &'a str)> {
        let members = self.user_named(name).members().into_iter();
        members.filter_map(|(key, value)| Some((&**key.get_ref(), value.get_ref().as_str()?))).collect()
    }
}
