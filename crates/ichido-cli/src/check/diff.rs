//! `--diff`: which changes loosen a guarantee.

use std::path::PathBuf;

use ichido_core::boundary::{Boundary, loosened};

use super::allowed::{Allowed, Judged};
use super::args::{Args, Format};
use super::reading::{read_all, shown};
use super::report::{Report, say};
use super::{ended, misconfigured, misused};
use crate::exit::Exit;
use crate::faults::Faults;

const FLAG: &str = "--diff";

/// Says what the second half of the files loosens against the first.
pub(super) fn run(args: &Args) -> Result<(), Exit> {
    let mut allowed = Allowed::parse(&args.allow, Judged::Change)?;
    let (old_paths, new_paths) = halves(&args.files)?;
    let (old, new) = match (read_all(old_paths), read_all(new_paths)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(unread), Ok(_)) | (Ok(_), Err(unread)) => return Err(unread.end(args.format)),
        (Err(old), Err(new)) => return Err(old.and(new).end(args.format)),
    };
    match_up(old_paths.iter().zip(new_paths), &old, &new).or(Some(())).map_err(misconfigured)?;
    let all = loosened(&old, &new);
    let others = if all.is_empty() { "no change" } else { "no other change" };
    let findings = allowed.sift(all);
    match (args.format, findings.first()) {
        (Format::Human, None) => {
            let (old, new) = (old.len(), new.len());
            say(&format!("old files: {old}, new files: {new}; {others} loosens a guarantee\n"))?;
        }
        (Format::Human, Some(first)) => {
            Report { findings: &findings, files: &new }.show(args.format)?;
            say(&format!("a change that is meant: --allow {}=REASON\n", first.rule.id))?;
        }
        _ => Report { findings: &findings, files: &new }.show(args.format)?,
    }
    ended(&findings)
}

fn halves(paths: &[PathBuf]) -> Result<(&[PathBuf], &[PathBuf]), Exit> {
    if paths.len().is_multiple_of(2) {
        return Ok(paths.split_at(paths.len() / 2));
    }
    let what = format!(
        "{} cannot be halved into old and new; give two folders, or as many old files as new ones, all old ones first",
        if paths.len() == 1 { "one path".to_owned() } else { format!("{} paths", paths.len()) },
    );
    Err(misused(FLAG, what))
}

/// What does not stand where its other version should. To compare it would tell of changes that nobody made.
fn match_up<'a>(
    pairs: impl Iterator<Item = (&'a PathBuf, &'a PathBuf)>,
    old: &[Boundary],
    new: &[Boundary],
) -> Faults {
    let mut faults = Faults::default();
    for (before, after) in pairs {
        let both = format!("{} and {}, its new version by its position,", shown(before), shown(after));
        let how = "give all old ones first and the new ones in the same order, or two folders";
        if before.is_dir() != after.is_dir() {
            faults.add(FLAG, format!("{both} are not both files or both folders; {how}"));
        }
        let name = |files: &[Boundary], path| {
            files.iter().find(|file| file.file() == shown(path)).map(Boundary::name)
        };
        if let (Some(was), Some(is)) = (name(old, before), name(new, after))
            && was != is
        {
            faults.add(FLAG, format!("{both} are about {was} and {is}; {how}"));
        }
    }
    faults
}
