//! `--init`: writes the starting set, all boundary files or none, and overwrites nothing.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use ichido_boundary::{STARTING, STARTING_README};
use ichido_core::settings::ConfigErrors;
use serde_json::json;

use super::report::print;
use crate::exit::Exit;

const README: &str = "README.md";

/// Writes the starting set into the current folder. An existing README stays unchanged.
pub(super) fn write(json: bool) -> Result<(), Exit> {
    // A dangling link counts as existing: writing through it would create a file elsewhere.
    let is_there = |name: &str| fs::symlink_metadata(name).is_ok();
    let mut faults = ConfigErrors::default();
    for (name, _) in STARTING.iter().filter(|(name, _)| is_there(name)) {
        faults
            .add(*name, "this file already exists; nothing was written, run the command in an empty folder");
    }
    faults.or(Some(()))?;
    let readme = (!is_there(README)).then_some((README, STARTING_README));
    let set: Vec<(&str, &str)> = STARTING.into_iter().chain(readme).collect();
    for (index, (name, text)) in set.iter().enumerate() {
        let mut is_made = false;
        let written = OpenOptions::new().write(true).create_new(true).open(name).and_then(|mut file| {
            is_made = true;
            file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            let made = set.iter().take(index + usize::from(is_made));
            return Err(Exit::invalid(*name, format!("cannot write it: {error}{}", remove_written(made))));
        }
    }
    let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
    if json {
        return print(&format!("{}\n", json!({ "written": names })));
    }
    let kept = if readme.is_none() { "kept the existing README.md\n" } else { "" };
    print(&format!("wrote {}\n{kept}next: ichido check .\n", names.join(", ")))
}

/// Removes the files that were written, and describes whether any are left.
fn remove_written<'a>(made: impl Iterator<Item = &'a (&'a str, &'a str)>) -> String {
    let left: Vec<&str> = made.map(|(name, _)| *name).filter(|name| fs::remove_file(name).is_err()).collect();
    if left.is_empty() {
        "; nothing was written".to_owned()
    } else {
        format!("; these files were written and could not be removed: {}", left.join(", "))
    }
}
