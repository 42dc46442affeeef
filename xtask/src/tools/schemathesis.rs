//! schemathesis, which generates requests from an API's description; in its own folder under `target`.

use std::path::Path;

use super::venv;
use crate::command_line::CommandLine;

/// Every package is pinned, so a new release cannot break an old commit.
const PINNED: &str = "xtask/schemathesis.txt";
/// Under `target`, so `cargo clean` removes it and git does not see it.
const FOLDER: &str = "target/tools/schemathesis";

/// Returns the command line that runs schemathesis, and installs it first if necessary.
pub(crate) fn ensure(root: &Path) -> Result<CommandLine, String> {
    venv::ensure(root, FOLDER, PINNED)?;
    Ok(CommandLine::new(&root.join(FOLDER).join("bin/schemathesis").to_string_lossy(), &[]))
}

/// Returns the command line that validates a description, with the same Python.
pub(crate) fn spec_validator(root: &Path) -> CommandLine {
    CommandLine::new(
        &root.join(FOLDER).join("bin/python").to_string_lossy(),
        &["-m", "openapi_spec_validator"],
    )
}
