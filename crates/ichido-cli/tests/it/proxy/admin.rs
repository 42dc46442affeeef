//! The proxy's own health and metrics, on an address of their own.
// Spec: E6, F2.

use ichido_store::Store;
use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;

use super::client::{HUNG, ProxyRequest, send, send_bytes};
use super::ledger::add_unknown;
use super::program::{ProxyProcess, run};
use super::service::{FakeService, ServiceAction};

const PATHS: [&str; 3] = ["/livez", "/readyz", "/metrics"];

async fn page(proxy: &ProxyProcess, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", proxy.admin);
    let found = send_bytes(proxy.admin, request).await.expect("a response");
    (found.status(), found.text().to_owned())
}

/// Returns the value of the series with these labels.
fn value(metrics: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has_labels = |line: &&str| {
        let mut labels = labels.iter().map(|(label, value)| format!("{label}=\"{value}\""));
        line.starts_with(name) && labels.all(|label| line.contains(&label))
    };
    metrics.lines().find(has_labels)?.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn no_path_of_the_upstream_is_shadowed() {
    let service = FakeService::start(|request, _| ServiceAction::ok(&request.first)).await;
    let file = fresh_file();
    let adapter = ["--store", &file.url, "--identity", "single:shop", "--operation", "POST /orders"];
    for (role, flags) in [("bff", &[][..]), ("gateway", &[]), ("adapter", &adapter)] {
        let proxy = ProxyProcess::start(role, service.address, flags);
        for path in PATHS {
            let own = send(proxy.address, &ProxyRequest::get(path)).await;
            assert_eq!((own.status(), own.text()), (200, format!("GET {path} HTTP/1.1").as_str()), "{role}");
            assert_eq!(page(&proxy, path).await.0, 200, "{role} {path}");
        }
    }
}

/// The type of a proxy's problem is a URN: its page is where the paths are the proxy's own.
#[tokio::test]
async fn errors_of_the_proxy_have_pages_on_the_admin_address() {
    let service = FakeService::start(|_, _| ServiceAction::ok("theirs")).await;
    let file = fresh_file();
    let flags = ["--store", &file.url, "--identity", "single:shop", "--operation", "POST /orders"];
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    let refused = send(proxy.address, &ProxyRequest::post("/other").key("k").body("{}")).await;
    let problem = refused.json();
    assert_eq!(problem["type"], "urn:ichido:problem:operation_not_configured");
    assert_eq!(refused.one("x-content-type-options"), Some("nosniff"));
    for code in [problem["code"].as_str().unwrap(), "outcome_unknown", "upstream_lost"] {
        let (status, text) = page(&proxy, &format!("/errors/{code}")).await;
        assert!(status == 200 && text.starts_with(&format!("# `{code}` (")), "{text}");
    }
    assert!(page(&proxy, "/errors").await.1.contains("[`upstream_lost`](upstream_lost.md)"));
    let (status, unknown) = page(&proxy, "/errors/nonsense").await;
    assert!(status == 404 && unknown.contains("\"type\":\"/errors/route_unknown\""), "{unknown}");
    assert_eq!(send(proxy.address, &ProxyRequest::get("/errors")).await.text(), "theirs");
}

async fn metrics_count_requests_and_held_keys(store: &str) {
    let service = FakeService::start(|request, _| match request.text() {
        "lost" => ServiceAction::status("503 Service Unavailable"),
        _ => ServiceAction::ok("made"),
    })
    .await;
    let flags = ["--store", store, "--identity", "single:shop", "--operation", "POST /orders"];
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    let order = |key: &str, body: &str| ProxyRequest::post("/orders").key(key).body(body);
    for (key, body) in [("k1", "fine"), ("k1", "fine"), ("k2", "lost")] {
        send(proxy.address, &order(key, body)).await;
    }
    let (_, metrics) = page(&proxy, "/metrics").await;
    let once = "ichido_once_requests_total";
    for (result, success) in [("first", "true"), ("replayed", "true"), ("first", "false")] {
        let labels = [("operation", "POST /orders"), ("result", result), ("success", success)];
        assert_eq!(value(&metrics, once, &labels), Some(1.0), "{result} {success} in {metrics}");
    }
    assert_eq!(
        value(&metrics, "ichido_once_held_total", &[("operation", "POST /orders")]),
        Some(1.0),
        "{metrics}"
    );
    let served = [("method", "POST"), ("status", "503")];
    assert_eq!(value(&metrics, "ichido_http_requests_total", &served), Some(1.0), "{metrics}");
    assert!(!metrics.contains("k2"), "no label has a key");
}

#[tokio::test]
async fn metrics_count_requests_and_held_keys_on_sqlite() {
    let file = fresh_file();
    metrics_count_requests_and_held_keys(&file.url).await;
}

#[tokio::test]
async fn metrics_count_requests_and_held_keys_on_postgres() {
    let database = fresh_database().await;
    metrics_count_requests_and_held_keys(&database.url).await;
}

/// Without a worker, the metric and the log are the alert.
async fn keys_of_unknown_outcome_are_reported(url: &str) {
    let store = Store::open(url, 2).await.expect("the store");
    add_unknown(&store, "POST /orders", "shop", "k-1").await;
    add_unknown(&store, "POST /orders", "shop", "k-2").await;
    let service = FakeService::plain().await;
    let flags = ["--store", url, "--identity", "single:shop", "--operation", "POST /orders"];
    let mut proxy = ProxyProcess::start_logged("adapter", service.address, &flags);
    let measured = async {
        loop {
            let (_, metrics) = page(&proxy, "/metrics").await;
            if let Some(count) = value(&metrics, "ichido_ledger_unknown ", &[]) {
                return (count, value(&metrics, "ichido_ledger_unknown_oldest_seconds ", &[]));
            }
            tokio::task::yield_now().await;
        }
    };
    let (count, oldest) = tokio::time::timeout(HUNG, measured).await.expect("it is measured");
    assert!((count - 2.0).abs() < 0.1 && oldest.is_some_and(|age| 0.0 < age), "{count} {oldest:?}");
    proxy.signal("TERM");
    proxy.wait().await;
    let log = proxy.log();
    assert!(log.contains("alert: keys of unknown outcome wait for a person"), "{log}");
    assert!(log.contains("unknown=2") && !log.contains("k-1"), "{log}");
}

#[tokio::test]
async fn keys_of_unknown_outcome_are_reported_on_sqlite() {
    let file = fresh_file();
    keys_of_unknown_outcome_are_reported(&file.url).await;
}

#[tokio::test]
async fn keys_of_unknown_outcome_are_reported_on_postgres() {
    let database = fresh_database().await;
    keys_of_unknown_outcome_are_reported(&database.url).await;
}

#[tokio::test]
async fn readiness_of_an_adapter_checks_its_store() {
    let service = FakeService::plain().await;
    let file = fresh_file();
    let flags = ["--store", &file.url, "--identity", "single:shop", "--operation", "POST /orders"];
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    let (status, body) = page(&proxy, "/readyz?verbose").await;
    assert_eq!(status, 200);
    assert!(body.contains("\"name\":\"store\",\"ok\":true"), "{body}");
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let (status, body) = page(&proxy, "/readyz?verbose").await;
    assert_eq!(status, 200);
    assert!(!body.contains("store"), "a gateway has none: {body}");
}

#[tokio::test]
async fn taken_admin_port_is_refused_with_the_fix() {
    let service = FakeService::plain().await;
    let first = ProxyProcess::start("bff", service.address, &[]);
    let (taken, upstream) = (first.admin.to_string(), format!("http://{}", service.address));
    let flags = ["--role", "bff", "--upstream", &upstream, "--listen", "127.0.0.1:0", "--admin", &taken];
    let (code, _, err) = run(&[&["proxy"], &flags[..]].concat());
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("cannot listen on {taken}")) && err.contains("with --admin"), "{err}");
}

#[tokio::test]
async fn admin_address_beyond_loopback_needs_tokens() {
    let upstream =
        ["proxy", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
    let (code, _, err) = run(&[&upstream[..], &["--role", "gateway"]].concat());
    assert_eq!(code, Some(2));
    assert!(err.contains("--admin: 0.0.0.0:0 can be reached from other machines"), "{err}");
    let file = fresh_file();
    let adapter =
        ["--role", "adapter", "--store", &file.url, "--identity", "single:shop", "--operation", "POST /a"];
    let (code, _, err) = run(&[&upstream[..], &adapter].concat());
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("no token exists"), "{err}");
}

#[tokio::test]
async fn metrics_are_not_served_under_another_hosts_name() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let foreign = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let refused = send_bytes(proxy.admin, foreign).await.expect("a response");
    assert_eq!((refused.status(), refused.code().as_str()), (403, "host_not_allowed"));
}
