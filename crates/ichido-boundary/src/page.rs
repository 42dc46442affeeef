//! A rule's page: what it asks for, why, and an example, for `--explain` and for `docs/rules`.

use std::fmt::Write as _;

use super::rules::{Example, Rule, Severity};

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl Rule {
    /// The rule's page, in Markdown.
    pub fn page(&self) -> String {
        let Self { id, severity, spec, title, why, mend, example, .. } = self;
        let severity = severity.as_str();
        let mut page = format!("# {id}: {title}\n\n{severity}, SPEC {spec}\n");
        // A `String` takes whatever is written to it.
        _ = write!(page, "\n## Why\n\n{why}\n\n## Mend\n\n{mend}\n\n## Example\n\n");
        _ = write!(page, "Found, {}:\n\n{}\n", example.place(), shown(example.failing));
        _ = write!(page, "Mended, {}:\n\n{}", example.place(), shown(example.mended));
        page
    }
}

impl Example {
    fn place(&self) -> String {
        let place = match self.pointer {
            "" => format!("for the whole of `{}` of the starting set", self.file),
            pointer => format!("at `{pointer}` in `{}` of the starting set", self.file),
        };
        let without = self.without.iter().map(|file| format!(" without `{file}`"));
        std::iter::once(place).chain(without).collect()
    }
}

fn shown(text: &str) -> String {
    match text.trim() {
        "null" => "(the file is not there)\n".to_owned(),
        text => format!("```json\n{text}\n```\n"),
    }
}
