//! Python packages, installed from a pinned list into their own folder under `target`.

use std::path::Path;

use super::debian;
use crate::command_line::CommandLine;

/// The file in the folder that records what was installed.
const INSTALLED: &str = "installed.txt";

/// What a person can do where Python is not installed automatically.
const ADVICE: &str = "\
this needs Python packages, but `python3 -m venv` does not work here.
Install Python 3.10 or later with its venv: `sudo apt-get install python3-venv` (Debian, Ubuntu) or `brew install python`
(macOS). The packages themselves are then installed under `target`, from the Python Package Index.";

/// Installs the packages of a list into a folder, unless that was done.
pub(crate) fn ensure(root: &Path, folder: &str, list: &str) -> Result<(), String> {
    let pinned = root.join(list);
    let wanted =
        std::fs::read_to_string(&pinned).map_err(|error| format!("{}: {error}", pinned.display()))?;
    let program = |name: &str| root.join(folder).join("bin").join(name).to_string_lossy().into_owned();
    let answer = CommandLine::new(&program("python"), &["--version"]).answer(root);
    let mark = root.join(folder).join(INSTALLED);
    if is_installed(std::fs::read_to_string(&mark).ok().as_deref(), &wanted, answer.as_deref()) {
        return Ok(());
    }
    println!("installing the packages of {list} into {folder} (once, half a minute)");
    let venv = CommandLine::new("python3", &["-m", "venv", "--clear", folder]);
    if venv.answer(root).is_none() {
        if !debian::is_root_on_it(root) {
            return Err(ADVICE.to_owned());
        }
        debian::install(root, "python3-venv").map_err(|error| format!("{error}\n{ADVICE}"))?;
        venv.run(root)?;
    }
    CommandLine::new(&program("pip"), &["install", "--quiet", "--disable-pip-version-check"])
        .and(&["--requirement", list])
        .run(root)?;
    std::fs::write(&mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))
}

/// Returns whether the wanted packages were installed, for a Python that still starts.
fn is_installed(installed: Option<&str>, wanted: &str, answer: Option<&str>) -> bool {
    installed == Some(wanted) && answer.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_versions_are_accepted() {
        let (wanted, answer) = ("schemathesis==4.32.5\n", Some("Python 3.11.7\n"));
        assert!(is_installed(Some(wanted), wanted, answer));
        for (installed, answer) in
            [(Some("schemathesis==4.32.4\n"), answer), (None, answer), (Some(wanted), None)]
        {
            assert!(!is_installed(installed, wanted, answer), "{installed:?}, {answer:?}");
        }
    }
}
