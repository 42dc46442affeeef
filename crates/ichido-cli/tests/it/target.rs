//! How commands find the server or store of the folder they run in.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use ichido_store::Store;
use uuid::Uuid;

use crate::folder;
use crate::send::program::{SendOutput, run};
use crate::serve::program::{ServeProcess, ichido};

const ORDER: &str = r#"{"symbol":"ACME","intent":"buy","qty":"10"}"#;

/// Commands that look and need nothing but the folder.
const LOOKING: [&[&str]; 9] = [
    &["queues", "list"],
    &["messages", "list"],
    &["dead", "list"],
    &["dead", "operations"],
    &["keys", "unknown"],
    &["keys", "find", "--key", "k1"],
    &["destinations", "list"],
    &["alerts"],
    &["token", "list"],
];

/// Returns a command that names neither a server nor a store.
fn bare(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = ichido(folder);
    command.env_remove("ICHIDO_SERVER").env_remove("ICHIDO_TOKEN").args(arguments);
    command
}

fn done(folder: &Path, arguments: &[&str]) -> SendOutput {
    let left = run(bare(folder, arguments), "");
    assert_eq!(left.code, Some(0), "{arguments:?}: {left:?}");
    left
}

async fn make_store(folder: &Path) {
    let url = format!("sqlite:{}", folder.join("ichido.db").display());
    let store = Store::open(&url, 2).await.unwrap();
    store.close(std::time::Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_find_the_running_server_of_the_folder() {
    let folder = folder::fresh();
    let mut server = ServeProcess::start(folder.path(), &[]);
    let through = format!("ichido: using http://{}, the server of ./ichido.db\n", server.address);
    let sent = run(bare(folder.path(), &["send", "demo", "--key", "k1"]), ORDER);
    assert!(sent.code == Some(0) && sent.out.starts_with("new "), "{sent:?}");
    assert_eq!(sent.err, through);
    let page = server.get("/metrics").await;
    let metrics = page.text();
    let is_counted = |line: &str| {
        line.starts_with(r#"ichido_arrivals_total{queue="demo",result="new""#) && line.ends_with(" 1")
    };
    assert!(metrics.lines().any(is_counted), "the server counts it: {metrics}");
    for arguments in LOOKING {
        let left = done(folder.path(), arguments);
        let expected = if arguments[0] == "token" { "ichido: using ./ichido.db\n" } else { &through };
        assert_eq!(left.err, expected, "{arguments:?}");
    }
    assert_eq!(
        done(folder.path(), &["queues", "pause", "demo"]).out,
        "paused demo; it accepts messages, but sends none until it is resumed\n"
    );
    assert_eq!(done(folder.path(), &["healthcheck"]).out, "ready\n", "whatever its port is");
    for arguments in [&["doctor"][..], &["audit", "verify"], &["backup", "copy.db"]] {
        assert_eq!(done(folder.path(), arguments).err, "ichido: using ./ichido.db\n", "{arguments:?}");
    }
    // What the caller names is not announced.
    let url = format!("http://{}", server.address);
    assert_eq!(done(folder.path(), &["queues", "list", "--server", &url]).err, "");
    assert_eq!(done(folder.path(), &["queues", "list", "--store", "sqlite:ichido.db"]).err, "");
    server.signal("TERM");
    assert_eq!(server.wait().await.0, Some(0));
    assert!(!folder.path().join("ichido.db.server").exists());
    assert_eq!(done(folder.path(), &["queues", "list"]).err, "ichido: using ./ichido.db\n");
}

/// The store of a configuration is reached through its server too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_find_the_server_of_the_configured_store() {
    let folder = folder::fresh();
    folder.write(
        "ichido.toml",
        "[store]\nurl = \"sqlite:own.db\"\n[queues.orders]\ndestination = \"mock\"\n[destinations.mock]\nkind = \"mock\"\n",
    );
    let server = ServeProcess::start(folder.path(), &[]);
    let left = done(folder.path(), &["queues", "list"]);
    assert!(left.err.contains(&format!("using http://{}, the server of ", server.address)), "{left:?}");
    assert!(left.err.ends_with("own.db\n"), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_servers_address_is_ignored() {
    let folder = folder::fresh();
    let mut server = ServeProcess::start(folder.path(), &[]);
    server.signal("KILL");
    server.wait().await;
    assert!(folder.path().join("ichido.db.server").exists(), "nobody could remove it");
    assert_eq!(done(folder.path(), &["queues", "list"]).err, "ichido: using ./ichido.db\n");
    let next = ServeProcess::start(folder.path(), &[]);
    let left = done(folder.path(), &["queues", "list"]);
    assert!(left.err.contains(&next.address.to_string()), "{left:?}");
}

/// Answers one request; returns its head.
fn answer(listener: TcpListener, response: &'static str) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        stream.write_all(response.as_bytes()).unwrap();
        head
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guessed_server_never_gets_the_token() {
    let folder = folder::fresh();
    make_store(folder.path()).await;
    let mut file = File::create(folder.path().join("ichido.db.server")).unwrap();
    file.try_lock().unwrap();
    for (response, why) in [
        (
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "it requires a token",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{\"nodes\":[]}",
            "it does not serve this store",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        file.set_len(0).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        writeln!(file, "http://{address} {}", Uuid::from_u128(1)).unwrap();
        let answering = answer(listener, response);
        let mut command = bare(folder.path(), &["queues", "list"]);
        command.env("ICHIDO_TOKEN", "ichido_s3cret").stdin(Stdio::null());
        let left = run(command, "");
        let head = answering.join().unwrap();
        assert!(head.starts_with("GET /v1/nodes "), "{head}");
        assert!(!head.to_lowercase().contains("authorization") && !head.contains("s3cret"), "{head}");
        assert_eq!((left.code, left.out.as_str()), (Some(0), "no queues\n"), "{left:?}");
        let said = format!("using ./ichido.db directly, not its server at http://{address}: {why}");
        assert!(left.err.contains(&said), "{left:?}");
    }
}

/// A server with tokens is not used without being named, and commands still work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_use_the_store_if_the_server_requires_a_token() {
    let folder = folder::fresh();
    let token = done(folder.path(), &["token", "create", "ann", "--role", "admin"]).out;
    let server = ServeProcess::start(folder.path(), &[]);
    let mut command = bare(folder.path(), &["queues", "list"]);
    command.env("ICHIDO_TOKEN", token.trim());
    let left = run(command, "");
    assert_eq!(left.code, Some(0), "{left:?}");
    for part in ["using ./ichido.db directly", "it requires a token\n", "pass --server"] {
        assert!(left.err.contains(part), "no {part} in {left:?}");
    }
    assert!(left.err.lines().all(|line| line.len() <= 100), "short lines: {left:?}");
    let url = format!("http://{}", server.address);
    let mut command = bare(folder.path(), &["queues", "list", "--server", &url]);
    command.env("ICHIDO_TOKEN", token.trim());
    assert_eq!(run(command, "").code, Some(0), "a named server gets it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flags_override_environment_and_environment_overrides_the_folder() {
    const AWAY: &str = "http://127.0.0.1:1";
    let folder = folder::fresh();
    make_store(folder.path()).await;
    let (server, store) = (("ICHIDO_SERVER", AWAY), ("ICHIDO_STORE", "sqlite:elsewhere.db"));
    for (variables, flags, code, part) in [
        (&[server, store][..], &["--store", "sqlite:ichido.db"][..], 0, ""),
        (&[server, store], &["--server", AWAY], 3, "the server cannot be reached"),
        (&[server], &[], 3, "the server cannot be reached"),
        (&[store], &[], 3, "no store at"),
        (&[server, store], &[], 2, "both a server and a store are given"),
        (&[], &["--server", AWAY, "--store", "sqlite:ichido.db"], 2, "both a server and a store are given"),
        (&[], &[], 0, "using ./ichido.db"),
    ] {
        let mut command = bare(folder.path(), &["queues", "list"]);
        command.args(flags).envs(variables.iter().copied());
        let left = run(command, "");
        assert_eq!(
            (left.code, left.err.contains(part)),
            (Some(code), true),
            "{variables:?} {flags:?}: {left:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_folder_is_explained_and_stays_empty() {
    let folder = folder::fresh();
    let send: &[&str] = &["send", "demo", "--key", "k1"];
    for arguments in LOOKING.into_iter().chain([send]) {
        let left = run(bare(folder.path(), arguments), ORDER);
        assert_eq!(left.code, Some(3), "{arguments:?}: {left:?}");
        // `token` works on the store alone.
        let takes_server = arguments[0] != "token";
        let wanted = if takes_server { "no server or store found" } else { "no store found" };
        for part in [wanted, "--store", "ichido.toml", "`ichido serve`"] {
            assert!(left.err.contains(part), "{arguments:?}: no {part} in {left:?}");
        }
        assert_eq!(left.err.contains("--server"), takes_server, "{arguments:?}: {left:?}");
    }
    let left = run(bare(folder.path(), &["doctor"]), "");
    assert_eq!(left.code, Some(3), "{left:?}");
    assert!(left.out.contains("help: run `ichido serve` to start a server here"), "{left:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_needs_no_delivery_secrets() {
    let folder = folder::fresh();
    make_store(folder.path()).await;
    let config = r#"
[store]
url = "sqlite:ichido.db"
[queues.orders]
destination = "shop"
[destinations.shop]
kind = "http"
url = "https://shop.test/hook"
guarantee = "idempotent"
headers = { Authorization = "env:SHOP_AUTHORIZATION" }
signing_secrets = ["env:SHOP_SECRET", "file:nowhere"]
[queues.chat]
destination = "chat"
[destinations.chat]
kind = "http"
url = "env:CHAT_URL"
guarantee = "idempotent"
"#;
    folder.write("ichido.toml", config);
    for arguments in LOOKING.into_iter().chain([&["config", "show"][..], &["audit", "verify"]]) {
        done(folder.path(), arguments);
    }
    let sent = run(bare(folder.path(), &["send", "orders", "--key", "k1"]), "{}");
    assert!(
        sent.code == Some(0) && sent.err.contains("queues and schemas are those of ichido.toml"),
        "{sent:?}"
    );
    let report = done(folder.path(), &["doctor"]).out;
    assert!(report.contains("warning  secrets") && report.contains("SHOP_SECRET"), "{report}");
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["worker"], &["config", "check"]] {
        let left = run(bare(folder.path(), arguments), "");
        assert_eq!(left.code, Some(2), "{arguments:?}: {left:?}");
        for name in ["SHOP_AUTHORIZATION", "SHOP_SECRET", "CHAT_URL"] {
            assert!(left.err.contains(name), "{arguments:?}: no {name} in {left:?}");
        }
    }
    // Without the store's address the right store is unknown.
    folder.write("ichido.toml", &config.replace("sqlite:ichido.db", "env:STORE_URL"));
    let left = run(bare(folder.path(), &["queues", "list"]), "");
    assert!(left.code == Some(2) && left.err.contains("STORE_URL is not set"), "{left:?}");
}

/// A port alone is one of this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_listens_on_a_port_of_loopback() {
    for listen in ["0", ":0"] {
        let folder = folder::fresh();
        let server = ServeProcess::start(folder.path(), &["--listen", listen]);
        assert!(server.address.ip().is_loopback(), "{listen}: {}", server.address);
    }
}

/// The audit trail names somebody even if the variables of a login are missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_is_named_without_a_login() {
    let folder = folder::fresh();
    let by = |user: Option<&str>, logname: Option<&str>, name: &str| {
        let mut command = bare(folder.path(), &["token", "create", name, "--role", "viewer"]);
        command.env_remove("USER").env_remove("LOGNAME");
        command.envs(user.map(|user| ("USER", user))).envs(logname.map(|user| ("LOGNAME", user)));
        assert_eq!(run(command, "").code, Some(0));
    };
    by(Some("ann"), Some("bob"), "a");
    by(None, Some("bob"), "b");
    by(None, None, "c");
    let url = format!("sqlite:{}", folder.path().join("ichido.db").display());
    let actions = Store::open(&url, 2).await.unwrap().actions().list(None, 10).await.unwrap();
    let mut actors: Vec<String> = actions.into_iter().filter_map(|row| row.action.actor).collect();
    actors.sort();
    assert_eq!(actors.len(), 3);
    assert_eq!(actors[..2], ["ann", "bob"]);
    assert!(actors[2].starts_with("uid "), "{actors:?}");
}
