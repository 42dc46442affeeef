//! strace, with which a test counts how often the disk was waited for.

use super::program::Program;

pub(super) const STRACE: Program = Program {
    name: "strace",
    package: "strace",
    version,
    advice: "\
the tests count disk syncs with strace, but `strace` is not on PATH.
Install it with `sudo apt-get install strace` (Debian, Ubuntu) or `sudo dnf install strace` (Fedora).",
};

/// Returns the version in `strace -- version 6.1` and what follows.
fn version(answer: &str) -> Option<&str> {
    answer.lines().next()?.strip_prefix("strace -- version ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_from_strace() {
        let answer = "strace -- version 6.1\nCopyright (c) 1991-2022 The strace developers\n";
        assert_eq!(version(answer), Some("6.1"));
    }

    #[test]
    fn another_program_of_the_same_name_is_refused() {
        for answer in ["", "6.1", "trace -- version 6.1"] {
            assert_eq!(version(answer), None, "{answer:?}");
        }
    }
}
