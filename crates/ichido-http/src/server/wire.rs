//! A client's connection as hyper sees it: watched, and never waited for without end.
//!
//! Guarantee: no byte reaches the parser that [`Framing`] refuses, and a client that does not take what is sent to it
//! is cut off: hyper's writes have no time-out of their own.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::Answers;
use super::framing::{Framing, RejectedBytes};
use super::refusal::RefusalWriter;

/// What the parser is given in place of all that is refused. It takes no NUL anywhere in a head or around a chunk, so
/// it answers 400, or fails the body, and closes; and it looks at a head only once there is an empty line.
const REFUSED: &[u8] = b"\0\r\n\r\n";

/// One accepted connection.
pub(crate) struct Wire<A> {
    stream: TcpStream,
    framing: Framing,
    /// What is left to hand on of [`REFUSED`], once something was.
    refused: Option<&'static [u8]>,
    /// What is said of it.
    refusal: Option<RefusalWriter>,
    answers: Arc<A>,
    /// Since when a write makes no progress, as the moment at which that has gone on for too long.
    stalled: Option<Pin<Box<Sleep>>>,
    stall_max: Duration,
}

impl<A: Answers> Wire<A> {
    /// Begins to watch a connection.
    pub(crate) fn new(stream: TcpStream, answers: Arc<A>, stall_max: Duration) -> Self {
        let framing = Framing::default();
        Self { stream, framing, refused: None, refusal: None, answers, stalled: None, stall_max }
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
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.stall_max)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<A: Answers> AsyncRead for Wire<A> {
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
            tracing::info!(%fault, "refused a connection whose requests could be cut apart in two ways");
            buf.set_filled(before + good);
            // There is room for at least one byte: the refused one has just been taken out.
            copy_some(this.refused.insert(REFUSED), buf);
            this.refusal = this.answers.refused(fault).map(RefusalWriter::new);
        }
        Poll::Ready(Ok(()))
    }
}

/// As much as there is room for. When nothing is left, the stream has ended.
fn copy_some(rest: &mut &'static [u8], buf: &mut ReadBuf<'_>) {
    let (now, later) = rest.split_at(rest.len().min(buf.remaining()));
    buf.put_slice(now);
    *rest = later;
}

impl<A: Answers> AsyncWrite for Wire<A> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
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
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
