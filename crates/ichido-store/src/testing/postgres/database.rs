//! A database for one test: migrated or empty, in the run's shared server or in this process's own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ichido_core::text::with_causes;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::{Cluster, ClusterError, chance};
use crate::driver::Driver;

/// The environment variable with the URL of an administrator's database.
///
/// [`fresh_database`] then creates its databases in that server instead of starting one. Not `DATABASE_URL`: that one also
/// configures sqlx's macros, and a developer may have it set to a database that matters.
pub const SERVER_VARIABLE: &str = "ICHIDO_TEST_POSTGRES";
/// The environment variable with the name of the database in that server that [`fresh_database`] copies.
///
/// Without it every test runs the migrations again.
pub const TEMPLATE_VARIABLE: &str = "ICHIDO_TEST_TEMPLATE";

/// PostgreSQL's own empty template. Nobody connects to it, so it can always be copied, unlike `template1`.
const EMPTY: &str = "template0";
/// The migrated database that [`Cluster::template`] creates.
const TEMPLATE: &str = "ichido_template";
/// How long dropping a database in somebody else's server may take.
const DROP_TIMEOUT: Duration = Duration::from_secs(20);

/// A database for one test.
///
/// Keep it for as long as the test uses the URL: in a server that is not ours, dropping this drops the database and ends the
/// sessions in it.
#[derive(Debug)]
#[must_use = "dropping this drops the database"]
pub struct PgTestDatabase {
    /// The URL to connect to.
    pub url: String,
    /// The database's name in its server.
    pub name: String,
    /// The URL from which to drop the database, unless it goes with its cluster.
    administrator: Option<String>,
}

/// Creates a database for a store.
///
/// It is in the server of [`SERVER_VARIABLE`] or, without it, in the server that all tests of this process share. It may
/// already have our tables, as a copy of [`TEMPLATE_VARIABLE`].
///
/// # Panics
/// If there is no server or it creates no database, with instructions; a test cannot continue.
pub async fn fresh_database() -> PgTestDatabase {
    database_from(&std::env::var(TEMPLATE_VARIABLE).unwrap_or_else(|_| EMPTY.to_owned())).await
}

/// Creates a database without tables, in the same server as [`fresh_database`].
///
/// # Panics
/// As [`fresh_database`].
pub async fn empty_database() -> PgTestDatabase {
    database_from(EMPTY).await
}

/// Creates an empty database in a server that syncs, whatever [`SERVER_VARIABLE`] says: for tests of durability.
///
/// # Panics
/// As [`fresh_database`].
pub async fn durable_database() -> PgTestDatabase {
    static SERVER: OnceLock<Result<Cluster, ClusterError>> = OnceLock::new();
    // This blocks the runtimes of all tests that come first, and none of them could continue without it.
    let made = match SERVER.get_or_init(|| Cluster::start(&[])) {
        Ok(cluster) => cluster.database().await,
        Err(error) => panic!("no PostgreSQL for this test: {}", with_causes(error)),
    };
    made.unwrap_or_else(|error| panic!("no database for this test: {}", with_causes(&error)))
}

async fn database_from(template: &str) -> PgTestDatabase {
    match std::env::var_os(SERVER_VARIABLE) {
        Some(url) if !url.is_empty() => {
            let made = match url.to_str() {
                Some(url) => given_database(url, template).await,
                None => Err(ClusterError::NotUrl),
            };
            made.unwrap_or_else(|error| panic!("no database for this test: {}", with_causes(&error)))
        }
        _ => durable_database().await,
    }
}

impl Cluster {
    /// Creates an empty database, which is removed with the cluster.
    pub async fn database(&self) -> Result<PgTestDatabase, ClusterError> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("ichido_test_{number}");
        create_database(&self.url("postgres"), &name, EMPTY).await?;
        Ok(PgTestDatabase { url: self.url(&name), name, administrator: None })
    }

    /// Creates a migrated database for [`TEMPLATE_VARIABLE`] and returns its name.
    pub async fn template(&self) -> Result<String, ClusterError> {
        create_database(&self.url("postgres"), TEMPLATE, EMPTY).await?;
        // Migrated, but without an opened store: each copy opens its own, at its own time.
        let migrated = Driver::open(&self.url(TEMPLATE), 1, Arc::default()).await;
        drop(migrated.map_err(ClusterError::Template)?);
        // No more connections: a database with a session in it cannot be copied.
        let sql = format!("ALTER DATABASE {TEMPLATE} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false");
        let ended =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{TEMPLATE}'");
        let close = async {
            let connection = PgConnection::connect(&self.url("postgres")).await?;
            execute(connection, format!("{sql}; {ended}")).await
        };
        close.await.map_err(ClusterError::database("close"))?;
        Ok(TEMPLATE.to_owned())
    }
}

async fn given_database(administrator: &str, template: &str) -> Result<PgTestDatabase, ClusterError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // The random part, because containers that share a server may have the same process ids.
    let name = format!("ichido_test_{}_{number}_{:016x}", std::process::id(), chance());
    let url = with_database(administrator, &name).ok_or(ClusterError::NotUrl)?;
    create_database(administrator, &name, template).await?;
    Ok(PgTestDatabase { url, name, administrator: Some(administrator.to_owned()) })
}

impl Drop for PgTestDatabase {
    fn drop(&mut self) {
        let Some(administrator) = self.administrator.take() else {
            return;
        };
        let name = self.name.clone();
        // In its own thread, because a runtime cannot block on another on the same thread.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let drop = drop_database(&administrator, &name);
                tokio::time::timeout(DROP_TIMEOUT, drop).await
            })?
        });
        let dropped: Result<(), DropError> = dropping.join().unwrap_or_else(|_| Err("it panicked".into()));
        if let Err(error) = dropped {
            eprintln!("cannot drop database {}: {}", self.name, with_causes(&*error));
        }
    }
}

type DropError = Box<dyn std::error::Error + Send + Sync>;

async fn create_database(administrator: &str, name: &str, template: &str) -> Result<(), ClusterError> {
    let create = async {
        let connection = PgConnection::connect(administrator).await?;
        let mut sql = format!("CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'");
        // If the server does not sync, copying a template as files costs a fifth of copying it through the buffers. Before
        // PostgreSQL 15 that is the only way.
        if template != EMPTY && connection.server_version_num().is_some_and(|version| 150_000 <= version) {
            sql.push_str(" STRATEGY FILE_COPY");
        }
        execute(connection, sql).await
    };
    create.await.map_err(ClusterError::database("create"))
}

async fn drop_database(administrator: &str, name: &str) -> Result<(), DropError> {
    // By force, because a test that panicked may have left sessions behind.
    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
    Ok(execute(PgConnection::connect(administrator).await?, sql).await?)
}

/// Runs a statement over its own connection. Each test has its own runtime, and a connection cannot move between them.
///
/// There is no timeout here, because it would fire at once in a test that pauses the clock.
async fn execute(mut connection: PgConnection, sql: String) -> Result<(), sqlx::Error> {
    // Safe, because we generate the names in it: lower-case letters, digits and underscores.
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// Replaces or adds the database in a URL.
pub(super) fn with_database(url: &str, database: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "postgres" | "postgresql") {
        return None;
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split('/').next().unwrap_or_default();
    let mut with = format!("{scheme}://{authority}/{database}");
    // A `dbname` in the query would override the path.
    let kept = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("dbname="));
    for (index, pair) in kept.enumerate() {
        with.push(if index == 0 { '?' } else { '&' });
        with.push_str(pair);
    }
    Some(with)
}
