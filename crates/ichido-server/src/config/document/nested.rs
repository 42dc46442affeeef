//! Nested tables, and defaults.

use std::borrow::Cow;
use std::time::Duration;

use ichido_core::settings::duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::kind::{Kind, NamedTables};
use super::super::setting::{Absent, Presets, Setting, SettingTable};
use super::super::show::to_toml;
use super::super::table::KIND;
use super::Section;

impl<'a> Section<'a> {
    /// Returns a table whose members have names that the user chose.
    pub(super) fn user_named(&self, name: &str) -> Section<'a> {
        let value = self.member(name);
        let at = value.map_or(self.at, |value| value.span().start);
        self.nested_section(self.path_of(name), at, value.and_then(|value| value.get_ref().as_table()), &[])
    }

    /// Returns a nested table; `None` if there is none, not even by default.
    pub(in super::super) fn section(&self, name: &str) -> Option<Section<'a>> {
        let setting = self.setting(name)?;
        self.nested(setting).into_iter().next().or_else(|| {
            let Kind::Table(table) = setting.kind else { return None };
            let empty = self.nested_section(self.path_of(name), self.at, None, table);
            let default = self.default(setting)?;
            Some(Self { presets: presets(DeValue::parse(&default).ok()?.get_ref()), ..empty })
        })
    }

    /// Returns a list of tables, as configured or by default.
    pub(in super::super) fn rows(&self, name: &str) -> Vec<Section<'a>> {
        let Some(setting) = self.setting(name) else { return Vec::new() };
        let (Kind::Rows(table), false) = (&setting.kind, self.has(name)) else { return self.nested(setting) };
        let default = self.default(setting).unwrap_or_default();
        let Ok(default) = DeValue::parse(&default) else { return Vec::new() };
        let rows = default.get_ref().as_array().into_iter().flatten();
        let empty = self.nested_section(self.path_of(name), self.at, None, table);
        rows.map(|row| Self { presets: presets(row.get_ref()), ..empty.clone() }).collect()
    }

    /// Returns the nested tables with user-chosen names, in the order of the file.
    pub(in super::super) fn sections(&self, name: &str) -> Vec<Section<'a>> {
        self.setting(name).map(|setting| self.nested(setting)).unwrap_or_default()
    }

    /// Returns a table by its user-chosen name, such as the destination of a queue.
    pub(in super::super) fn named_elsewhere(&self, table: &str, name: &str) -> Option<Section<'a>> {
        let root = Self::of_document(self.source, self.document);
        let Kind::Named(named) = &root.setting(table)?.kind else { return None };
        let tables = root.user_named(table);
        let (key, value) = tables.given?.get_key_value(name)?;
        Some(tables.named(named, key, value.get_ref().as_table()?))
    }

    /// Returns the tables that are the value of a setting.
    pub(super) fn nested(&self, setting: &'static Setting) -> Vec<Section<'a>> {
        let (path, given) = (self.path_of(setting.name), self.member(setting.name));
        let at = given.map_or(self.at, |value| value.span().start);
        match (&setting.kind, given.map(Spanned::get_ref)) {
            (
                Kind::Table(table) | Kind::FlagOr(table) | Kind::WordOr(_, table),
                Some(DeValue::Table(members)),
            ) => {
                let default = self.default(setting).filter(|_| !matches!(setting.absent, Absent::Members));
                let presets = default
                    .and_then(|default| Some(presets(DeValue::parse(&default).ok()?.get_ref())))
                    .unwrap_or_default();
                vec![Self { presets, ..self.nested_section(path, at, Some(members), table) }]
            }
            // The top-level tables exist even if the document leaves them out.
            (Kind::Table(table), None) if self.path.is_empty() => {
                vec![self.nested_section(path, at, None, table)]
            }
            (Kind::Rows(table), Some(DeValue::Array(items))) => {
                let rows = items.iter().enumerate().filter_map(|(index, item)| {
                    let members = item.get_ref().as_table()?;
                    Some(self.nested_section(
                        format!("{path}[{index}]"),
                        item.span().start,
                        Some(members),
                        table,
                    ))
                });
                rows.collect()
            }
            (Kind::Named(named), _) => {
                let tables = self.user_named(setting.name);
                let tables = tables.members().into_iter().filter_map(|(key, value)| {
                    let section = tables.named(named, key, value.get_ref().as_table()?);
                    let fallback = named.fallback.and_then(|name| self.section(name)).map(Box::new);
                    Some(Self { fallback, ..section })
                });
                tables.collect()
            }
            _ => Vec::new(),
        }
    }

    fn named(
        &self,
        named: &NamedTables,
        key: &'a Spanned<Cow<'a, str>>,
        members: &'a DeTable<'a>,
    ) -> Section<'a> {
        let kind = members.get(KIND).and_then(|value| value.get_ref().as_str()).unwrap_or_default();
        let variant = named.variants.iter().find(|variant| variant.word.is_empty() || variant.word == kind);
        let name: &'a str = key.get_ref();
        // For an unknown kind, report only that.
        let table =
            variant.or(named.variants.first()).map_or::<SettingTable, _>(&[], |variant| variant.table);
        let table = if variant.is_some() { table } else { &table[..1] };
        let mut section = self.nested_section(self.path_of(name), key.span().start, Some(members), table);
        section.name = name;
        section.has_no_defaults |= named.has_no_defaults;
        section.is_unknown = variant.is_none();
        section.presets =
            variant.and_then(|variant| variant.presets).map(|presets| presets(&section)).unwrap_or_default();
        section
    }

    /// Returns the default of a setting as TOML.
    pub(super) fn default(&self, setting: &'static Setting) -> Option<String> {
        if let Some((_, value)) = self.presets.iter().find(|(name, _)| name == setting.name) {
            return Some(value.clone());
        }
        let by_other = |other: &str, value: &str, choose: fn(Duration, Duration) -> Duration| {
            let own = duration::parse(value).unwrap_or_default();
            setting.toml(&duration::format(choose(own, self.get(other).unwrap_or(own))))
        };
        match setting.absent {
            _ if self.has_no_defaults => None,
            Absent::Is(value) => Some(setting.toml(value)),
            Absent::AtMost(other, value) => Some(by_other(other, value, Ord::min)),
            Absent::AtLeast(other, value) => Some(by_other(other, value, Ord::max)),
            Absent::Members => Some(setting.example()),
            Absent::Unset(_) | Absent::Required(_) => None,
        }
    }
}

/// Returns the members of a table as TOML.
fn presets(value: &DeValue<'_>) -> Presets {
    let members = value.as_table().into_iter().flatten();
    members
        .map(|(key, value)| (key.get_ref().to_string(), to_toml(value.get_ref(), &|text| text.to_owned())))
        .collect()
}
