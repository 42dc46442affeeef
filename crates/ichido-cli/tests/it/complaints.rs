//! A program's standard error, without warnings that only show a busy machine.

/// How the database driver starts a warning about a slow statement.
const SLOW_STATEMENT: &str = " WARN sqlx::query: slow statement";

/// Returns all lines except the driver's warnings: beside other tests any statement may be slow.
pub(crate) fn complaints(err: &str) -> String {
    err.split_inclusive('\n').filter(|line| !line.contains(SLOW_STATEMENT)).collect()
}
