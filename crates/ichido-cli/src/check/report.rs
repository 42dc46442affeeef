//! Prints findings to standard output.

use ichido_boundary::report::{self, Findings};
use ichido_boundary::{Boundary, Finding};
use ichido_core::text::visible;

use super::allowed::note;
use super::args::Format;
use crate::exit::Exit;
use crate::out;

/// The checked files and their findings.
pub(super) struct CheckReport<'a> {
    pub(super) findings: Findings<'a>,
    pub(super) files: &'a [Boundary],
    /// The last line, for people.
    pub(super) summary: String,
}

impl<'a> CheckReport<'a> {
    /// Creates the report on files, not on a change.
    pub(super) fn of_files(findings: Findings<'a>, files: &'a [Boundary]) -> Self {
        Self { findings, files, summary: report::summary(&findings, files) }
    }

    /// Prints the report.
    pub(super) fn show(&self, format: Format) -> Result<(), Exit> {
        match format {
            Format::Human => {
                let worst = self.findings.open.iter().min_by_key(|finding| finding.rule.severity);
                let why = worst.map(|worst| format!("why: ichido check --explain {}\n", worst.rule.id));
                let text = report::people(&self.findings) + &why.unwrap_or_default() + &self.summary;
                print_colourized(&text)
            }
            Format::Mermaid => {
                // A diagram has no space for reasons.
                for report::Allowed { finding, reason } in self.findings.allowed {
                    note(&format!(
                        "allowed {}: {} (reason: {reason})",
                        finding.rule.id,
                        visible(&finding.what)
                    ));
                }
                print(&report::mermaid(self.files, self.findings.open))
            }
            Format::Json | Format::Sarif | Format::Github => {
                machine_report(&self.findings, self.files.len(), format)
            }
        }
    }
}

/// Reports unreadable files in machine formats.
///
/// People get an error message instead, and a diagram would be empty.
pub(super) fn report_unread(findings: &[Finding], format: Format) -> Result<(), Exit> {
    machine_report(&Findings::open(findings), 0, format)
}

fn machine_report(findings: &Findings<'_>, files: usize, format: Format) -> Result<(), Exit> {
    match format {
        Format::Human | Format::Mermaid => Ok(()),
        Format::Json => print(&report::json(findings, files)),
        Format::Sarif => print(&report::sarif(findings, env!("CARGO_PKG_VERSION"))),
        Format::Github => print(&report::github(findings)),
    }
}

/// Prints in colour, if that is wanted.
fn print_colourized(text: &str) -> Result<(), Exit> {
    if out::view().colours { print(&report::colourized(text)) } else { print(text) }
}

/// Prints to standard output. A reader that closes the pipe early is not an error.
pub(super) fn print(text: &str) -> Result<(), Exit> {
    out::write(text.as_bytes())
        .map_err(|error| Exit::invalid("standard output", format!("cannot write the report: {error}")))
}
