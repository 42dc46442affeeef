//! The browser's module: its types, its tests in Node, and its tests in a real browser against the real server.
//!
//! Guarantee: it succeeds only when all three did. The server is the one that the step `tests` built, or is built here.

use std::path::Path;

use crate::line::Line;
use crate::tools::node::FOLDER;

/// Runs them in the order in which a person would want to know.
pub fn run(root: &Path) -> Result<(), String> {
    // Where cargo was told to build, or where it builds by itself.
    let built = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let program = root.join(built).join("debug/ichido");
    if !program.exists() {
        Line::cargo(&["build", "--package", "ichido-cli"]).run(root)?;
    }
    for script in ["types", "test:node", "test:browser"] {
        let line = Line::new("npm", &["--prefix", FOLDER, "--silent", "run", script])
            .env("ICHIDO_BIN", &program.to_string_lossy());
        line.run(root).map_err(|error| format!("{error}\nTo run it alone:\n\n  {line}"))?;
    }
    Ok(())
}
