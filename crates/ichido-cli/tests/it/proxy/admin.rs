//! The proxy's own health and metrics, on an address of their own.
// Spec: E6, F2.

use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;

use super::client::{ProxyRequest, send, send_bytes};
use super::program::{ProxyProcess, run};
use super::service::{FakeService, ServiceAction};

const PATHS: [&str; 3] = ["/livez", "/readyz", "/metrics"];

async fn page(proxy: &ProxyProcess, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", proxy.admin);
    let found = send_bytes(proxy.admin, request).await.expect("a response");
    (found.status(), found.text().to_owned())
}

/// Returns the value of a series.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
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
    let once = |result: &str, success: &str| {
        format!(
            "ichido_once_requests_total{{operation=\"POST /orders\",result=\"{result}\",attempt=\"unknown\",success=\"{success}\"}}"
        )
    };
    for series in [once("first", "true"), once("replayed", "true"), once("first", "false")] {
        assert_eq!(value(&metrics, &series), Some(1.0), "{series} in {metrics}");
    }
    assert_eq!(value(&metrics, "ichido_once_held_total{operation=\"POST /orders\"}"), Some(1.0), "{metrics}");
    let served = "ichido_http_requests_total{method=\"POST\",status=\"503\"}";
    assert_eq!(value(&metrics, served), Some(1.0), "{metrics}");
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
    let upstream = ["proxy", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
    let (code, _, err) = run(&[&upstream[..], &["--role", "gateway"]].concat());
    assert_eq!(code, Some(2));
    assert!(err.contains("--admin: 0.0.0.0:0 can be reached from other machines"), "{err}");
    let file = fresh_file();
    let adapter = ["--role", "adapter", "--store", &file.url, "--identity", "single:shop", "--operation", "POST /a"];
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
