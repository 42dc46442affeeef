//! The flags of `ichido check`, before validation.

use std::path::PathBuf;

use clap::ValueEnum;

const AFTER_HELP: &str = "\
Exit code: 0 without findings, 1 for findings, both errors and warnings, and
2 for an unreadable file or a usage error. `ichido proxy` does not start with a finding of severity
error. Accept an intended warning with --allow.

--diff pairs files by position: pass all old files first, then the new ones in the same order, or two folders. Without an
old version there are no findings.

Examples:
  ichido check boundaries/                               all files of one hop chain
  ichido check boundaries/*/                             several hop chains, each in its own folder
  ichido check --diff ../before/boundaries boundaries    guarantees that a change loosens
  ichido check --explain ICH-B020                        what a rule requires, and why";

/// Arguments of `ichido check`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Boundary files or their folders; pass a whole hop chain
    #[arg(value_name = "FILE", default_value = ".")]
    pub(super) files: Vec<PathBuf>,

    /// Output format of findings
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Print JSON; also works with --list, --explain and --init
    #[arg(long, conflicts_with = "format")]
    pub(super) json: bool,

    /// Compare old and new files or folders: report loosened guarantees
    #[arg(long)]
    diff: bool,

    /// Accept a warning, or any finding of --diff; prints the reason
    #[arg(long, value_name = "RULE=REASON")]
    pub(super) allow: Vec<String>,

    /// Explain a rule, such as ICH-B020, b020 or 20
    #[arg(long, value_name = "RULE", conflicts_with_all = ["files", "format", "diff", "allow", "list", "init"])]
    explain: Option<String>,

    /// List the rules
    #[arg(long, conflicts_with_all = ["files", "format", "diff", "allow", "init"])]
    list: bool,

    /// Write example files that satisfy every rule; overwrite nothing
    #[arg(long, conflicts_with_all = ["files", "format", "diff", "allow"])]
    init: bool,
}

/// How findings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people: problem, location and help
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub Actions annotations
    Github,
    /// Mermaid flowchart of the hops, broken links in red
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
