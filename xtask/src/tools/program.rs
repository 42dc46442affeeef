//! A program that tests start: found on PATH, or installed as a Debian package.

use std::path::Path;

use super::debian;
use crate::command_line::CommandLine;

/// A program to look for.
pub(super) struct Program {
    /// Its name.
    pub(super) name: &'static str,
    /// The Debian package that contains it.
    pub(super) package: &'static str,
    /// Returns the version in its `--version` output; `None` if another program has its name.
    pub(super) version: fn(&str) -> Option<&str>,
    /// What a person can do where it is not installed automatically.
    pub(super) advice: &'static str,
}

impl Program {
    /// Finds it and prints its version; as root on Debian, installs it first if necessary.
    pub(super) fn ensure(&self, root: &Path) -> Result<String, String> {
        if let Some(found) = self.find(root) {
            return Ok(found);
        }
        let advice = self.advice.to_owned();
        if !debian::is_root_on_it(root) {
            return Err(advice);
        }
        println!("{} is missing; installing it", self.name);
        debian::install(root, self.package).map_err(|error| format!("{error}\n{advice}"))?;
        self.find(root).ok_or(advice)
    }

    fn find(&self, root: &Path) -> Option<String> {
        (self.version)(&CommandLine::new(self.name, &["--version"]).answer(root)?).map(str::to_owned)
    }
}
