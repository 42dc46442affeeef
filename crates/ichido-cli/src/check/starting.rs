//! `--init`: the starting set, all of it or nothing, and over nothing.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use ichido_core::boundary::{STARTING, STARTING_README};

use super::report::say;
use super::{misconfigured, misused};
use crate::exit::Exit;
use crate::faults::Faults;

const README: &str = "README.md";

/// Writes the starting set into the current folder.
pub(super) fn write() -> Result<(), Exit> {
    let set: Vec<(&str, &str)> = STARTING.into_iter().chain([(README, STARTING_README)]).collect();
    let mut faults = Faults::default();
    // A link to nowhere counts as well: to write through it would make a file somewhere else.
    for (name, _) in set.iter().filter(|(name, _)| fs::symlink_metadata(name).is_ok()) {
        faults.add(*name, "this is there already, and nothing was written; run it in a folder of its own");
    }
    faults.or(Some(())).map_err(misconfigured)?;
    for (index, (name, text)) in set.iter().enumerate() {
        let mut is_made = false;
        let written = OpenOptions::new().write(true).create_new(true).open(name).and_then(|mut file| {
            is_made = true;
            file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            let made = set.iter().take(index + usize::from(is_made));
            return Err(misused(name, format!("this cannot be written: {error}{}", take_back(made))));
        }
    }
    let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
    say(&format!("wrote {}\nnext: ichido check .\n", names.join(", ")))
}

/// Removes what was made; answers in words whether that is all of it.
fn take_back<'a>(made: impl Iterator<Item = &'a (&'a str, &'a str)>) -> String {
    let left: Vec<&str> = made.map(|(name, _)| *name).filter(|name| fs::remove_file(name).is_err()).collect();
    if left.is_empty() {
        "; nothing was written".to_owned()
    } else {
        format!("; what was written before could not be removed: {}", left.join(", "))
    }
}
