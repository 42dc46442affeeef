//! What a program wrote to its standard error, without what only says that the machine is busy.

/// How the database driver begins a warning about a slow statement.
const SLOW_STATEMENT: &str = " WARN sqlx::query: slow statement";

/// All lines but the driver's warnings about slow statements: beside other tests any statement may be slow.
pub(crate) fn complaints(err: &str) -> String {
    err.split_inclusive('\n').filter(|line| !line.contains(SLOW_STATEMENT)).collect()
}
