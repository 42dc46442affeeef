//! strace, with which a test counts how often the disk was waited for.

use std::path::Path;

use super::debian;
use crate::line::Line;

/// What a person can do where we do not install.
const ADVICE: &str = "\
the tests count syncs of the disk with strace, which is not on PATH.
Install it with `sudo apt-get install strace` (Debian, Ubuntu) or `sudo dnf install strace` (Fedora).";

/// Finds strace and tells its version; as root on Debian, installs it first if need be.
pub(super) fn ensure(root: &Path) -> Result<String, String> {
    if let Some(found) = find(root) {
        return Ok(found);
    }
    if !debian::is_root_on_it(root) {
        return Err(ADVICE.to_owned());
    }
    println!("strace is missing; installing it");
    debian::install(root, "strace").map_err(|error| format!("{error}\n{ADVICE}"))?;
    find(root).ok_or_else(|| ADVICE.to_owned())
}

fn find(root: &Path) -> Option<String> {
    version(&Line::new("strace", &["--version"]).answer(root)?).map(str::to_owned)
}

/// The version in `strace -- version 6.1` and what follows.
fn version(answer: &str) -> Option<&str> {
    answer.lines().next()?.strip_prefix("strace -- version ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_strace_says() {
        let answer = "strace -- version 6.1\nCopyright (c) 1991-2022 The strace developers\n";
        assert_eq!(version(answer), Some("6.1"));
    }

    #[test]
    fn a_program_that_only_bears_the_name_is_not_taken() {
        for answer in ["", "6.1", "trace -- version 6.1"] {
            assert_eq!(version(answer), None, "{answer:?}");
        }
    }
}
