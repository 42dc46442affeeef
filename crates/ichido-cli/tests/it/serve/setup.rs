//! Starts with nothing, and with a configuration.
// Spec: F6.

use std::process::Command;

use super::client::{RawRequest, problem};
use super::program::{DatabaseKind, ServeProcess, ServerFixture, ichido};
use crate::folder;

/// In an empty folder, with only a port, the suggested command works as written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_works_in_an_empty_folder() {
    let folder = folder::fresh();
    let server = ServeProcess::start(folder.path(), &[]);
    let file = folder.path().join("ichido.db");
    assert!(file.is_file());
    assert!(server.startup_output.contains(&file.display().to_string()), "{}", server.startup_output);
    let line = server
        .startup_output
        .lines()
        .find(|line| line.trim_start().starts_with("curl "))
        .expect("something to try");
    let ran = Command::new("sh").args(["-c", &format!("{line} -sS")]).output().expect("a shell");
    let answer = String::from_utf8(ran.stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer} {}", String::from_utf8_lossy(&ran.stderr));
    assert!(answer.contains("\"status\":\"sent\"") && answer.contains("\"receipt\":\"mock-1\""), "{answer}");
    assert_eq!(server.effects().await["effects"], 1);
}

/// Its queues, its destinations and its store; the flag wins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn existing_configuration_is_used() {
    let folder = folder::fresh();
    let broker = ServeProcess::start(folder.path(), &[]);
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let config = format!(
        "[store]\nurl = \"sqlite:own.db\"\n[destinations.broker]\nkind = \"mock\"\nurl = \"http://{}/orders\"\n[queues.orders]\ndestination = \"broker\"\nmax_retries = 3\n",
        broker.broker()
    );
    fixture.folder.write("ichido.toml", &config);
    let server = ServeProcess::start(fixture.folder.path(), &[]);
    assert!(
        fixture.folder.path().join("own.db").is_file() && !fixture.folder.path().join("ichido.db").exists()
    );
    assert!(
        !server.startup_output.contains("curl"),
        "there is no built-in queue to try: {}",
        server.startup_output
    );
    let put = RawRequest::put("k", "{}").to("/v1/queues/orders/messages?wait=30s");
    let message = server.send(&put).await.json();
    assert_eq!((&message["status"], &message["max_attempts"]), (&"sent".into(), &4.into()), "{message}");
    assert_eq!(problem(&server.send(&RawRequest::put("k", "{}")).await), (404, "queue_unknown".to_owned()));
    let elsewhere = fixture.serve(&[]);
    assert_eq!(elsewhere.queue("orders").await["counts"]["sent"], 0, "--store wins over the file");
}

/// The server reads `.env` of its folder, and a flag wins.
// Spec: B5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn env_file_sets_the_servers_settings() {
    let folder = folder::fresh();
    folder.write(".env", "ICHIDO_STORE=sqlite:from-file.db\nOUTBOX_RETRY_MAX=2\nICHIDO_LOG=error\n");
    let server = ServeProcess::start(folder.path(), &[]);
    assert!(folder.path().join("from-file.db").is_file() && !folder.path().join("ichido.db").exists());
    let accepted = server.send(&RawRequest::put("k", "{}")).await.json();
    let message = server.get(accepted["href"].as_str().expect("a path")).await.json();
    assert_eq!(message["max_attempts"], 3, "{message}");
    let _flagged = ServeProcess::start(folder.path(), &["--store", "sqlite:by-flag.db"]);
    assert!(folder.path().join("by-flag.db").is_file());
}

/// Several servers are one system, on PostgreSQL and on one SQLite file: one accepts, another delivers, and both show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_one_store() {
    for kind in [DatabaseKind::Postgres, DatabaseKind::Sqlite] {
        let fixture = ServerFixture::new(kind).await;
        let one = fixture.serve(&[]);
        let two = fixture.serve(&[]);
        let put = one.send(&RawRequest::put("k", "{}")).await;
        let again = two.send(&RawRequest::put("k", "{}")).await;
        assert_eq!(
            (again.status(), &again.body, again.one("idempotency-replayed")),
            (201, &put.body, Some("true"))
        );
        two.until_status(put.one("location").unwrap(), "sent").await;
        let nodes = two.get("/v1/nodes").await.json();
        assert_eq!((&nodes["nodes"][0]["alive"], &nodes["nodes"][1]["alive"]), (&true.into(), &true.into()));
        let effects = (one.effects().await["effects"].clone(), two.effects().await["effects"].clone());
        assert!(effects == (1.into(), 0.into()) || effects == (0.into(), 1.into()), "{effects:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_configuration_prevents_start() {
    let folder = folder::fresh();
    let other = folder::fresh();
    let taken = ServeProcess::start(other.path(), &[]);
    let address = taken.address.to_string();
    for (flags, code, part) in [
        (&["--listen", address.as_str()][..], 1, "cannot listen on"),
        (&["--config", "nowhere.toml"], 2, "nowhere.toml"),
        (&["--listen", "127.0.0.1:0", "--head-timeout", "soon", "--max-connections", "0"], 2, "2 problems"),
    ] {
        let output = ichido(folder.path()).arg("serve").args(flags).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), err.contains(part)), (Some(code), true), "{err}");
    }
    assert!(!folder.path().join("ichido.db").exists(), "nothing was made");
}

/// The file, then the environment, then flags; the origin of each is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flags_override_environment_and_environment_overrides_file() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    fixture.folder.write(
        "ichido.toml",
        "[store]\nurl = \"sqlite:file.db\"\n[destinations.p]\nkind = \"mock\"\n[queues.orders]\ndestination = \"p\"\nmax_retries = 3\n",
    );
    let show = |flags: &[&str]| {
        let mut command = ichido(fixture.folder.path());
        command.args(["config", "show", "--origin"]).args(flags);
        let command = command.env("ICHIDO__STORE__URL", "sqlite:variable.db");
        let output = command.env("ICHIDO__QUEUES__ORDERS__MAX_RETRIES", "5").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = show(&[]);
    assert!(shown.contains("url = \"sqlite:variable.db\"  # the variable ICHIDO__STORE__URL\n"), "{shown}");
    assert!(
        shown.contains("max_retries = 5  # the variable ICHIDO__QUEUES__ORDERS__MAX_RETRIES\n"),
        "{shown}"
    );
    assert!(shown.contains("destination = \"p\"  # ichido.toml:6:15\n"), "{shown}");
    let shown = show(&["--store", "sqlite:flag.db"]);
    assert!(shown.contains("url = \"sqlite:flag.db\"  # the flag --store\n"), "{shown}");
    let mut refused = ichido(fixture.folder.path());
    let refused =
        refused.args(["config", "check"]).env("ICHIDO__QUEUES__ORDRES__LEASE", "5m").output().unwrap();
    let err = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(
        err.contains(
            "the variable ICHIDO__QUEUES__ORDRES__LEASE: [queues.ordres] does not exist; did you mean orders"
        ),
        "{err}"
    );
}

/// `[serve]` is in force, variables override it, and flags override both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_sets_listen_address_and_timeouts() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    fixture.folder.write(
        "ichido.toml",
        "[serve]\nlisten = \"127.0.0.2:1\"\nhead_timeout = \"50ms\"\n[destinations.p]\nkind = \"mock\"\n[queues.orders]\ndestination = \"p\"\n",
    );
    let taken = ichido(fixture.folder.path())
        .args(["serve", "--store", &fixture.url])
        .env("ICHIDO__SERVE__LISTEN", "192.0.2.1:1")
        .output()
        .unwrap();
    let err = String::from_utf8(taken.stderr).unwrap();
    assert!(taken.status.code() == Some(1) && err.contains("cannot listen on 192.0.2.1:1"), "{err}");
    // With one connection at a time no request may wait for a message's end; the flag overrides that.
    let elsewhere = folder::fresh();
    let broker = ServeProcess::start(elsewhere.path(), &[]);
    let config = format!(
        "[serve]\nmax_connections = 1\n[destinations.p]\nkind = \"mock\"\nurl = \"http://{}/orders\"\n[queues.orders]\ndestination = \"p\"\n",
        broker.broker()
    );
    fixture.folder.write("ichido.toml", &config);
    for (flags, status) in [(&[][..], 202), (&["--max-connections", "1024"], 200)] {
        let server = fixture.serve(flags);
        let put = RawRequest::put(&status.to_string(), "{}").to("/v1/queues/orders/messages?wait=30s");
        assert_eq!(server.send(&put).await.status(), status);
    }
}
