//! Races over HTTP/2, where an API offers it.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_for_tests::Authority;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::folder;

/// Serves an API over TLS in HTTP/1.1 and, if it is negotiated, in HTTP/2; returns its port and how many requests came over the latter.
async fn serve(authority: &Authority, offered: &[&[u8]]) -> (u16, Arc<AtomicUsize>) {
    let acceptor = authority.acceptor_for("localhost", offered);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let over_http2 = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&over_http2);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request: Request<Incoming>| {
                    counted.fetch_add(usize::from(request.version() == Version::HTTP_2), Ordering::SeqCst);
                    let body = http_body_util::Full::new(Bytes::from_static(b"{\"id\":\"order-1\"}"));
                    async { Ok::<_, std::convert::Infallible>(Response::new(body)) }
                });
                // The probe cuts connections.
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let server = http2::Builder::new(TokioExecutor::new());
                    drop(server.serve_connection(TokioIo::new(stream), service).await);
                } else {
                    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
                }
            });
        }
    });
    (port, over_http2)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_is_negotiated_over_tls() {
    let (authority, folder) = (Authority::new("ours"), folder::fresh());
    let roots = folder.write("roots.pem", &authority.pem());
    let offers: [(&[&[u8]], &str); 3] =
        [(&[b"h2", b"http/1.1"], "HTTP/2"), (&[b"http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")];
    for (offered, expected) in offers {
        let (port, over_http2) = serve(&authority, offered).await;
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_ichido"));
        let url = format!("https://localhost:{port}/orders");
        command.args(["probe", &url, "--body", "{}", "--json"]).env("SSL_CERT_FILE", &roots);
        let output = command.stdin(Stdio::null()).output().await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(report["runs"][0]["races_over"], expected, "{offered:?}");
        assert_eq!(0 < over_http2.load(Ordering::SeqCst), expected == "HTTP/2", "{offered:?}");
    }
}
