//! Diagnostics of a PostgreSQL server.

use std::time::Duration;

use ichido_core::clock::HEARTBEAT_DEADLINE;
use ichido_core::time::Timestamp;
use sqlx::postgres::PgRow;

use super::{
    ClockReading, DatabaseDiagnostics, Diagnostics, MAX_OPEN_TRANSACTIONS, OpenTransaction,
    PostgresDiagnostics, backlog,
};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::migrations::{self, newest};
use crate::postgres::connections::{CALL_TIMEOUT, ConnectionPool};
use crate::postgres::{first_connection, options};
use crate::statement::DbConnection;
use crate::{facts, micros};

/// Inspects a server over one connection with our usual settings.
pub(crate) async fn look(
    url: &str,
    clock: impl Fn() -> Timestamp,
    open_for: Duration,
) -> Result<Diagnostics, StoreError> {
    let options = options(url)?;
    // A server that is full or starting gets a second try, with a longer timeout; otherwise this error is reported.
    let refusal = first_connection(&options).await?;
    let pool = ConnectionPool::new(options, 1, CALL_TIMEOUT);
    let row =
        pool.one(sqlx::query(include_str!("../postgres/sql/diagnostics.sql"))).await.map_err(|error| {
            match refusal {
                Some(refusal) => StoreError::Unavailable(refusal),
                None => error,
            }
        })?;
    let (schema_found, nodes) = if row.truth("has_schema")? { store(&pool).await? } else { (None, 0) };
    let before = clock();
    let now = pool.one(sqlx::query(include_str!("../postgres/sql/now.sql")).bind(0_i64)).await?;
    let clock = ClockReading { before, database: now.timestamp("now")?, after: clock() };
    let queues = pool.with_connection(async |connection| {
        facts::read_published(DbConnection::Postgres(connection, 0), schema_found, clock.database).await
    });
    let queues = queues.await?;
    let schema_known = newest(&migrations::postgres());
    let backlog = if schema_found == Some(schema_known) {
        let read = pool.with_connection(async |connection| {
            backlog::read(DbConnection::Postgres(connection, 0), clock.database).await
        });
        Some(read.await?)
    } else {
        None
    };
    let query = sqlx::query(include_str!("../postgres/sql/diagnostics_open.sql"))
        .bind(micros(open_for))
        .bind(i64::from(MAX_OPEN_TRANSACTIONS));
    let open_transactions =
        pool.all(query).await?.iter().map(open).collect::<Result<Vec<_>, StoreError>>()?;
    let server = PostgresDiagnostics {
        fsync: row.truth("fsync")?,
        full_page_writes: row.truth("full_page_writes")?,
        synchronous_commit: row.text("synchronous_commit")?.to_owned(),
        follows: row.truth("follows")?,
        max_connections: row.positive("max_connections")?,
        connections_reserved: row.positive("connections_reserved")?,
        nodes,
        clock,
        sees_everybody: row.truth("sees_everybody")?,
        open_transactions,
    };
    Ok(Diagnostics {
        schema_found,
        schema_known,
        queues,
        backlog,
        database: DatabaseDiagnostics::Postgres(Box::new(server)),
    })
}

/// Reads the schema version and the number of live nodes.
async fn store(pool: &ConnectionPool) -> Result<(Option<i64>, u32), StoreError> {
    let query =
        sqlx::query(include_str!("../postgres/sql/diagnostics_store.sql")).bind(micros(HEARTBEAT_DEADLINE));
    let row = pool.one(query).await?;
    Ok((row.number_or_none("schema")?, row.positive("nodes")?))
}

fn open(row: &PgRow) -> Result<OpenTransaction, StoreError> {
    Ok(OpenTransaction {
        process: row.count("process")?,
        user: row.text("user_name")?.to_owned(),
        application: row.text("application")?.to_owned(),
        since: row.timestamp("since")?,
    })
}
