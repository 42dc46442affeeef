//! curl, which runs the commands of the README unchanged.

use super::program::Program;

pub(super) const CURL: Program = Program {
    name: "curl",
    package: "curl",
    version,
    advice: "\
the tests run the README's commands, which call curl, but `curl` is not on PATH.
Install it with `sudo apt-get install curl` (Debian, Ubuntu) or `sudo dnf install curl` (Fedora).",
};

/// Returns the version in `curl 7.88.1 (x86_64-pc-linux-gnu) …`.
fn version(answer: &str) -> Option<&str> {
    answer.lines().next()?.strip_prefix("curl ")?.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_from_curl() {
        assert_eq!(version("curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1\n"), Some("7.88.1"));
    }

    #[test]
    fn another_program_of_the_same_name_is_refused() {
        for answer in ["", "7.88.1", "curly 1.0"] {
            assert_eq!(version(answer), None, "{answer:?}");
        }
    }
}
