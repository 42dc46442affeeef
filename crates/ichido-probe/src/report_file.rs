//! The files of reports.
//!
//! Guarantee: a file that cannot be written is found before anything is sent.

use std::fs::OpenOptions;
use std::path::Path;

/// Fails if a report's file cannot be written; leaves it as it was.
pub fn check_writable(file: &Path) -> Result<(), String> {
    let is_there = file.exists();
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map_err(|error| {
        format!("cannot write {}: {error}; check that its folder exists and is yours", file.display())
    })?;
    if !is_there {
        // It is written at the end.
        _ = std::fs::remove_file(file);
    }
    Ok(())
}
