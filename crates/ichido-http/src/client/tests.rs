//! A race that no real server can force: an idle connection closes before the write.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http_body_util::Full;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpListener;

use super::connect::handshake;
use super::*;

/// A stream that closes on request without waking anyone, and counts written bytes.
#[derive(Clone, Default)]
struct ClosableStream {
    has_ended: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
}

impl AsyncRead for ClosableStream {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.has_ended.load(Ordering::Acquire) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncWrite for ClosableStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.fetch_add(bytes.len(), Ordering::AcqRel);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

const LIMITS: CallLimits = CallLimits {
    connect: Duration::from_mins(1),
    response: Duration::from_mins(1),
    total: Duration::from_mins(1),
    max_response_bytes: 1024,
};

/// Returns a server, a client with one idle connection, and that connection.
async fn client() -> (TcpListener, HttpClient<Full<Bytes>>, ClosableStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let client = HttpClient::new(&url, None, |_| true).unwrap();
    let stream = ClosableStream::default();
    let mut connection = handshake(stream.clone()).await.unwrap();
    connection.ready().await.unwrap();
    client.pool.put(connection);
    (listener, client, stream)
}

fn request() -> Request<Full<Bytes>> {
    Request::post("/").header("Host", "x").body(Full::from("order")).unwrap()
}

/// Answers one request and returns everything received.
async fn answer_one(listener: TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.expect("a caller");
    let mut received = Vec::new();
    while !received.ends_with(b"order") {
        assert_ne!(stream.read_buf(&mut received).await.expect("it can be read"), 0, "it ended early");
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.expect("it reads");
    drop(stream.shutdown().await);
    // Everything else that arrived on this connection.
    stream.read_to_end(&mut received).await.expect("it ends");
    String::from_utf8(received).expect("ASCII")
}

#[tokio::test]
async fn unwritten_request_is_sent_once_on_a_new_connection() {
    let (listener, client, stream) = client().await;
    stream.has_ended.store(true, Ordering::Release);
    let answering = tokio::spawn(answer_one(listener));
    let response = client.exchange(request(), &LIMITS).await.unwrap();
    assert_eq!(response.status, 200);
    drop(client);
    assert_eq!(answering.await.unwrap().matches("POST / ").count(), 1);
    assert_eq!(stream.written.load(Ordering::Acquire), 0, "not a byte went to the one that had ended");
}

#[tokio::test]
async fn partly_written_request_is_not_sent_again() {
    let (listener, client, stream) = client().await;
    let limits = CallLimits { response: Duration::from_millis(100), ..LIMITS };
    let error = client.exchange(request(), &limits).await.unwrap_err();
    assert_eq!(error.kind, NetworkFault::Timeout);
    assert!(0 < stream.written.load(Ordering::Acquire));
    let nobody = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(nobody.is_err(), "it was not sent again");
}
