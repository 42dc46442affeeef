//! schemathesis, which generates requests from an API's description; in its own folder under `target`.

use std::path::Path;

use super::debian;
use crate::command_line::CommandLine;

/// Every package is pinned, so a new release cannot break an old commit.
const PINNED: &str = "xtask/schemathesis.txt";
/// Under `target`, so `cargo clean` removes it and git does not see it.
const FOLDER: &str = "target/tools/schemathesis";

/// The file beside it that records what was installed.
const INSTALLED: &str = "installed.txt";

/// What a person can do where it is not installed automatically.
const ADVICE: &str = "\
schemathesis, a Python program, generates the requests, but `python3 -m venv` does not work here.
Install Python 3.10 or later with its venv: `sudo apt-get install python3-venv` (Debian, Ubuntu) or `brew install python`
(macOS). schemathesis itself is then installed under `target`, from the Python Package Index.";

/// Returns the command line that runs schemathesis, and installs it first if necessary.
pub(crate) fn ensure(root: &Path) -> Result<CommandLine, String> {
    let pinned = root.join(PINNED);
    let wanted =
        std::fs::read_to_string(&pinned).map_err(|error| format!("{}: {error}", pinned.display()))?;
    let ours = CommandLine::new(&root.join(FOLDER).join("bin/schemathesis").to_string_lossy(), &[]);
    let answer = ours.clone().and(&["--version"]).answer(root);
    let mark = root.join(FOLDER).join(INSTALLED);
    if is_pinned(std::fs::read_to_string(&mark).ok().as_deref(), &wanted, answer.as_deref()) {
        return Ok(ours);
    }
    println!("schemathesis is missing; installing it into {FOLDER} (once, half a minute)");
    let venv = CommandLine::new("python3", &["-m", "venv", "--clear", FOLDER]);
    if venv.answer(root).is_none() {
        if !debian::is_root_on_it(root) {
            return Err(ADVICE.to_owned());
        }
        debian::install(root, "python3-venv").map_err(|error| format!("{error}\n{ADVICE}"))?;
        venv.run(root)?;
    }
    let pip = root.join(FOLDER).join("bin/pip");
    CommandLine::new(&pip.to_string_lossy(), &["install", "--quiet", "--disable-pip-version-check"])
        .and(&["--requirement", PINNED])
        .run(root)?;
    std::fs::write(&mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(ours)
}

/// Returns the command line that validates a description, with the same Python.
pub(crate) fn spec_validator(root: &Path) -> CommandLine {
    CommandLine::new(
        &root.join(FOLDER).join("bin/python").to_string_lossy(),
        &["-m", "openapi_spec_validator"],
    )
}

/// Returns whether the installed version is the wanted one, and starts.
fn is_pinned(installed: Option<&str>, wanted: &str, answer: Option<&str>) -> bool {
    installed == Some(wanted) && answer.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_version_is_accepted() {
        let (wanted, answer) = ("schemathesis==4.32.5\n", Some("schemathesis, version 4.32.5\n"));
        assert!(is_pinned(Some(wanted), wanted, answer));
        for (installed, answer) in
            [(Some("schemathesis==4.32.4\n"), answer), (None, answer), (Some(wanted), None)]
        {
            assert!(!is_pinned(installed, wanted, answer), "{installed:?}, {answer:?}");
        }
    }
}
