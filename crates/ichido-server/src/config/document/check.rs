//! Checks a document against the table of settings.

use toml::de::DeValue;

use super::super::kind::Kind;
use super::super::setting::{Absent, Setting};
use super::Section;

/// Names less similar than this are not taken for a typing error.
const MIN_ALIKE: f64 = 0.8;
impl Section<'_> {
    /// Reports every error that the table can find, here and in nested tables.
    pub(in super::super) fn check(&self) {
        let missing = self.settings().filter(|setting| {
            let is_there = self.has(setting.name) || self.default(setting).is_some();
            matches!(setting.absent, Absent::Required(_)) && !is_there
        });
        missing.for_each(|setting| self.report(setting.name, setting.missing_error()));
        for (key, value) in self.members() {
            let Some(setting) = self.setting(key.get_ref()) else {
                self.unknown(key.get_ref(), key.span().start);
                continue;
            };
            match setting.kind.reject(value.get_ref()) {
                Some(what) => self.report(setting.name, what),
                None => self.check_user_named(setting),
            }
            self.nested(setting).iter().for_each(Section::check);
        }
    }

    /// Checks members whose names the user chose: they must be tables or texts.
    fn check_user_named(&self, setting: &'static Setting) {
        let expected = match setting.kind {
            Kind::Named(_) => "a table",
            Kind::Fields => "a quoted string",
            _ => return,
        };
        let inside = self.user_named(setting.name);
        for (key, value) in inside.members() {
            let (value, is_fields) = (value.get_ref(), matches!(setting.kind, Kind::Fields));
            let is_taken = if is_fields { value.is_str() } else { value.is_table() };
            if !is_taken {
                inside.report(key.get_ref(), format!("is {}; write {expected}", kind_of(value)));
            }
        }
    }

    fn unknown(&self, name: &str, at: usize) {
        if self.is_unknown {
            return;
        }
        let mut known: Vec<&str> = self.settings().map(|setting| setting.name).collect();
        known.sort_unstable();
        let meant = nearest(name, known.iter().copied());
        let fix = meant.map_or_else(|| "remove it.".to_owned(), |meant| format!("did you mean {meant}?"));
        let place = format!("{} {}", self.source.location(at), self.path_of(name));
        self.report_at(place, format!("unknown setting; {fix} Known settings: {}", known.join(", ")));
    }
}

/// Returns the most similar known name, if one is similar enough.
fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name = name.to_lowercase().replace('-', "_");
    let alike = known.into_iter().map(|known| (strsim::jaro_winkler(&name, known), known));
    alike.filter(|(alike, _)| MIN_ALIKE <= *alike).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// Returns `; did you mean orders? Otherwise …` if a known name is similar, and `; …` if none is.
pub fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, fix: &str) -> String {
    match nearest(name, known) {
        Some(meant) => format!("; did you mean {meant}? Otherwise {fix}"),
        None => format!("; {fix}"),
    }
}

/// Describes the kind of a value.
///
/// It never shows the value, which may be a misplaced secret.
pub(in super::super) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an unexpected whole number",
        DeValue::Float(_) => "an unexpected number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list of something else",
        DeValue::Table(_) => "a table",
    }
}
