//! Access to a worker's metrics.
// Spec: E6.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use super::program::{ichido, run};
use crate::folder::{self, TempFolder};
use crate::serve::client::{RawClient, RawRequest, problem, send};

/// Creates a folder with a queue and its own store.
fn worker_folder() -> TempFolder {
    let folder = folder::fresh();
    folder.write(
        "ichido.toml",
        "[store]\nurl = \"sqlite:ichido.db\"\n[queues.orders]\ndestination = \"mock\"\n[destinations.mock]\nkind = \"mock\"\n",
    );
    folder
}

/// A worker that ends when dropped, and the port of its pages.
struct MetricsWorker {
    child: Child,
    port: u16,
}

impl MetricsWorker {
    fn start(folder: &TempFolder, metrics: &str) -> Self {
        let mut command = ichido(folder.path());
        let mut child =
            command.args(["worker", "--metrics", metrics]).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut worker = Self { child, port: 0 };
        for line in lines {
            let line = line.expect("text");
            if let Some((_, rest)) = line.split_once("metrics at http://") {
                let address: SocketAddr = rest.trim_end_matches("/metrics").parse().expect("an address");
                worker.port = address.port();
            }
            if line.contains(" works on ") {
                return worker;
            }
        }
        panic!("it does not work");
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }
}

impl Drop for MetricsWorker {
    fn drop(&mut self) {
        // It may already have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_metrics_require_a_token_and_health_does_not() {
    let folder = worker_folder();
    let refused = run(folder.path(), &["worker", "--metrics", "0.0.0.0:0"], "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("--metrics: 0.0.0.0:"), "{}", refused.err);
    assert!(refused.err.contains("no token exists") && refused.err.contains("ichido token create"));
    let token = |role: &[&str]| {
        let store = ["--store", "sqlite:ichido.db"];
        let made = run(folder.path(), &[&["token", "create", "prometheus"], role, &store].concat(), "");
        assert_eq!(made.code, Some(0), "{made:?}");
        made.out.trim().to_owned()
    };
    let viewer = token(&["--role", "viewer"]);
    let producer = token(&["--role", "producer", "--identity", "shop", "--queue", "orders"]);
    let worker = MetricsWorker::start(&folder, "0.0.0.0:0");
    let get = async |target: &str| send(worker.address(), &RawRequest::get(target)).await;
    assert_eq!(problem(&get("/metrics").await), (401, "token_missing".to_owned()));
    let with = async |token: &str| send(worker.address(), &RawRequest::get("/metrics").token(token)).await;
    assert_eq!(problem(&with(&producer).await), (403, "role_insufficient".to_owned()));
    let page = with(&viewer).await;
    assert!(page.status() == 200 && page.text().contains("# TYPE "), "{page:?}");
    for target in ["/livez", "/readyz"] {
        assert_eq!(get(target).await.status(), 200, "{target}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loopback_metrics_refuse_foreign_hosts() {
    let folder = worker_folder();
    let worker = MetricsWorker::start(&folder, "127.0.0.1:0");
    let host = |host: &str| RawRequest::get("/metrics").field("Host", host);
    for own in ["localhost", "127.0.0.1:9464"] {
        assert_eq!(send(worker.address(), &host(own)).await.status(), 200, "{own}");
    }
    let foreign = send(worker.address(), &host("evil.example")).await;
    assert_eq!(problem(&foreign), (403, "host_not_allowed".to_owned()));
    // Silent connections do not block others.
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(RawClient::connect(worker.address()).await);
    }
    for target in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(send(worker.address(), &RawRequest::get(target)).await.status(), 200, "{target}");
    }
}
