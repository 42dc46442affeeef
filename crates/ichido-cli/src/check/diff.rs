//! `--diff`: finds changes that loosen a guarantee.

use std::path::PathBuf;

use ichido_boundary::report::Findings;
use ichido_boundary::{Boundary, loosened};
use ichido_core::settings::ConfigErrors;
use ichido_core::text::visible;

use super::allowed::{AllowList, CheckSubject, note};
use super::args::Args;
use super::fail_on;
use super::reading::{display_path, has_no_files, read_all};
use super::report::CheckReport;
use crate::exit::Exit;

const FLAG: &str = "--diff";

/// Reports what the second half of the files loosens compared with the first.
pub(super) fn run(args: &Args) -> Result<(), Exit> {
    let mut allowed = AllowList::parse(&args.allow, CheckSubject::Change)?;
    let (old_paths, new_paths) = halves(&args.files)?;
    let pairs = old_paths.iter().zip(new_paths);
    // The first change that adds boundary files has nothing to compare with, and must pass.
    let (missing, pairs): (Vec<_>, Vec<_>) = pairs.partition(|(before, _)| has_no_files(before));
    let before: Vec<PathBuf> = pairs.iter().map(|(before, _)| PathBuf::clone(before)).collect();
    let (old, new) = match (read_all(&before), read_all(new_paths)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(unread), Ok(_)) | (Ok(_), Err(unread)) => return Err(unread.into_exit(args.format())),
        (Err(old), Err(new)) => return Err(old.merge(new).into_exit(args.format())),
    };
    match_up(pairs.into_iter(), &old, &new).or(Some(()))?;
    let all = if old.is_empty() { Vec::new() } else { loosened(&old, &new) };
    for (path, _) in missing {
        note(&format!(
            "{}: the old version has no boundary file; nothing was compared",
            visible(&display_path(path))
        ));
    }
    let (open, allowed) = allowed.split(all);
    let findings = Findings { open: &open, allowed: &allowed };
    let summary = summary(&findings, &old, &new);
    CheckReport { findings, files: &new, summary }.show(args.format())?;
    fail_on(&open)
}

fn summary(findings: &Findings<'_>, old: &[Boundary], new: &[Boundary]) -> String {
    let others = if findings.allowed.is_empty() { "" } else { "other " };
    let found = match findings.open.len() {
        _ if old.is_empty() => "there is no old guarantee to loosen".to_owned(),
        0 => format!("no {others}change loosens a guarantee"),
        1 => format!("1 {others}change loosens a guarantee"),
        count => format!("{count} {others}changes loosen a guarantee"),
    };
    let allowed = match findings.allowed.len() {
        0 => String::new(),
        count => format!(", {count} allowed"),
    };
    format!("old files: {}, new files: {}; {found}{allowed}\n", old.len(), new.len())
}

fn halves(paths: &[PathBuf]) -> Result<(&[PathBuf], &[PathBuf]), Exit> {
    if paths.len().is_multiple_of(2) {
        return Ok(paths.split_at(paths.len() / 2));
    }
    let what = format!(
        "cannot split {} into old and new; pass two folders, or as many old files as new ones, all old ones first",
        if paths.len() == 1 { "one path".to_owned() } else { format!("{} paths", paths.len()) },
    );
    Err(Exit::invalid(FLAG, what))
}

/// Finds files that are not paired with their other version.
///
/// Comparing those would report changes that nobody made.
fn match_up<'a>(
    pairs: impl Iterator<Item = (&'a PathBuf, &'a PathBuf)>,
    old: &[Boundary],
    new: &[Boundary],
) -> ConfigErrors {
    let mut faults = ConfigErrors::default();
    for (before, after) in pairs {
        let both =
            format!("{} and {}, its new version by position,", display_path(before), display_path(after));
        let how = "pass all old ones first and the new ones in the same order, or two folders";
        if before.is_dir() != after.is_dir() {
            faults.add(FLAG, format!("{both} are not both files or both folders; {how}"));
        }
        let name = |files: &[Boundary], path| {
            files.iter().find(|file| file.file() == display_path(path)).map(Boundary::name)
        };
        if let (Some(was), Some(is)) = (name(old, before), name(new, after))
            && was != is
        {
            faults.add(FLAG, format!("{both} describe {was} and {is}; {how}"));
        }
    }
    faults
}
