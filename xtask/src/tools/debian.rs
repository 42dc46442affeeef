//! Installs Debian packages, only as root, which is usually a container.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::command_line::CommandLine;

pub(super) fn is_root_on_it(root: &Path) -> bool {
    let uid = CommandLine::new("id", &["-u"]).answer(root);
    let has_apt = CommandLine::new("apt-get", &["--version"]).answer(root).is_some();
    uid.is_some_and(|uid| uid.trim() == "0") && has_apt && Path::new("/etc/debian_version").exists()
}

/// Whether the package list was updated: once for all packages of a run.
static UPDATED: Mutex<bool> = Mutex::new(false);

pub(super) fn install(root: &Path, package: &str) -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        let line = CommandLine::new("apt-get", &["-qq", "-o", "Acquire::Retries=3"]).and(arguments);
        line.env("DEBIAN_FRONTEND", "noninteractive").run(root)
    };
    let mut updated = UPDATED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*updated {
        apt(&["update"])?;
        *updated = true;
    }
    apt(&["install", "-y", "--no-install-recommends", package])
}
