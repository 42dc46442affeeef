//! Node and npm, which test the browser's module and fetch its test dependencies.

use std::path::Path;

use super::program::Program;
use crate::command_line::CommandLine;

/// The oldest version that the module supports: Debian's.
const MIN_MAJOR: u32 = 18;
/// The module's folder.
pub(crate) const FOLDER: &str = "clients/js";
/// The folder of the tools that read the API's description.
pub(crate) const OPENAPI_FOLDER: &str = "xtask/openapi";
/// The file beside the packages that records what was installed.
const INSTALLED: &str = "node_modules/.ichido-lock.json";

pub(super) const NODE: Program = Program {
    name: "node",
    package: "nodejs",
    version: node_version,
    advice: "\
the tests of the browser client need Node 18 or later, but no such `node` is on PATH.
Install it with `sudo apt-get install nodejs npm` (Debian, Ubuntu) or `brew install node` (macOS).",
};

pub(super) const NPM: Program = Program {
    name: "npm",
    package: "npm",
    version: npm_version,
    advice: "\
the tests of the browser client install their packages with npm, but `npm` is not on PATH.
Install it with `sudo apt-get install npm` (Debian, Ubuntu); elsewhere it comes with Node.",
};

/// Installs the packages of the lock file, each verified by its checksum, unless that was done.
pub(crate) fn ensure_packages(root: &Path, folder: &str) -> Result<(), String> {
    println!("npm packages of {folder}");
    let folder = root.join(folder);
    let lock = folder.join("package-lock.json");
    let wanted = std::fs::read(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let installed = folder.join(INSTALLED);
    if std::fs::read(&installed).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    println!("installing the packages");
    CommandLine::new("npm", &["ci", "--loglevel", "error"]).run(&folder)?;
    std::fs::write(&installed, wanted).map_err(|error| format!("{}: {error}", installed.display()))
}

/// Returns the version in `v20.20.2`, if it is new enough.
fn node_version(answer: &str) -> Option<&str> {
    let version = answer.trim().strip_prefix('v')?;
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (MIN_MAJOR <= major).then_some(version)
}

/// Returns the version in `9.2.0`.
fn npm_version(answer: &str) -> Option<&str> {
    let version = answer.trim();
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_are_parsed_from_node_and_npm() {
        assert_eq!(node_version("v18.20.4\n"), Some("18.20.4"));
        assert_eq!(npm_version("9.2.0\n"), Some("9.2.0"));
    }

    #[test]
    fn an_old_node_and_other_programs_are_refused() {
        for answer in ["v16.20.2", "18.20.4", "", "node"] {
            assert_eq!(node_version(answer), None, "{answer:?}");
        }
        assert_eq!(npm_version("Usage: npm"), None);
    }
}
