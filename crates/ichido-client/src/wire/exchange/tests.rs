//! The one moment that a server cannot bring about at will: a kept connection ends between being taken and being written to.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpListener;

use super::*;
use crate::wire::peer::speak;

/// A connection that ends when it is told to, without anybody being woken for it, and counts what is written.
#[derive(Clone, Default)]
struct Ending {
    has_ended: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
}

impl AsyncRead for Ending {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.has_ended.load(Ordering::Acquire) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl AsyncWrite for Ending {
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

const BOUNDS: Bounds =
    Bounds { connect: Duration::from_mins(1), total: Duration::from_mins(1), answer_bytes_max: 1024 };

/// A server that keeps a connection to us, and that connection.
async fn peer() -> (TcpListener, Peer, Ending) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (peer, _) = Peer::resolve(&url, None).unwrap();
    let ending = Ending::default();
    let mut line = speak(ending.clone()).await.unwrap();
    line.ready().await.unwrap();
    peer.pool.put(line);
    (listener, peer, ending)
}

fn request() -> Request<Full<Bytes>> {
    Request::post("/").header("Host", "x").body(Full::from("order")).unwrap()
}

/// Answers one request, and gives back all that came on its connection.
async fn answer_one(listener: TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut came = Vec::new();
    while !came.ends_with(b"order") {
        assert_ne!(stream.read_buf(&mut came).await.unwrap(), 0, "it ended early");
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    drop(stream.shutdown().await);
    stream.read_to_end(&mut came).await.unwrap();
    String::from_utf8(came).unwrap()
}

#[tokio::test]
async fn a_request_that_is_handed_back_unwritten_goes_out_once_on_a_new_connection() {
    let (listener, peer, ending) = peer().await;
    ending.has_ended.store(true, Ordering::Release);
    let answering = tokio::spawn(answer_one(listener));
    let answer = peer.exchange(request(), &BOUNDS).await.unwrap();
    assert_eq!(answer.status, 200);
    drop(peer);
    assert_eq!(answering.await.unwrap().matches("POST / ").count(), 1);
    assert_eq!(ending.written.load(Ordering::Acquire), 0, "not a byte went to the one that had ended");
}

#[tokio::test]
async fn a_request_of_which_a_byte_was_written_goes_nowhere_else() {
    let (listener, peer, ending) = peer().await;
    let bounds = Bounds { total: Duration::from_millis(100), ..BOUNDS };
    let fault = peer.exchange(request(), &bounds).await.unwrap_err();
    assert_eq!(fault.kind, NetworkFault::Timeout);
    assert!(0 < ending.written.load(Ordering::Acquire));
    let nobody = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(nobody.is_err(), "it was not sent again");
}
