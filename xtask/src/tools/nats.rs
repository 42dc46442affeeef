//! nats-server, of which tests start their own.

use std::path::Path;

use super::debian;
use crate::line::Line;

/// What a person can do where we do not install.
const ADVICE: &str = "\
the tests publish to servers of NATS that they start themselves, and nats-server is not on PATH.
Install it with `sudo apt-get install nats-server` (Debian, Ubuntu) or `brew install nats-server` (macOS), or put the
binary from https://github.com/nats-io/nats-server/releases there. No server has to run.";

/// Finds nats-server and tells its version; as root on Debian, installs it first if need be.
pub(super) fn ensure(root: &Path) -> Result<String, String> {
    if let Some(found) = find(root) {
        return Ok(found);
    }
    if !debian::is_root_on_it(root) {
        return Err(ADVICE.to_owned());
    }
    println!("nats-server is missing; installing it");
    debian::install(root, "nats-server").map_err(|error| format!("{error}\n{ADVICE}"))?;
    find(root).ok_or_else(|| ADVICE.to_owned())
}

fn find(root: &Path) -> Option<String> {
    version(&Line::new("nats-server", &["--version"]).answer(root)?).map(str::to_owned)
}

/// The version in `nats-server: v2.9.10`.
fn version(answer: &str) -> Option<&str> {
    answer.lines().next()?.strip_prefix("nats-server: v")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_nats_server_says() {
        assert_eq!(version("nats-server: v2.9.10\n"), Some("2.9.10"));
    }

    #[test]
    fn a_program_that_only_bears_the_name_is_not_taken() {
        for answer in ["", "2.9.10", "nats: v0.1.1"] {
            assert_eq!(version(answer), None, "{answer:?}");
        }
    }
}
