//! Diagnostics of an SQLite file.

use ichido_core::time::Timestamp;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::{DatabaseDiagnostics, Diagnostics, backlog};
use crate::error::StoreError;
use crate::facts;
use crate::migrations::{self, newest};
use crate::sqlite::{options, schema_found, without_clock};

/// Inspects an existing file over a connection with our usual settings.
pub(crate) async fn look(url: &str, clock: impl Fn() -> Timestamp) -> Result<Diagnostics, StoreError> {
    let mut connection = options(url)?.connect().await.map_err(StoreError::Unavailable)?;
    let schema_found = schema_found(&mut connection).await?;
    let journal_mode = sqlx::query("PRAGMA journal_mode").fetch_one(&mut connection).await?.try_get(0)?;
    let synchronous = sqlx::query("PRAGMA synchronous").fetch_one(&mut connection).await?.try_get(0)?;
    let schema_known = newest(&migrations::sqlite());
    let queues = facts::read_published(without_clock(&mut connection), schema_found, clock()).await?;
    let backlog = if schema_found == Some(schema_known) {
        Some(backlog::read(without_clock(&mut connection), clock()).await?)
    } else {
        None
    };
    // Nothing was written, so nothing can be lost.
    drop(connection.close().await);
    let database = DatabaseDiagnostics::Sqlite { journal_mode, synchronous };
    Ok(Diagnostics { schema_found, schema_known, queues, backlog, database })
}
