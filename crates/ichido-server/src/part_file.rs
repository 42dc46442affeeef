//! A file that is written beside its target and then renamed.
//!
//! Guarantee: a reader of the target sees the old content or the whole new one, never a part.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A temporary file, removed on drop unless it was renamed to its target.
pub struct PartFile {
    target: PathBuf,
    name: PathBuf,
    file: File,
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        _ = std::fs::remove_file(&self.name);
    }
}

impl PartFile {
    /// Creates the temporary file, and so checks that the target can be written.
    ///
    /// `protected` are files that must not be overwritten.
    pub fn create(target: &Path, protected: &[&Path]) -> Result<Self, String> {
        let shown = target.display();
        // The target of a link, not the link itself.
        let target = if target.exists() {
            target.canonicalize().map_err(|error| format!("{shown}: {error}"))?
        } else {
            target.to_owned()
        };
        if target.exists() && !target.is_file() {
            return Err(format!("{shown} is not a file; pass the path of a file"));
        }
        let is_same = |other: &&Path| other.canonicalize().is_ok_and(|other| other == target);
        if let Some(other) = protected.iter().find(|other| is_same(other)) {
            return Err(format!("{shown} would overwrite {}; pass another file", other.display()));
        }
        let Some(name) = target.file_name() else { return Err(format!("{shown} does not name a file")) };
        let mut part = name.to_owned();
        part.push(format!(".{:08x}.part", fastrand::u32(..)));
        let name = target.with_file_name(part);
        // Never an existing file, even if somebody guessed the name.
        let file = OpenOptions::new().write(true).create_new(true).open(&name);
        let file = file.map_err(|error| {
            format!("cannot write {shown}: {error}; its folder must exist and be writable")
        })?;
        Ok(Self { target, name, file })
    }

    /// Writes the text and renames the file; it is on disk when this returns.
    pub fn finish(mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        std::fs::rename(&self.name, &self.target)
    }
}
