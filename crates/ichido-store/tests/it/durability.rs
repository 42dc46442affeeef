//! What is acknowledged is on disk: the settings that ensure it, which killing a process could not show.

use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::testing::sqlite::fresh_file;
use sqlx::Row as _;

#[tokio::test]
async fn the_sqlite_writer_syncs_its_log_at_every_commit() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let writer = store.sqlite_writer().unwrap();
    let journal = sqlx::query("PRAGMA journal_mode").fetch_one(writer).await.unwrap();
    assert_eq!(journal.get::<String, _>(0), "wal");
    let synchronous = sqlx::query("PRAGMA synchronous").fetch_one(writer).await.unwrap();
    assert_eq!(synchronous.get::<i64, _>(0), 2, "FULL");
    let pool = writer.options();
    assert_eq!(pool.get_max_connections(), 1, "one writer");
}

#[tokio::test]
async fn a_database_in_memory_is_refused() {
    for url in ["sqlite::memory:", "sqlite://:memory:", "sqlite:file::memory:", "sqlite:x?mode=memory"] {
        match Store::open(url, 2).await.map(drop) {
            Err(StoreError::Address(why)) => assert!(why.contains("memory"), "{url}: {why}"),
            other => panic!("{url}: {other:?}"),
        }
    }
    for url in ["sqlite:", "sqlite:file:x", "sqlite:x?cache=shared", "mysql://host/db", "ichido.db"] {
        assert!(matches!(Store::open(url, 2).await.map(drop), Err(StoreError::Address(_))), "{url}");
    }
}
