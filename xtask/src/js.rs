//! What runs in a browser: the module's types, its tests in Node, and its tests in a real browser against the real server; and the pages
//! of Bookmarks in that browser, against the product itself.
//!
//! Guarantee: it succeeds only when all four did. The programs are those that the step `tests` built, or are built here.

use std::path::Path;

use crate::line::Line;
use crate::tools::node::FOLDER;

/// What they start.
const PROGRAMS: [&str; 4] = ["ichido", "bookmarks", "fake-llm", "examples/fresh_database"];

/// Runs them in the order in which a person would want to know.
pub fn run(root: &Path) -> Result<(), String> {
    // Where cargo was told to build, or where it builds by itself.
    let built = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let built = root.join(built).join("debug");
    if !PROGRAMS.iter().all(|program| built.join(program).exists()) {
        Line::cargo(&["build", "--workspace", "--bins", "--examples"]).run(root)?;
    }
    for script in ["types", "test:node", "test:browser", "test:bookmarks"] {
        let line = Line::new("npm", &["--prefix", FOLDER, "--silent", "run", script]);
        line.run(root).map_err(|error| format!("{error}\nTo run it alone:\n\n  {line}"))?;
    }
    Ok(())
}
