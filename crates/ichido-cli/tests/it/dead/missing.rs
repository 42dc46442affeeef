//! A mistyped store must not look like one without dead letters.

use std::path::Path;
use std::process::{Command, Output};

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
