//! One trace from the caller to the receiver.

use ichido_store::testing::sqlite::fresh_file;

use super::collector::{Collector, ExportedSpan, resource_of};
use crate::proxy::client::{ProxyRequest, send};
use crate::proxy::program::ProxyProcess;
use crate::proxy::service::FakeService;
use crate::serve::client::RawRequest;
use crate::serve::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture, ichido};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Starts a server whose queue delivers to an address where nobody listens, or to its own mock broker.
fn serve(fixture: &ServerFixture, collector: &Collector) -> ServeProcess {
    serve_with(fixture, collector, "")
}

fn serve_with(fixture: &ServerFixture, collector: &Collector, setting: &str) -> ServeProcess {
    let endpoint = format!("http://{}", collector.address);
    fixture.folder.write(
        "ichido.toml",
        &format!(
            "[traces]\nendpoint = \"{endpoint}\"\n{setting}\n[destinations.gone]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\nguarantee = \"none\"\n[queues.demo]\ndestination = \"gone\"\nmax_retries = 1\nretry = {{ waits = [\"10ms\"] }}\n"
        ),
    );
    fixture.serve(&[])
}

pub(super) async fn until(
    collector: &Collector,
    fits: impl Fn(&[ExportedSpan]) -> bool,
) -> Vec<ExportedSpan> {
    loop {
        let spans = collector.spans();
        if fits(&spans) {
            return spans;
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acceptance_and_attempts_are_spans_of_the_callers_trace() {
    for on in [DatabaseKind::Sqlite, DatabaseKind::Postgres] {
        let (fixture, collector) = (ServerFixture::new(on).await, Collector::start().await);
        let server = serve(&fixture, &collector);
        let parent = format!("00-{TRACE}-{CALLER}-01");
        let put = RawRequest::put("order-4711", "{\"s3cret\":1}").field("traceparent", &parent);
        let accepted = server.send(&put).await;
        assert_eq!(accepted.status(), 201, "{accepted:?}");
        // Nobody listens there, so there are two attempts.
        let spans = until(&collector, |spans| spans.len() == 3).await;
        let of =
            |name: &str| -> Vec<&ExportedSpan> { spans.iter().filter(|span| span.name == name).collect() };
        let ([accept], [first, second]) = (&of("accept")[..], &of("deliver")[..]) else {
            panic!("{spans:?}")
        };
        for span in &spans {
            assert_eq!(span.trace, TRACE, "{span:?}");
            assert!(span.began <= span.ended && 0 < span.began, "{span:?}");
            assert_eq!(span.attributes["ichido.queue"], "demo");
            assert_eq!(span.attributes["idempotency.key"], "order-4711");
            assert_eq!(span.attributes["ichido.message_id"], accepted.json()["id"].as_str().unwrap());
        }
        assert_eq!((accept.parent.as_str(), accept.kind, accept.status), (CALLER, 2, 0));
        assert_eq!((&first.parent, first.kind, first.status), (&accept.id, 3, 2), "a child that failed");
        assert_eq!((&second.parent, second.attributes["ichido.attempt"].as_str()), (&accept.id, "2"));
        assert_ne!((&first.id, &accept.id), (&second.id, &second.id));
        assert!(!format!("{spans:?}").contains("s3cret"), "{spans:?}");
        for request in collector.requests() {
            assert_eq!(request.first, "POST /v1/traces HTTP/1.1");
            assert_eq!(resource_of(&request.json())["service.name"], "ichido");
        }
        // The stored trace links them.
        let shown = server.get(accepted.json()["href"].as_str().unwrap()).await.json();
        assert_eq!(shown["trace"], format!("00-{TRACE}-{}-01", accept.id));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_carry_the_hash_of_the_key_if_configured() {
    let (fixture, collector) = (ServerFixture::new(DatabaseKind::Sqlite).await, Collector::start().await);
    let server = serve_with(&fixture, &collector, "hash_keys = true");
    assert_eq!(server.send(&RawRequest::put("order-4711", "{}")).await.status(), 201);
    let spans = until(&collector, |spans| spans.len() == 3).await;
    // printf %s order-4711 | sha256sum | cut -c1-16
    let is_hash = |span: &ExportedSpan| span.attributes["idempotency.key"] == "173d0ddbff034193";
    assert!(spans.iter().all(is_hash) && !format!("{spans:?}").contains("4711"), "{spans:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_an_adapter_are_spans_with_their_key() {
    let (file, collector, service) = (fresh_file(), Collector::start().await, FakeService::plain().await);
    let endpoint = format!("http://{}", collector.address);
    let flags = ["--store", &file.url, "--identity", "single:shop", "--operation", "POST /orders"];
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let adapter = ProxyProcess::start_with_env("adapter", service.address, &flags, &env);
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let order = ProxyRequest::post("/orders").key("order-4711").field("traceparent", &parent).body("s3cret");
    for _ in 0..2 {
        send(adapter.address, &order).await;
    }
    let spans = until(&collector, |spans| spans.len() == 2).await;
    for span in &spans {
        assert_eq!((&*span.trace, &*span.parent, &*span.name), (TRACE, CALLER, "request"), "{span:?}");
        assert_eq!(span.attributes["idempotency.key"], "order-4711");
        assert_eq!(span.attributes["ichido.operation"], "POST /orders");
    }
    let mut results: Vec<&str> = spans.iter().map(|span| &*span.attributes["ichido.result"]).collect();
    results.sort_unstable();
    assert_eq!(results.len(), 2, "{spans:?}");
    assert_ne!(results[0], results[1], "the second is a replay");
    assert!(!format!("{spans:?}").contains("s3cret"), "{spans:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_trace_is_started_and_unsampled_one_not_recorded() {
    let (fixture, collector) = (ServerFixture::new(DatabaseKind::Sqlite).await, Collector::start().await);
    let server = serve(&fixture, &collector);
    let unwanted = format!("00-{TRACE}-{CALLER}-00");
    let put = RawRequest::put("unwanted", "{}").field("traceparent", &unwanted);
    let shown = server.get(server.send(&put).await.json()["href"].as_str().unwrap()).await.json();
    assert_eq!(shown["trace"], unwanted, "it is kept as it came");
    assert_eq!(server.send(&RawRequest::put("k", "{}")).await.status(), 201);
    let spans = until(&collector, |spans| spans.iter().any(|span| span.name == "deliver")).await;
    assert!(spans.iter().all(|span| span.trace != TRACE && span.trace == spans[0].trace), "{spans:?}");
}

/// A collector that is down or never responds delays nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_collector_delays_nothing() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = silent.local_addr().unwrap();
    let file = format!(
        "[traces]\nendpoint = \"http://{endpoint}\"\n[destinations.p]\nkind = \"mock\"\n[queues.demo]\ndestination = \"p\"\n"
    );
    fixture.folder.write("ichido.toml", &file);
    let mut server = fixture.serve(&[]);
    for key in 0..50 {
        assert_eq!(server.send(&RawRequest::put(&format!("k{key}"), "{}")).await.status(), 201);
    }
    // It still stops cleanly.
    server.signal("TERM");
    let (code, log) = server.wait().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_collector_url_is_refused_and_variable_overrides_file() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let refused = |variable: Option<&str>| {
        let mut command = ichido(fixture.folder.path());
        command.args(["serve", "--store", &fixture.url, "--listen", "127.0.0.1:0"]);
        if let Some(value) = variable {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", value);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let config = "[traces]\nendpoint = \"nowhere\"\n[destinations.p]\nkind = \"mock\"\n[queues.demo]\ndestination = \"p\"\n";
    fixture.folder.write("ichido.toml", config);
    let (code, text) = refused(None);
    assert!(code == Some(2) && text.contains("traces.endpoint: "), "{text}");
    fixture.folder.write("ichido.toml", &config.replace("nowhere", "http://127.0.0.1:1"));
    let (code, text) = refused(Some("elsewhere"));
    assert!(code == Some(2) && text.contains("OTEL_EXPORTER_OTLP_ENDPOINT: "), "{text}");
}
