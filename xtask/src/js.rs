//! The browser's tests: the module's types, its tests in Node and in a real browser against the real server; and the
//! pages of Bookmarks in that browser, against the product itself.
//!
//! Guarantee: it succeeds only if all four do. They start the programs that were built with the tests.

use std::path::Path;

use crate::command_line::CommandLine;
use crate::tools::node::FOLDER;

/// Runs them, the most informative first.
pub(crate) fn run(root: &Path, env: &[(String, String)]) -> Result<(), String> {
    for script in ["types", "test:node", "test:browser", "test:bookmarks"] {
        let line = CommandLine::new("npm", &["--prefix", FOLDER, "--silent", "run", script]);
        let (printed, outcome) = line.clone().envs(env).run_captured(root);
        println!("\n== js {script}\n{printed}");
        outcome.map_err(|error| format!("{error}\nTo run it alone:\n\n  {line}"))?;
    }
    Ok(())
}
