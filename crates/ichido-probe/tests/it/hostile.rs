//! A target that does not end its responses costs a bounded amount.

use std::net::SocketAddr;
use std::time::Duration;

use ichido_http::clock;
use ichido_http::url::HttpUrl;
use ichido_probe::{Bounds, Verdict, run};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::service::Service;
use super::switches::target;

/// Serves this beginning of a response, and then this without an end.
async fn endless(start: &'static str, part: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let part = part.clone();
            tokio::spawn(async move {
                let _read = stream.read(&mut [0; 1024]).await;
                let mut written = stream.write_all(start.as_bytes()).await;
                while written.is_ok() {
                    written = stream.write_all(part.as_bytes()).await;
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_without_an_end_is_cut_at_a_limit() {
    let cases = [
        ("", "HTTP/1.1 100 Continue\r\n\r\n".to_owned(), "more than 16 interim responses"),
        ("HTTP/1.1 200 OK\r\n", "a: b\r\n".to_owned(), "the response head has more than 65536 bytes"),
        ("HTTP/1.1 200 OK\r\n\r\n", "x".repeat(1024), "the response body has more than 4194304 bytes"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            format!("400\r\n{}\r\n", "x".repeat(1024)),
            "the response body has more than 4194304 bytes",
        ),
    ];
    let service = Service::start("").await;
    for (start, part, why) in cases {
        let url = HttpUrl::parse(&format!("http://{}/", endless(start, part).await)).unwrap();
        let hostile = ichido_probe::Target { url, counter: None, ..target(&service) };
        let bounds = Bounds {
            max_requests: 4,
            max_duration: Duration::from_mins(2),
            timeout: Duration::from_mins(1),
            may_leave: false,
        };
        let report = run(&hostile, bounds, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap();
        let first = &report.findings[0].verdict;
        assert!(matches!(first, Verdict::Unverified(text) if text.contains(why)), "{first:?}");
        assert_eq!((report.totals().passed, report.totals().errors), (0, 0));
        assert!(report.requests <= 4, "{}", report.requests);
    }
}
