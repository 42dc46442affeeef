//! schemathesis, which draws requests from an API's description: in a folder of its own under `target`.

use std::path::Path;

use super::debian;
use crate::line::Line;

/// Every package pinned, so that a new release cannot turn an old commit red.
const PINNED: &str = "xtask/schemathesis.txt";
/// Under `target`, so that `cargo clean` removes it and git does not see it.
const FOLDER: &str = "target/tools/schemathesis";

/// What a person can do where we do not install.
const ADVICE: &str = "\
requests are drawn by schemathesis, a program in Python, and `python3 -m venv` does not work here.
Install Python 3.10 or later with its venv: `sudo apt-get install python3-venv` (Debian, Ubuntu) or `brew install python`
(macOS). The program itself is then installed under `target`, from the Python Package Index.";

/// The line that runs schemathesis; it is installed first if need be.
pub(crate) fn ensure(root: &Path) -> Result<Line, String> {
    let pinned = root.join(PINNED);
    let wanted =
        std::fs::read_to_string(&pinned).map_err(|error| format!("{}: {error}", pinned.display()))?;
    let ours = Line::new(&root.join(FOLDER).join("bin/schemathesis").to_string_lossy(), &[]);
    let answer = ours.clone().and(&["--version"]).answer(root);
    if answer.is_some_and(|answer| is_pinned(&answer, &wanted)) {
        return Ok(ours);
    }
    println!("schemathesis is not there; installing it into {FOLDER} (once, half a minute)");
    let venv = Line::new("python3", &["-m", "venv", "--clear", FOLDER]);
    if venv.answer(root).is_none() {
        if !debian::is_root_on_it(root) {
            return Err(ADVICE.to_owned());
        }
        debian::install(root, "python3-venv").map_err(|error| format!("{error}\n{ADVICE}"))?;
        venv.run(root)?;
    }
    let pip = root.join(FOLDER).join("bin/pip");
    Line::new(&pip.to_string_lossy(), &["install", "--quiet", "--disable-pip-version-check"])
        .and(&["--requirement", PINNED])
        .run(root)?;
    Ok(ours)
}

/// Whether `schemathesis, version 4.32.5` (or `st, …`) is the one that is wanted.
fn is_pinned(answer: &str, wanted: &str) -> bool {
    let found = answer.trim().rsplit(' ').next().unwrap_or_default();
    wanted.lines().any(|line| line.strip_prefix("schemathesis==") == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_version_is_taken() {
        let wanted = "requests==2.0.0\nschemathesis==4.32.5\n";
        assert!(is_pinned("schemathesis, version 4.32.5\n", wanted));
        for answer in ["schemathesis, version 4.32.50", "schemathesis, version 2.0.0", ""] {
            assert!(!is_pinned(answer, wanted), "{answer:?}");
        }
    }
}
