//! Schema migrations: the same steps on both databases, each in its own SQL.

use std::borrow::Cow;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::error::StoreError;
use crate::error_detail::redact_migration;

/// The migrations of one database, oldest first, from its folder in `migrations`.
///
/// Versions 1 to 4 were never released: the baseline has their tables under new names.
macro_rules! steps {
    ($database:literal) => {
        steps!($database, 5 "baseline", 6 "queue_parallelism", 7 "series", 8 "audit_list", 9 "failure_groups", 10 "dashboard_sessions", 11 "letter_asked", 12 "replays", 13 "requeued_due")
    };
    ($database:literal, $($version:literal $name:literal),+) => {
        vec![$({
            let sql = include_str!(concat!("../migrations/", $database, "/", $version, "_", $name, ".sql"));
            Migration::new($version, Cow::Borrowed($name), MigrationType::Simple, sql.into_sql_str(), false)
        }),+]
    };
}

/// Returns PostgreSQL's migrations. Our tables and sqlx's own are in the schema `ichido`, so they cannot collide with others.
pub(crate) fn postgres() -> Migrator {
    let mut migrator = Migrator::with_migrations(steps!("postgres"));
    migrator.dangerous_set_table_name("ichido.migrations");
    migrator.create_schema("ichido");
    migrator
}

/// Returns SQLite's migrations. Our tables and sqlx's own have the prefix `ichido_`, so they cannot collide with others.
pub(crate) fn sqlite() -> Migrator {
    let mut migrator = Migrator::with_migrations(steps!("sqlite"));
    migrator.dangerous_set_table_name("ichido_migrations");
    migrator
}

/// Returns the schema version that this program creates.
pub(crate) fn newest(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// Converts the error of a failed migration.
pub(crate) fn failed(migrator: &Migrator, error: MigrateError) -> StoreError {
    match (error, newest(migrator)) {
        (MigrateError::VersionMissing(found), known) if known < found => StoreError::TooNew { found, known },
        (error, _) => StoreError::Migration(redact_migration(error)),
    }
}
