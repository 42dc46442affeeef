//! A mistyped store must not look like one without dead letters.

use std::path::Path;
use std::process::{Command, Output};
use std::str::FromStr as _;

use ichido_store::testing::sqlite::fresh_file;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use super::fixture::StoreFixture;

fn ichido(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    command.args(arguments).current_dir(folder).env_remove("ICHIDO_STORE").env_remove("ICHIDO_CONFIG");
    command.output().expect("it runs")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_commands_do_not_create_a_store() {
    let fixture = StoreFixture::on_sqlite().await;
    let id = fixture.dead("orders", 1).await[0].to_string();
    for arguments in [
        &["dead", "list"][..],
        &["dead", "show", &id],
        &["dead", "operations"],
        &["dead", "requeue", &id],
        &["dead", "decide", "done", &id],
        &["audit", "verify"],
        &["audit", "head"],
        &["audit", "seal"],
        &["keys", "unknown"],
    ] {
        let left = ichido(fixture.folder(), &[arguments, &["--store", "sqlite:mistyped.db"]].concat());
        let err = String::from_utf8(left.stderr).expect("text");
        assert_eq!(left.status.code(), Some(3), "{arguments:?}: {err}");
        let file = fixture.folder().join("mistyped.db");
        assert!(err.contains(&format!("no store at {}", file.display())), "{arguments:?}: {err}");
        assert!(left.stdout.is_empty() && !file.exists(), "{arguments:?}");
    }
}

/// The path in a configuration does not depend on the current folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_path_in_config_is_relative_to_its_folder() {
    let fixture = StoreFixture::on_sqlite().await;
    fixture.dead("orders", 1).await;
    let file = fixture.url.strip_prefix("sqlite:").expect("a file");
    let folder = Path::new(file).parent().expect("a folder");
    std::fs::write(folder.join("its.toml"), "[store]\nurl = \"sqlite:ichido.db\"\n").expect("written");
    let config = folder.join("its.toml");
    let left =
        ichido(fixture.folder(), &["dead", "list", "--json", "--config", config.to_str().expect("text")]);
    let out = String::from_utf8(left.stdout).expect("text");
    assert_eq!((left.status.code(), out.lines().count()), (Some(0), 1), "{out}");
    assert!(!fixture.folder().join("ichido.db").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_store_is_explained() {
    let file = fresh_file();
    let options = SqliteConnectOptions::from_str(&file.url).expect("a file").create_if_missing(true);
    let mut connection = options.connect().await.expect("opened");
    connection.execute("CREATE TABLE ichido_messages (x)").await.expect("made");
    connection.close().await.expect("closed");
    let folder = crate::folder::fresh();
    let left = ichido(folder.path(), &["queues", "list", "--store", &file.url]);
    let err = String::from_utf8(left.stderr).expect("text");
    assert_eq!(left.status.code(), Some(1), "{err}");
    for part in ["already exists", "not a store of this version", "--store"] {
        assert_eq!(err.matches(part).count(), 1, "{part} in {err}");
    }
}
