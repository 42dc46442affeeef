//! Redacts PostgreSQL's errors: keeps the code and the message, and none of the values.
//!
//! With an error, the server sends the affected row or key (detail) and the statement's parameters (context). Both contain
//! payloads, and errors get logged.

use std::borrow::Cow;
use std::error::Error as StdError;

use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

/// A PostgreSQL error without its detail, hint and context.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({code})")]
struct RedactedError {
    code: String,
    message: String,
    table: Option<String>,
    constraint: Option<String>,
}

/// Removes row values from an error.
pub(crate) fn redact(error: sqlx::Error) -> sqlx::Error {
    let sqlx::Error::Database(database) = &error else { return error };
    let Some(postgres) = database.try_downcast_ref::<PgDatabaseError>() else { return error };
    sqlx::Error::Database(Box::new(RedactedError {
        code: postgres.code().to_owned(),
        message: postgres.message().to_owned(),
        table: postgres.table().map(str::to_owned),
        constraint: postgres.constraint().map(str::to_owned),
    }))
}

/// Removes row values from a migration error.
pub(crate) fn redact_migration(error: MigrateError) -> MigrateError {
    match error {
        MigrateError::Execute(error) => MigrateError::Execute(redact(error)),
        MigrateError::ExecuteMigration(error, version) => {
            MigrateError::ExecuteMigration(redact(error), version)
        }
        error => error,
    }
}

impl DatabaseError for RedactedError {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.code))
    }

    fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
        self
    }

    fn constraint(&self) -> Option<&str> {
        self.constraint.as_deref()
    }

    fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    fn kind(&self) -> ErrorKind {
        match self.code.as_str() {
            "23505" => ErrorKind::UniqueViolation,
            "23503" => ErrorKind::ForeignKeyViolation,
            "23502" => ErrorKind::NotNullViolation,
            "23514" => ErrorKind::CheckViolation,
            "23P01" => ErrorKind::ExclusionViolation,
            _ => ErrorKind::Other,
        }
    }
}
