//! nats-server, which tests start.

use super::program::Program;

pub(super) const NATS: Program = Program {
    name: "nats-server",
    package: "nats-server",
    version,
    advice: "\
the tests start their own NATS servers, but `nats-server` is not on PATH.
Install it with `sudo apt-get install nats-server` (Debian, Ubuntu) or `brew install nats-server` (macOS), or put the
binary from https://github.com/nats-io/nats-server/releases on PATH. No server has to run.",
};

/// Returns the version in `nats-server: v2.9.10`.
fn version(answer: &str) -> Option<&str> {
    answer.lines().next()?.strip_prefix("nats-server: v")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_from_nats_server() {
        assert_eq!(version("nats-server: v2.9.10\n"), Some("2.9.10"));
    }

    #[test]
    fn another_program_of_the_same_name_is_refused() {
        for answer in ["", "2.9.10", "nats: v0.1.1"] {
            assert_eq!(version(answer), None, "{answer:?}");
        }
    }
}
