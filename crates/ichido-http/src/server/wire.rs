//! A client's connection as hyper sees it, with framing checks and a write timeout.
//!
//! Guarantee: no byte that [`Framing`] rejects reaches the parser. The parser's own refusals get the server's body. A client that does not read what is sent to it is
//! disconnected, because hyper's writes have no timeout of their own.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

use super::connection::RequestCount;
use super::framing::{Framing, RejectedBytes};
use super::refusal::{RefusalWriter, parser_fault};
use super::tls::ServerStream;
use super::{MalformedRequest, RequestHandler};

/// The bytes that the parser gets instead of rejected ones.
///
/// The parser accepts no NUL in a head or around a chunk, so it responds with 400 or fails the body, and closes. It
/// looks at a head only after an empty line.
const REFUSED: &[u8] = b"\0\r\n\r\n";

/// One accepted connection.
pub(crate) struct Wire<A> {
    stream: ServerStream,
    framing: Framing,
    /// The part of [`REFUSED`] that the parser has not read yet, once bytes were rejected.
    refused: Option<&'static [u8]>,
    /// The response to the rejected bytes.
    refusal: Option<RefusalWriter>,
    answers: Arc<A>,
    requests: watch::Receiver<RequestCount>,
    /// How many requests had started when the last byte of their responses was written.
    ///
    /// What is written before the next one starts is the parser's own.
    quiet_after: u64,
    /// Expires when a write has made no progress for too long.
    stalled: Option<Pin<Box<Sleep>>>,
    max_stall: Duration,
}

impl<A: RequestHandler> Wire<A> {
    /// Wraps an accepted connection.
    pub(super) fn new(
        stream: ServerStream,
        answers: Arc<A>,
        max_stall: Duration,
        requests: watch::Receiver<RequestCount>,
    ) -> Self {
        let framing = Framing::default();
        let (refused, refusal, quiet_after, stalled) = (None, None, 0, None);
        Self { stream, framing, refused, refusal, answers, requests, quiet_after, stalled, max_stall }
    }

    /// Replaces a response that the parser is about to write, if no handler can have written it.
    fn check_parser_response(&mut self, bytes: &[u8]) {
        if self.refusal.is_none()
            && let Some(fault) = parser_fault(bytes)
            && self.requests.borrow().started == self.quiet_after
        {
            self.refusal = self.answers.malformed(fault).map(RefusalWriter::new);
        }
    }

    fn check_stall(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.max_stall)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<A: RequestHandler> AsyncRead for Wire<A> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(rest) = &mut this.refused {
            copy_some(rest, buf);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        if let Err(RejectedBytes { good, fault }) = this.framing.take(&buf.filled()[before..]) {
            tracing::info!(%fault, "rejected connection: ambiguous HTTP framing");
            buf.set_filled(before + good);
            // There is space for at least one byte: the rejected one was just removed.
            copy_some(this.refused.insert(REFUSED), buf);
            this.refusal = this.answers.malformed(MalformedRequest::Framing(fault)).map(RefusalWriter::new);
        }
        Poll::Ready(Ok(()))
    }
}

/// Copies as many bytes as fit. An empty rest means the end of the stream.
fn copy_some(rest: &mut &'static [u8], buf: &mut ReadBuf<'_>) {
    let (now, later) = rest.split_at(rest.len().min(buf.remaining()));
    buf.put_slice(now);
    *rest = later;
}

impl<A: RequestHandler> AsyncWrite for Wire<A> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        this.check_parser_response(buf);
        let written = match &mut this.refusal {
            None => Pin::new(&mut this.stream).poll_write(cx, buf),
            Some(refusal) => refusal.poll_write(&mut this.stream, cx, buf),
        };
        this.check_stall(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = bufs.first() {
            self.check_parser_response(first);
        }
        if self.refusal.is_some() {
            let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
            return self.poll_write(cx, first);
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check_stall(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when it has written all it has.
        let requests = *self.requests.borrow();
        if requests.in_flight == 0 {
            self.quiet_after = requests.started;
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
