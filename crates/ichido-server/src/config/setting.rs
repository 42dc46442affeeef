//! The declaration of a setting: its name, values, default and meaning.

use super::kind::Kind;

/// The settings of a TOML table, in groups that several tables may share.
pub(super) type SettingTable = &'static [&'static [Setting]];
/// Defaults as TOML, by the names of their settings.
pub(super) type Presets = Vec<(String, String)>;

/// One row of the table of settings.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) absent: Absent,
    pub(super) variable: Option<Variable>,
    /// Its meaning, for people.
    pub(super) about: &'static str,
}

/// What applies if a setting is absent. Texts are without quotes.
#[derive(Debug)]
pub(super) enum Absent {
    /// This value.
    Is(&'static str),
    /// The duration, unless the other setting is shorter.
    AtMost(&'static str, &'static str),
    /// The duration, unless the other setting is longer.
    AtLeast(&'static str, &'static str),
    /// The defaults of its members.
    Members,
    /// Nothing. The value is an example.
    Unset(&'static str),
    /// Its absence is an error. The value is an example.
    Required(&'static str),
}

/// An environment variable with its own name that wins over the file.
#[derive(Debug)]
pub(super) enum Variable {
    /// A whole number, its unit as a setting, and the section that it wins over.
    Number(&'static str, &'static str, &'static str),
    /// A variable that the commands or the trace exporter apply.
    Elsewhere(&'static str),
}

impl Setting {
    /// Formats a value of this setting as TOML.
    pub(super) fn toml(&self, value: &str) -> String {
        let is_text = match self.kind {
            Kind::WordOr(..) => !value.starts_with('{'),
            Kind::Text | Kind::Reference | Kind::Secret | Kind::Path | Kind::Address => true,
            _ => matches!(self.kind, Kind::Word(_) | Kind::Time(..) | Kind::Size(..)),
        };
        if is_text { format!("{value:?}") } else { value.to_owned() }
    }

    /// Returns the default as TOML, or else an example.
    pub(super) fn example(&self) -> String {
        match (&self.absent, &self.kind) {
            (Absent::Members, Kind::Table(table)) => {
                let members = table.iter().copied().flatten().filter(|member| member.has_default());
                inline(members.map(|member| (member.name, member.example())))
            }
            (Absent::Members, _) => String::new(),
            (
                Absent::Is(value)
                | Absent::AtMost(_, value)
                | Absent::AtLeast(_, value)
                | Absent::Unset(value)
                | Absent::Required(value),
                _,
            ) => self.toml(value),
        }
    }

    /// Describes its meaning, and the variable that wins over the file.
    pub(super) fn description(&self) -> String {
        let about = self.about;
        match self.variable {
            None => about.to_owned(),
            Some(Variable::Elsewhere(name)) => format!("{about} The variable {name} wins over the file."),
            Some(Variable::Number(name, unit, section)) => {
                let unit = match unit {
                    "ms" => ", in milliseconds,",
                    "m" => ", in minutes,",
                    _ => "",
                };
                format!("{about} The variable {name}{unit} wins over `[{section}]`.")
            }
        }
    }

    pub(super) fn has_default(&self) -> bool {
        !matches!(self.absent, Absent::Unset(_) | Absent::Required(_))
    }

    /// Describes the error of a missing required setting.
    pub(super) fn missing_error(&self) -> String {
        match self.kind {
            Kind::Word(words) => {
                // Sentences that begin with a value explain it, and get lines of their own.
                let values = self.about.split(". `").skip(1).map(|value| value.trim_end_matches('.'));
                let choice = format!("is missing; set it to one of: {}", words.join(", "));
                std::iter::once(&*choice).chain(values).collect::<Vec<_>>().join("\n`")
            }
            _ => format!("is missing; add it, such as {} = {}", self.name, self.example()),
        }
    }
}

/// Formats members as an inline table.
pub(super) fn inline<'k>(members: impl Iterator<Item = (&'k str, String)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{{ {} }}", members.join(", "))
}
