//! Every setting of a document as it holds, and who said so.

use super::super::kind::Kind;
use super::super::setting::Setting;
use super::super::show::{HIDDEN, Held, Shown, is_hidden, redacted};
use super::{Section, Value};

/// The origin of a value that nobody gave.
const DEFAULT: &str = "default";

impl Section<'_> {
    /// Adds every setting as it holds, here and inside, in the order of the table.
    pub(in super::super) fn show(&self, shown: &mut Vec<Shown>) {
        for setting in self.settings() {
            let inside = self.inside(setting);
            match setting.kind {
                Kind::Fields if self.has(setting.name) => self.show_fields(setting, shown),
                // A list is shown as one value, and tables whose names were chosen are none.
                Kind::Rows(_) => self.show_one(setting, shown),
                Kind::Named(_) => inside.iter().for_each(|section| section.show(shown)),
                _ if inside.is_empty() => self.show_one(setting, shown),
                _ => inside[0].show(shown),
            }
        }
    }

    fn show_one(&self, setting: &'static Setting, shown: &mut Vec<Shown>) {
        let held = self.held(setting);
        if held.is_some() || !self.is_as_said {
            shown.push(Shown { table: self.path.clone(), name: setting.name.to_owned(), held });
        }
    }

    fn show_fields(&self, setting: &'static Setting, shown: &mut Vec<Shown>) {
        let section = self.chosen(setting.name);
        for (key, value) in section.members() {
            let held = Some(section.held_value(&section.path_of(key.get_ref()), &setting.kind, value));
            shown.push(Shown { table: section.path.clone(), name: key.get_ref().to_string(), held });
        }
    }

    /// What a setting is, and who said so.
    fn held(&self, setting: &'static Setting) -> Option<Held> {
        match (self.member(setting.name), &self.fallback) {
            (Some(value), _) => Some(self.held_value(&self.path_of(setting.name), &setting.kind, value)),
            (None, Some(fallback)) if fallback.has(setting.name) => fallback.held(setting),
            _ => self.default(setting).map(|value| Held { value, origin: DEFAULT.to_owned() }),
        }
    }

    fn held_value(&self, path: &str, kind: &Kind, value: &Value<'_>) -> Held {
        let start = value.span().start;
        let value = match value.get_ref() {
            value if is_hidden(path, value, self.source.end() <= start) => HIDDEN.to_owned(),
            value => redacted(kind, value),
        };
        Held { value, origin: self.source.place(start) }
    }
}
