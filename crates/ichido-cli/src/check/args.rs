//! The flags of `ichido check`, before validation.

use std::path::PathBuf;

use clap::ValueEnum;

const AFTER_HELP: &str = "\
Exit code: 0 when there is nothing to mend, 1 when there are findings, errors or warnings alike, and 2 when a file
cannot be read or the command makes no sense. On a finding of severity error `ichido proxy` does not start; a warning
that is meant can be accepted with --allow.

Examples:
  ichido check boundaries/                               all files of one way
  ichido check boundaries/*/                             several ways, each in a folder of its own
  ichido check --diff ../before/boundaries boundaries    what a change loosens
  ichido check --explain ICH-B020                        what a rule asks for, and why";

/// What `ichido check` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Boundary files, or folders for the *.json in them. Give all files of a way at once
    #[arg(value_name = "FILE", required_unless_present_any = ["explain", "list", "init"])]
    pub(super) files: Vec<PathBuf>,

    /// How to show what is found
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// The same as --format json; with --list, --explain and --init it is for programs as well
    #[arg(long, conflicts_with = "format")]
    pub(super) json: bool,

    /// Compare two versions: the first half of the files is old, the second new, each with its other version at the
    /// same position; two folders are compared whole. Where there is no old version yet, nothing is found
    #[arg(long)]
    diff: bool,

    /// Accept what a rule finds: warnings, or anything that --diff finds. The reason is shown
    #[arg(long, value_name = "RULE=REASON")]
    pub(super) allow: Vec<String>,

    /// Say what a rule asks for, why, and how to mend what it finds; ICH-B020 may be cut to b020 or 20
    #[arg(long, value_name = "RULE", conflicts_with_all = ["files", "format", "diff", "allow", "list", "init"])]
    explain: Option<String>,

    /// List the rules
    #[arg(long, conflicts_with_all = ["files", "format", "diff", "allow", "init"])]
    list: bool,

    /// Write a set of files that keeps every rule into the current folder, with a README if there is none; overwrites
    /// nothing
    #[arg(long, conflicts_with_all = ["files", "format", "diff", "allow"])]
    init: bool,
}

/// How findings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people: what is wrong, where, and how to mend it
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// A flowchart of the hops in Mermaid, broken links in red
    Mermaid,
}

/// The task to run.
pub(super) enum CheckTask<'a> {
    List,
    Explain(&'a str),
    Init,
    Diff,
    Check,
}

impl Args {
    /// Returns the output format.
    pub(super) const fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Returns the task; the command line allows only one at a time.
    pub(super) fn task(&self) -> CheckTask<'_> {
        match self {
            Self { explain: Some(id), .. } => CheckTask::Explain(id),
            Self { list: true, .. } => CheckTask::List,
            Self { init: true, .. } => CheckTask::Init,
            Self { diff: true, .. } => CheckTask::Diff,
            _ => CheckTask::Check,
        }
    }
}
