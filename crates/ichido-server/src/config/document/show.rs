//! The effective value of every setting, with its origin.

use super::super::kind::Kind;
use super::super::setting::Setting;
use super::super::show::{DisplayedConfig, EffectiveValue, HIDDEN, is_hidden, redacted};
use super::{Section, SpannedValue};

/// The origin of a default value.
const DEFAULT: &str = "default";

impl Section<'_> {
    /// Appends the effective value of every setting, here and in nested tables.
    ///
    /// Keeps the order of the table.
    pub(in super::super) fn show(&self, shown: &mut Vec<DisplayedConfig>) {
        for setting in self.settings() {
            let inside = self.nested(setting);
            match setting.kind {
                Kind::Fields if self.has(setting.name) => self.show_fields(setting, shown),
                // A list is one value; tables with user-chosen names are shown one by one.
                Kind::Rows(_) => self.show_one(setting, shown),
                Kind::Named(_) => inside.iter().for_each(|section| section.show(shown)),
                _ if inside.is_empty() => self.show_one(setting, shown),
                _ => inside[0].show(shown),
            }
        }
    }

    fn show_one(&self, setting: &'static Setting, shown: &mut Vec<DisplayedConfig>) {
        let effective = self.effective(setting);
        if effective.is_some() || !self.has_no_defaults {
            shown.push(DisplayedConfig {
                table: self.path.clone(),
                name: setting.name.to_owned(),
                effective,
            });
        }
    }

    fn show_fields(&self, setting: &'static Setting, shown: &mut Vec<DisplayedConfig>) {
        let section = self.user_named(setting.name);
        for (key, value) in section.members() {
            let effective =
                Some(section.effective_value(&section.path_of(key.get_ref()), &setting.kind, value));
            shown.push(DisplayedConfig {
                table: section.path.clone(),
                name: key.get_ref().to_string(),
                effective,
            });
        }
    }

    /// Returns the effective value of a setting, with its origin.
    fn effective(&self, setting: &'static Setting) -> Option<EffectiveValue> {
        match (self.member(setting.name), &self.fallback) {
            (Some(value), _) => Some(self.effective_value(&self.path_of(setting.name), &setting.kind, value)),
            (None, Some(fallback)) if fallback.has(setting.name) => fallback.effective(setting),
            _ => self.default(setting).map(|value| EffectiveValue { value, origin: DEFAULT.to_owned() }),
        }
    }

    fn effective_value(&self, path: &str, kind: &Kind, value: &SpannedValue<'_>) -> EffectiveValue {
        let start = value.span().start;
        let value = match value.get_ref() {
            value if is_hidden(path, value, self.source.end() <= start) => HIDDEN.to_owned(),
            value => redacted(kind, value),
        };
        EffectiveValue { value, origin: self.source.location(start) }
    }
}
