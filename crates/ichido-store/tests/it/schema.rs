//! The migrated schema is the reviewed one; many nodes may migrate at once; a newer schema is refused.

use std::path::Path;

use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::testing::postgres::empty_database;
use ichido_store::testing::sqlite::fresh_file;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _, SqliteConnection};

/// What is reviewed: tables with their columns, constraints, indexes, views, sequences and functions.
const POSTGRES_DUMP: [&str; 6] = [
    "SELECT format('table %s: %s %s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), \
         CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation THEN ' COLLATE \"C\"' ELSE '' END, \
         CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')) \
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid \
     LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum \
     WHERE c.relnamespace = 'ichido'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped \
     ORDER BY c.relname, a.attnum",
    "SELECT format('constraint %s.%s: %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint \
     WHERE connamespace = 'ichido'::regnamespace AND contype <> 'n' ORDER BY conrelid::regclass::text, conname",
    "SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'ichido' ORDER BY indexname",
    "SELECT format('view %s: %s', viewname, definition) FROM pg_views WHERE schemaname = 'ichido' ORDER BY viewname",
    "SELECT format('sequence %s: %s cache %s', sequencename, data_type, cache_size) FROM pg_sequences WHERE schemaname = 'ichido' ORDER BY sequencename",
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'ichido'::regnamespace ORDER BY proname",
];

/// Compares with the reviewed file; `ICHIDO_BLESS=1` rewrites it, for review.
fn compare(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(file);
    if std::env::var_os("ICHIDO_BLESS").is_some() {
        std::fs::write(&path, found).expect("written");
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        reviewed == found,
        "the migrations make another schema than schema/{file}; run this test with ICHIDO_BLESS=1 and review the difference"
    );
}

#[tokio::test]
async fn the_schema_on_postgres_is_the_reviewed_one() {
    let database = empty_database().await;
    let store = Store::open(&database.url, 1).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let mut dump = String::new();
    for query in POSTGRES_DUMP {
        for row in connection.fetch_all(query).await.expect("dumped") {
            dump += row.get::<&str, _>(0);
            dump.push('\n');
        }
    }
    drop(store);
    compare("postgres.txt", &dump);
}

/// What is reviewed: the statements that create each table, index, view and trigger, by name.
const SQLITE_DUMP: &str = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";

#[tokio::test]
async fn the_schema_on_sqlite_is_the_reviewed_one() {
    let file = fresh_file();
    let store = Store::open(&file.url, 1).await.expect("the store opens");
    let mut connection = SqliteConnection::connect(&file.url).await.expect("connected");
    let mut dump = String::new();
    for row in connection.fetch_all(SQLITE_DUMP).await.expect("dumped") {
        dump += row.get::<&str, _>(0);
        dump.push_str(";\n");
    }
    drop(store);
    compare("sqlite.txt", &dump);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_nodes_may_migrate_at_once() {
    let database = empty_database().await;
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = database.url.clone();
        nodes.spawn(async move { Store::open(&url, 1).await.map(drop) });
    }
    for opened in nodes.join_all().await {
        opened.expect("each node finds the schema or makes it");
    }
}

#[tokio::test]
async fn a_database_newer_than_the_program_is_refused() {
    let database = empty_database().await;
    drop(Store::open(&database.url, 1).await.expect("the store opens"));
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let newer = "INSERT INTO ichido.migrations (version, description, success, checksum, execution_time) VALUES (9999, 'later', true, '', 0)";
    connection.execute(newer).await.expect("a later version was here");
    match Store::open(&database.url, 1).await.map(drop) {
        Err(StoreError::TooNew { found: 9999, known }) => assert!(known < 9999),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_callers_own_tables_are_not_touched() {
    let database = empty_database().await;
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    for table in ["messages", "events", "ledger", "_sqlx_migrations"] {
        connection
            .execute(AssertSqlSafe(format!("CREATE TABLE {table} (mine text)")))
            .await
            .expect("the caller's table");
    }
    drop(Store::open(&database.url, 1).await.expect("the store opens beside them"));
    let mine = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'mine'";
    let row = connection.fetch_one(mine).await.expect("counted");
    assert_eq!(row.get::<i64, _>(0), 4);
}
