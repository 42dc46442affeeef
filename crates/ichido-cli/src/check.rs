//! `ichido check`: checks boundary files, and which guarantees a change loosens.
//!
//! Guarantee: whatever the given paths contain, it ends with a report or with one clear error for each unreadable
//! file, and changes nothing. Only `--init` writes: all of its boundary files or none, and never over an existing
//! file.
//!
//! Start at [`run`]. The rules are in [`ichido_boundary`]; this module finds and reads files and prints findings.
// Spec: C8.

mod allowed;
mod args;
mod diff;
mod naming;
mod reading;
mod report;
mod starting;

use ichido_boundary::report::Findings;
use ichido_boundary::{BoundaryRule, Finding, check, rules};
use serde_json::{Value, json};

pub(crate) use args::Args;
use ichido_core::text::table::Column;
pub(crate) use reading::read_file;

use crate::exit::Exit;
use crate::out;
use allowed::{AllowList, CheckSubject};
use args::CheckTask;
use reading::read_all;
use report::{CheckReport, print};

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Exit> {
    match args.task() {
        CheckTask::List if args.json => {
            let rules: Vec<Value> = rules().map(to_json).collect();
            print(&format!("{}\n", json!({ "rules": rules })))
        }
        CheckTask::List => print(&list()),
        CheckTask::Explain(id) => {
            let rule = naming::find(id).map_err(|what| Exit::invalid("--explain", what))?;
            print(&if args.json { format!("{}\n", to_json(rule)) } else { rule.page.to_owned() })
        }
        CheckTask::Init => starting::write(args.json),
        CheckTask::Diff => diff::run(args),
        CheckTask::Check => {
            let mut allowed = AllowList::parse(&args.allow, CheckSubject::Files)?;
            let files = read_all(&args.files).map_err(|unread| unread.into_exit(args.format()))?;
            let (open, allowed) = allowed.split(check(&files));
            CheckReport::of_files(Findings { open: &open, allowed: &allowed }, &files).show(args.format())?;
            fail_on(&open)
        }
    }
}

fn list() -> String {
    let rows = rules().map(|rule| [rule.id, rule.severity.as_str(), rule.title].map(str::to_owned));
    let columns = [Column::text("RULE"), Column::text("SEVERITY"), Column::free("REQUIREMENT")];
    out::view().table(columns, rows)
}

fn to_json(rule: &BoundaryRule) -> Value {
    json!({
        "id": rule.id,
        "severity": rule.severity.as_str(),
        "title": rule.title,
        "why": rule.why,
        "help": rule.help,
    })
}

fn fail_on(findings: &[Finding]) -> Result<(), Exit> {
    if findings.is_empty() { Ok(()) } else { Err(Exit::Findings) }
}
