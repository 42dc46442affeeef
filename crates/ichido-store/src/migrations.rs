//! The versions of the schema: the same steps on both databases, each in its own SQL.

use std::borrow::Cow;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::error::StoreError;
use crate::error_detail::redact_migration;

/// The steps of one database, oldest first, from its folder in `migrations`.
macro_rules! steps {
    ($database:literal) => {
        steps!($database, 1 "begin", 2 "alerts", 3 "answers", 4 "facts")
    };
    ($database:literal, $($version:literal $name:literal),+) => {
        vec![$({
            let sql = include_str!(concat!("../migrations/", $database, "/", $version, "_", $name, ".sql"));
            Migration::new($version, Cow::Borrowed($name), MigrationType::Simple, sql.into_sql_str(), false)
        }),+]
    };
}

/// Our tables and sqlx's own are in the schema `ichido`, where they meet nobody else's.
pub(crate) fn postgres() -> Migrator {
    let mut migrator = Migrator::with_migrations(steps!("postgres"));
    migrator.dangerous_set_table_name("ichido.migrations");
    migrator.create_schema("ichido");
    migrator
}

/// Our tables and sqlx's own have the prefix `ichido_`, so that they meet nobody else's.
pub(crate) fn sqlite() -> Migrator {
    let mut migrator = Migrator::with_migrations(steps!("sqlite"));
    migrator.dangerous_set_table_name("ichido_migrations");
    migrator
}

/// The version that this program makes of a store.
pub(crate) fn newest(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// Why a store was not brought up to date.
pub(crate) fn failed(migrator: &Migrator, error: MigrateError) -> StoreError {
    match (error, newest(migrator)) {
        (MigrateError::VersionMissing(found), known) if known < found => StoreError::TooNew { found, known },
        (error, _) => StoreError::Migration(redact_migration(error)),
    }
}
