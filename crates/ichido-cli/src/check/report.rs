//! What is found, on standard output.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use ichido_core::boundary::{Boundary, Finding, report};

use super::args::Format;
use super::{misused, paint};
use crate::exit::Exit;

/// What was judged, and what was found.
pub(super) struct Report<'a> {
    pub(super) findings: &'a [Finding],
    pub(super) files: &'a [Boundary],
}

impl Report<'_> {
    /// Shows it.
    pub(super) fn show(&self, format: Format) -> Result<(), Exit> {
        match format {
            Format::Human => {
                say_painted(&report::people(self.findings, self.files.len()))?;
                match self.findings.first() {
                    Some(first) => say(&format!("why: ichido check --explain {}\n", first.rule.id)),
                    None => Ok(()),
                }
            }
            Format::Mermaid => say(&report::mermaid(self.files, self.findings)),
            Format::Json => say(&report::json(self.findings, self.files.len())),
            Format::Sarif | Format::Github => machine_report(self.findings, format),
        }
    }
}

/// Shows findings that are about no file that was read, to machines. People are told in other words, and a drawing would
/// have nothing in it.
pub(super) fn machine_report(findings: &[Finding], format: Format) -> Result<(), Exit> {
    match format {
        Format::Human | Format::Mermaid => Ok(()),
        Format::Json => say(&report::json(findings, 0)),
        Format::Sarif => say(&report::sarif(findings, env!("CARGO_PKG_VERSION"))),
        Format::Github => say(&report::github(findings)),
    }
}

/// Says it in colours, if a person sees them.
fn say_painted(text: &str) -> Result<(), Exit> {
    let setting = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = setting("TERM").is_none_or(|term| term == "dumb");
    if io::stdout().is_terminal() && setting("NO_COLOR").is_none() && !is_dumb {
        say(&paint::painted(text))
    } else {
        say(text)
    }
}

/// Says it on standard output. A reader who has seen enough and went away is no failure.
pub(super) fn say(text: &str) -> Result<(), Exit> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(misused("standard output", format!("the report cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
