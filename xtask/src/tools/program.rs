//! A program that tests start: found on PATH, or installed as a package of Debian.

use std::path::Path;

use super::debian;
use crate::command_line::CommandLine;

/// What is looked for.
pub(super) struct Program {
    /// Its name.
    pub(super) name: &'static str,
    /// The package of Debian that brings it.
    pub(super) package: &'static str,
    /// The version in what it says to `--version`; `None` is that something else bears its name.
    pub(super) version: fn(&str) -> Option<&str>,
    /// What a person can do where we do not install.
    pub(super) advice: &'static str,
}

impl Program {
    /// Finds it and tells its version; as root on Debian, installs it first if need be.
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
