//! chromium, the real browser in which the browser's module is tested.

use super::program::Program;

pub(super) const CHROMIUM: Program = Program {
    name: "chromium",
    package: "chromium",
    version,
    advice: "\
the browser client is tested in a real browser, but `chromium` is not on PATH.
Install it with `sudo apt-get install chromium` (Debian), `sudo dnf install chromium` (Fedora) or `brew install chromium` (macOS).
No window is opened.",
};

/// The same browser without windows. The tests use it where it is, because it takes little more than half of the time.
pub(super) const SHELL: Program = Program {
    name: "chromium-headless-shell",
    package: "chromium-headless-shell",
    version,
    advice: "`chromium-headless-shell` is not on PATH; the tests use `chromium`, which takes longer.",
};

/// Returns the version in `Chromium 140.0.7339.80 built on Debian GNU/Linux 12 (bookworm)`.
fn version(answer: &str) -> Option<&str> {
    answer.lines().find_map(|line| line.strip_prefix("Chromium "))?.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_from_chromium() {
        assert_eq!(version("Chromium 140.0.7339.80 built on Debian\n"), Some("140.0.7339.80"));
    }

    #[test]
    fn another_program_of_the_same_name_is_refused() {
        for answer in ["", "140.0", "Google Chrome 140.0"] {
            assert_eq!(version(answer), None, "{answer:?}");
        }
    }
}
