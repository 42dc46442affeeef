//! Asks a server whether it is ready.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};

use ichido_store::testing::postgres::{Cluster, StopMode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::folder;
use crate::serve::client::{RawRequest, send};
use crate::serve::program::{DatabaseKind, ServerFixture, ichido};

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = ichido(folder);
    command.env_remove("ICHIDO_SERVER").env_remove("ICHIDO_TOKEN").arg("healthcheck").args(arguments);
    let output = tokio::task::block_in_place(|| command.output()).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Starts a server that gives every connection the same response, or none.
async fn answering(answer: Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            match answer {
                Some(answer) => {
                    let mut head = [0; 4096];
                    let read = stream.read(&mut head).await.unwrap();
                    assert!(head[..read].starts_with(b"GET /readyz "), "it asks for nothing else");
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
                None => silent.push(stream),
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_server_is_healthy_without_a_token() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    fixture.token(&["ann", "--role", "admin"]);
    let mut server = fixture.serve(&[]);
    let url = format!("http://{}", server.address);
    let printed = run(fixture.folder.path(), &["--server", &url]);
    assert_eq!(printed, (Some(0), "ready\n".to_owned(), String::new()));
    // The configured address works, also if it is all interfaces.
    let config = format!("[serve]\nlisten = \"0.0.0.0:{}\"\n", server.address.port());
    let file = fixture.folder.write("elsewhere.toml", &config);
    assert_eq!(run(fixture.folder.path(), &["--config", &file]).0, Some(0));
    let (code, out, _) = run(fixture.folder.path(), &["--server", &url, "--json"]);
    assert_eq!(
        (code, serde_json::from_str::<Value>(&out).unwrap()["ready"].as_bool()),
        (Some(0), Some(true))
    );

    server.signal("TERM");
    assert_eq!(server.wait().await.0, Some(0));
    let (code, out, err) = run(fixture.folder.path(), &["--server", &url]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("the server cannot be reached"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_other_health_response_is_code_1() {
    let folder = folder::fresh();
    let not_ready = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nContent-Length: 61\r\n\r\n\
        {\"code\":\"not_ready\",\"detail\":\"checks failed: store \\u001b[2\"}";
    let moved = "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n";
    for (answer, printed) in [
        (Some(not_ready), "the server responded 503: checks failed: store"),
        (Some(moved), "the server responded 302"),
        (None, "the server cannot be reached"),
    ] {
        let url = format!("http://{}", answering(answer).await);
        let (code, out, err) = run(folder.path(), &["--server", &url]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(printed) && !err.contains('\u{1b}'), "{err}");
    }
    let (code, out, _) = run(folder.path(), &["--server", "no address", "--json"]);
    assert_eq!(code, Some(1));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["ready"], false);
    let file = folder.write("any.toml", "[serve]\nlisten = \"127.0.0.1:0\"\n");
    let (code, _, err) = run(folder.path(), &["--config", &file]);
    assert_eq!(code, Some(1));
    assert!(err.contains("pass it with --server"), "{err}");
    let file = folder.write("closed.toml", "[serve]\nlisten = \"127.0.0.1:9\"\n");
    let (code, _, err) = run(folder.path(), &["--config", &file]);
    assert_eq!(code, Some(1));
    assert!(err.contains("(tried http://127.0.0.1:9; --server names another)"), "{err}");
    let file = folder.write("broken.toml", "[serve]\nlisten = 1\n");
    assert_eq!(run(folder.path(), &["--config", &file]).0, Some(1));
}

/// A worker with a metrics page; it ends when dropped.
struct HealthWorker {
    child: Child,
    url: String,
}

impl HealthWorker {
    fn start(folder: &Path, store: &str) -> Self {
        let mut command = ichido(folder);
        command.args(["worker", "--metrics", "127.0.0.1:0", "--store", store]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let mut worker = Self { child, url: String::new() };
        for line in BufReader::new(out).lines() {
            let line = line.unwrap();
            if let Some((_, rest)) = line.split_once("metrics at ") {
                rest.trim_end_matches("/metrics").clone_into(&mut worker.url);
            }
            if line.contains(" works on ") {
                return worker;
            }
        }
        panic!("it does not work");
    }
}

impl Drop for HealthWorker {
    fn drop(&mut self) {
        // It may already have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A worker without a server is ready if its store is.
// Spec: E6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_is_ready_while_its_database_responds() {
    let cluster = Cluster::start(&[]).unwrap();
    let database = cluster.database().await.unwrap();
    let folder = folder::fresh();
    folder.write(
        "ichido.toml",
        "[queues.orders]\ndestination = \"mock\"\n[destinations.mock]\nkind = \"mock\"\n",
    );
    let worker = HealthWorker::start(folder.path(), &database.url);
    let printed = run(folder.path(), &["--server", &worker.url]);
    assert_eq!(printed, (Some(0), "ready\n".to_owned(), String::new()));
    let address: SocketAddr = worker.url.trim_start_matches("http://").parse().unwrap();
    let get = async |target: &str| send(address, &RawRequest::get(target)).await;
    assert_eq!(get("/livez").await.text(), "ok\n");
    let verbose = get("/readyz?verbose").await.json();
    let checks: Vec<&Value> =
        verbose["checks"].as_array().unwrap().iter().map(|check| &check["name"]).collect();
    assert_eq!(checks, ["store", "worker"]);
    assert_eq!(get("/").await.status(), 404);

    cluster.stop(StopMode::Immediate).unwrap();
    let (code, out, err) = run(folder.path(), &["--server", &worker.url]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("the server responded 503: checks failed: store"), "{err}");
    assert_eq!(get("/livez").await.status(), 200, "it runs, and a restart would not help");
}
