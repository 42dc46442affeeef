//! The browser's tests: the module's types, its tests in Node and in a real browser against the real server; and the
//! pages of Bookmarks and of the dashboard in that browser, against the products themselves.
//!
//! Guarantee: it succeeds only if all of them do. They start the programs that were built with the tests.

use std::path::Path;

use crate::command_line::CommandLine;
use crate::packages::usual;
use crate::tools::node::{FOLDER, ensure_packages};

/// Runs them, the most informative first.
pub(crate) fn run(root: &Path, env: &[(String, String)]) -> Result<(), String> {
    for script in ["types", "test:node", "test:browser", "test:bookmarks", "test:dashboard"] {
        let line = script_line(script);
        let (printed, outcome) = line.clone().envs(env).run_captured(root);
        println!("\n== js {script}\n{printed}");
        outcome.map_err(|error| format!("{error}\nTo run it alone:\n\n  {line}"))?;
    }
    Ok(())
}

/// Visits every page of the dashboard in all languages, themes, widths and states of the store, on both databases.
pub(crate) fn soak(root: &Path) -> Result<(), String> {
    ensure_packages(root, FOLDER)?;
    CommandLine::cargo(&["build", "--bins", "--examples"]).and_all(&usual(false)).run(root)?;
    script_line("soak:dashboard").run(root)
}

fn script_line(script: &str) -> CommandLine {
    CommandLine::new("npm", &["--prefix", FOLDER, "--silent", "run", script])
}
