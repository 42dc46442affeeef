//! Databases for one turn, on a durable server.

use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::SqliteTestFile;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgPool, Row as _};

use super::counters::DatabaseProbe;

/// Settings without which an acknowledged write may be lost.
const DURABLE: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// A database that nothing else uses.
pub(super) enum Fresh {
    Postgres { url: String, probe: DatabaseProbe },
    Sqlite(SqliteTestFile),
}

impl Fresh {
    /// Creates a database on a durable server, right after a checkpoint.
    pub(super) async fn postgres(cluster: &Cluster) -> Self {
        let url = cluster.database().await.expect("a database").url.clone();
        let pool = pool(&url).await;
        assert_durable(&pool).await;
        pool.execute("CHECKPOINT").await.expect("a checkpoint");
        Self::Postgres { url, probe: DatabaseProbe::new(pool, cluster.folder()) }
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Postgres { url, .. } => url.clone(),
            Self::Sqlite(file) => file.url.clone(),
        }
    }

    pub(super) fn probe(&self) -> Option<&DatabaseProbe> {
        match self {
            Self::Postgres { probe, .. } => Some(probe),
            Self::Sqlite(_) => None,
        }
    }

    pub(super) async fn vacuum(&self) {
        if let Some(probe) = self.probe() {
            probe.pool.execute("VACUUM ANALYZE").await.expect("vacuumed");
        }
    }

    /// Drops it, so its autovacuum does not disturb the next contestant.
    pub(super) async fn remove(self, cluster: &Cluster) {
        if let Self::Postgres { url, probe } = self {
            probe.pool.close().await;
            let name = url.rsplit('/').next().and_then(|end| end.split('?').next()).expect("a name");
            let drop = format!("DROP DATABASE {name} WITH (FORCE)");
            let pool = pool(&cluster.url("postgres")).await;
            sqlx::query(AssertSqlSafe(drop)).execute(&pool).await.expect("dropped");
        }
    }
}

/// Panics unless a commit is on the disk when it is acknowledged.
async fn assert_durable(pool: &PgPool) {
    for name in DURABLE {
        let row = sqlx::query("SELECT current_setting($1) AS value").bind(name).fetch_one(pool).await;
        let value: String = row.expect("a setting").get("value");
        assert_eq!(value, "on", "{name} must be on, or the numbers mean nothing");
    }
}

pub(super) async fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(2).connect(url).await.expect("connected")
}
