//! Races over HTTP/2: the last frame of every request in one write, so the network cannot spread them.
//!
//! Each request is a stream of its own. Its header and all but the last byte of its body are sent first; then the last frames are
//! queued together, and the connection is polled only after that. They are ten bytes each, so a hundred fit into one packet.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Ping, SendStream};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::exchange::{ProbeRequest, ProbeResponse, Received};
use crate::wire::{MAX_BODY_BYTES, MAX_HEADERS};

/// How long a target has to show that it speaks HTTP/2.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);
/// How long the first parts of all requests have to arrive.
const READ_BY_THEN: Duration = Duration::from_millis(50);
/// What a server takes on a connection before it has read any of it.
const INITIAL_WINDOW_BYTES: usize = 65_535;
/// What the target may send before the probe has read it.
const RECEIVE_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// The largest response head that is read.
const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// A connection that has exchanged settings.
pub(crate) struct H2Connection<S> {
    send: SendRequest<Bytes>,
    connection: Connection<S, Bytes>,
    /// How many streams the target accepts at once.
    max_streams: usize,
}

/// Requests of which only the last frames are missing.
pub(crate) struct H2Race<S> {
    connection: Connection<S, Bytes>,
    /// Keeps the connection open.
    send: SendRequest<Bytes>,
    streams: Vec<(ResponseFuture, SendStream<Bytes>, Bytes)>,
}

impl<S> H2Connection<S> {
    /// Returns how many requests like these one connection can hold back at once.
    pub(crate) fn capacity(&self, requests: &[ProbeRequest]) -> usize {
        let largest = requests.iter().map(|request| request.body.len()).max().unwrap_or(0);
        (INITIAL_WINDOW_BYTES / largest.max(1)).min(self.max_streams).max(1)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> H2Connection<S> {
    /// Exchanges settings; fails if the target does not speak HTTP/2.
    pub(crate) async fn start(stream: S) -> Result<Self, String> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .max_header_list_size(MAX_HEADER_LIST_BYTES)
            .initial_window_size(RECEIVE_WINDOW_BYTES)
            .initial_connection_window_size(RECEIVE_WINDOW_BYTES);
        let started = async {
            let (send, mut connection) =
                builder.handshake(stream).await.map_err(|error| error.to_string())?;
            let mut ping = connection.ping_pong().ok_or("the connection cannot be tested")?;
            // A target sends its settings first, so they are known with the answer.
            drive(&mut connection, ping.ping(Ping::opaque())).await?.map_err(|error| error.to_string())?;
            let max_streams = connection.max_concurrent_send_streams();
            Ok(Self { send, connection, max_streams })
        };
        timeout_at(deadline, started).await.map_err(|_| "it did not reply in HTTP/2 in time".to_owned())?
    }

    /// Sends all of the requests but their last frames.
    pub(crate) async fn ready(
        mut self,
        requests: &[ProbeRequest],
        origin: &str,
    ) -> Result<H2Race<S>, String> {
        let mut streams = Vec::new();
        for request in requests {
            let head = head(request, origin)?;
            let send = &mut self.send;
            drive(&mut self.connection, poll_fn(|context| send.poll_ready(context)))
                .await?
                .map_err(|error| error.to_string())?;
            let (response, mut body) =
                self.send.send_request(head, false).map_err(|error| error.to_string())?;
            let mut first = Bytes::copy_from_slice(&request.body);
            let last = first.split_off(first.len().saturating_sub(1));
            if !first.is_empty() {
                body.send_data(first, false).map_err(|error| error.to_string())?;
            }
            streams.push((response, body, last));
        }
        drive(&mut self.connection, sleep(READ_BY_THEN)).await?;
        Ok(H2Race { connection: self.connection, send: self.send, streams })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> H2Race<S> {
    /// Sends the last frames in one write, and reads the responses.
    pub(crate) fn release(self, deadline: Instant) -> Vec<JoinHandle<Received>> {
        let queued = self.streams.into_iter().map(|(response, mut body, last)| {
            let queued = body.send_data(last, true).map_err(|error| error.to_string());
            (queued, response)
        });
        // All are queued before the connection is polled again.
        let queued: Vec<_> = queued.collect();
        let (connection, send) = (self.connection, self.send);
        tokio::spawn(async move {
            // Each stream learns of an error by itself.
            drop(timeout_at(deadline, connection).await);
            drop(send);
        });
        let reading = queued.into_iter().map(|(queued, response)| {
            tokio::spawn(async move {
                let read = async {
                    queued?;
                    read(response).await
                };
                let read = timeout_at(deadline, read).await;
                match read.unwrap_or_else(|_| Err("no complete response in time".to_owned())) {
                    Ok(response) => Received::Response(response),
                    Err(why) => Received::Nothing(why),
                }
            })
        });
        reading.collect()
    }
}

/// Runs a task that needs the connection to make progress.
async fn drive<S, T>(
    connection: &mut Connection<S, Bytes>,
    task: impl Future<Output = T>,
) -> Result<T, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut task = pin!(task);
    poll_fn(|context| {
        if let Poll::Ready(done) = task.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        match Pin::new(&mut *connection).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(Err("the target closed the connection".to_owned())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.to_string())),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Returns the head of a request as HTTP/2 writes it.
fn head(request: &ProbeRequest, origin: &str) -> Result<Request<()>, String> {
    let uri: Uri =
        format!("{origin}{}", request.target).parse().map_err(|error| format!("the URL: {error}"))?;
    let method =
        Method::from_bytes(request.method.as_bytes()).map_err(|error| format!("the method: {error}"))?;
    let mut head = Request::new(());
    (*head.method_mut(), *head.uri_mut()) = (method, uri);
    for (name, value) in &request.headers {
        let named = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_bytes(value).ok());
        let (name, value) = named.ok_or_else(|| format!("the header {name} is not valid in HTTP/2"))?;
        head.headers_mut().append(name, value);
    }
    head.headers_mut().insert("content-length", HeaderValue::from(request.body.len()));
    Ok(head)
}

async fn read(response: ResponseFuture) -> Result<ProbeResponse, String> {
    let (head, mut incoming) = response.await.map_err(|error| error.to_string())?.into_parts();
    let mut body = BytesMut::new();
    while let Some(part) = incoming.data().await {
        let part = part.map_err(|error| error.to_string())?;
        body.extend_from_slice(&part);
        if MAX_BODY_BYTES < body.len() {
            return Err(format!("the response body has more than {MAX_BODY_BYTES} bytes"));
        }
        incoming.flow_control().release_capacity(part.len()).map_err(|error| error.to_string())?;
    }
    let line = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.as_bytes().to_vec());
    let headers: Vec<_> = head.headers.iter().map(line).take(MAX_HEADERS + 1).collect();
    if MAX_HEADERS < headers.len() {
        return Err(format!("the response has more than {MAX_HEADERS} header lines"));
    }
    Ok(ProbeResponse { status: head.status.as_u16(), headers, body: body.to_vec() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::task::Context;

    use tokio::io::{DuplexStream, ReadBuf};

    use super::*;
    use crate::exchange::{Cut, Patience};

    /// Counts the writes once it is told to.
    struct Counting(DuplexStream, Arc<AtomicBool>, Arc<AtomicUsize>);

    impl AsyncRead for Counting {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Counting {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<std::io::Result<usize>> {
            // The frames of 100 bodies are the only write of this size.
            if self.1.load(Ordering::SeqCst) && bytes.len() == 100 * 10 {
                self.2.fetch_add(1, Ordering::SeqCst);
            }
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    #[tokio::test]
    async fn last_frames_of_a_hundred_requests_are_one_write() {
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let (is_counted, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let before = Arc::clone(&is_counted);
        tokio::spawn(async move {
            let mut server = h2::server::handshake(theirs).await.unwrap();
            while let Some(request) = server.accept().await {
                let (request, mut respond) = request.unwrap();
                let before = Arc::clone(&before);
                tokio::spawn(async move {
                    let mut body = request.into_body();
                    let mut bytes = BytesMut::new();
                    while let Some(part) = body.data().await {
                        let part = part.unwrap();
                        body.flow_control().release_capacity(part.len()).unwrap();
                        bytes.extend_from_slice(&part);
                    }
                    // No request is complete before the release.
                    assert!(before.load(Ordering::SeqCst));
                    let mut send = respond.send_response(http::Response::new(()), false).unwrap();
                    send.send_data(bytes.freeze(), true).unwrap();
                });
            }
        });
        let stream = Counting(ours, Arc::clone(&is_counted), Arc::clone(&writes));
        let request = ProbeRequest {
            purpose: "a simultaneous request",
            method: "POST".to_owned(),
            target: "/orders".to_owned(),
            headers: vec![("Idempotency-Key".to_owned(), b"k".to_vec())],
            body: b"a body".to_vec(),
            cut: Cut::Never,
            patience: Patience::Once,
        };
        let connection = H2Connection::start(stream).await.unwrap();
        let race = connection.ready(&vec![request; 100], "http://localhost").await.unwrap();
        is_counted.store(true, Ordering::SeqCst);
        let reading = race.release(Instant::now() + Duration::from_secs(30));
        assert_eq!(reading.len(), 100);
        for one in reading {
            let Received::Response(response) = one.await.unwrap() else { panic!("no response") };
            assert_eq!((response.status, &*response.body), (200, &b"a body"[..]));
        }
        assert_eq!(writes.load(Ordering::SeqCst), 1);
    }
}
