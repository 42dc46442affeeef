//! A hosted vendor: HTTPS, an API key in a header, and the standard variables.

use http_for_tests::Authority;

use super::collector::{Collector, resource_of};
use super::spans::until;
use crate::serve::client::RawRequest;
use crate::serve::program::{DatabaseKind, ServeProcess, ServerFixture, ichido};

const FILE: &str = "[destinations.p]\nkind = \"mock\"\n[queues.demo]\ndestination = \"p\"\n";

fn serve(fixture: &ServerFixture, variables: &[(&str, &str)]) -> ServeProcess {
    fixture.folder.write("ichido.toml", FILE);
    let mut command = ichido(fixture.folder.path());
    command.envs(variables.iter().copied()).args(["--log", "debug", "serve", "--store", &fixture.url]);
    ServeProcess::spawn(command.args(["--listen", "127.0.0.1:0"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_reach_a_vendor_over_https_with_its_headers() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let authority = Authority::new("tests");
    let vendor = Collector::start_tls(authority.acceptor("127.0.0.1")).await;
    fixture.folder.write("roots.pem", &authority.pem());
    let mut server = serve(
        &fixture,
        &[
            ("SSL_CERT_FILE", fixture.folder.path().join("roots.pem").to_str().unwrap()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("https://{}/otlp", vendor.address)),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20s3cret==,x-dataset=orders"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=listed,host.name=north"),
            ("OTEL_SERVICE_NAME", "shop"),
        ],
    );
    assert_eq!(server.send(&RawRequest::put("k", "{}")).await.status(), 201);
    until(&vendor, |spans| spans.iter().any(|span| span.name == "deliver")).await;
    for request in vendor.requests() {
        assert_eq!(request.first, "POST /otlp/v1/traces HTTP/1.1");
        assert_eq!(request.one("authorization"), Some("Basic s3cret=="));
        assert_eq!(request.one("x-dataset"), Some("orders"));
        let resource = resource_of(&request.json());
        assert_eq!((resource["service.name"].as_str(), resource["host.name"].as_str()), ("shop", "north"));
    }
    server.signal("TERM");
    let (code, log) = server.wait().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_is_retried_when_the_collector_asks() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
    let collector = Collector::answering(&[busy]).await;
    let url = format!("http://{}/in?tenant=1", collector.address);
    let server = serve(&fixture, &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url)]);
    assert_eq!(server.send(&RawRequest::put("k", "{}")).await.status(), 201);
    until(&collector, |spans| spans.len() == 2).await;
    assert!(collector.requests().iter().all(|one| one.first == "POST /in?tenant=1 HTTP/1.1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_spans_are_counted() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let partial =
        "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}";
    let collector = Collector::answering(&[partial]).await;
    let url = format!("http://{}", collector.address);
    let server = serve(&fixture, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
    // Exports follow one another, so the first is counted when the second is accepted.
    for key in 0.. {
        if !collector.spans().is_empty() {
            break;
        }
        assert_eq!(server.send(&RawRequest::put(&format!("k{key}"), "{}")).await.status(), 201);
    }
    let metrics = server.get("/metrics").await;
    assert!(metrics.text().contains("ichido_traces_lost_total 1\n"), "{}", metrics.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_variable_prevents_start_without_showing_its_value() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    fixture.folder.write("ichido.toml", FILE);
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "s3cret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=s3cret%"),
        ("OTEL_RESOURCE_ATTRIBUTES", "s3cret"),
    ] {
        for command in ["serve", "worker"] {
            let mut ichido = ichido(fixture.folder.path());
            ichido.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").env(name, value);
            let output = ichido.args([command, "--store", &fixture.url]).output().unwrap();
            let shown = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(2) && shown.contains(&format!("{name}: ")), "{shown}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}
