//! One request, and its answer or what is known without one.
//!
//! Guarantee: a request is written once. It goes to another connection only where the one it was given hands it back whole,
//! unwritten. Whatever fails before it was handed over never arrived; whatever fails after may have. Each stage has its time, and the
//! answer its size.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use ichido_core::verdict::NetworkFault;
use tokio::time::{Instant, timeout_at};

use super::peer::{Fault, Line, Peer};

/// How often a request is put on another connection because a kept one had closed unused. Beyond that it gets a new one.
const UNUSED_MAX: u32 = 3;

/// How long each stage may take, and how much is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// To connect: name, TCP and TLS.
    pub(crate) connect: Duration,
    /// From when the request is handed to a connection until the answer's head is there.
    pub(crate) answer: Duration,
    /// All of it, to the answer's last byte.
    pub(crate) total: Duration,
    /// The largest answer that is read to its end.
    pub(crate) answer_bytes_max: usize,
}

/// An answer, with its body up to the bound.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether that is all of the body. If not, the rest was not read.
    pub(crate) is_whole: bool,
}

impl Peer {
    /// Sends a request and reads its answer.
    pub(crate) async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        bounds: &Bounds,
    ) -> Result<Answered, Fault> {
        let deadline = Instant::now() + bounds.total;
        let mut request = request;
        let mut unused = 0;
        loop {
            let kept = if unused < UNUSED_MAX { self.take_kept(bounds, deadline).await } else { None };
            let is_kept = kept.is_some();
            let mut line = match kept {
                Some(line) => line,
                None => self.connect(deadline.min(Instant::now() + bounds.connect)).await?,
            };
            let answer_by = deadline.min(Instant::now() + bounds.answer);
            let sent = timeout_at(answer_by, line.try_send_request(request)).await;
            let mut error = match sent {
                Err(_) => return Err(Fault::new(NetworkFault::Timeout, "no answer came in time")),
                Ok(Ok(response)) => {
                    return self.read(line, response, deadline, bounds.answer_bytes_max).await;
                }
                Ok(Err(error)) => error,
            };
            // Handed back means that not a byte of it was written.
            match error.take_message() {
                Some(back) if is_kept => request = back,
                Some(_) => {
                    return Err(Fault::new(
                        NetworkFault::ClosedUnused,
                        "a new connection was closed before the request was written",
                    ));
                }
                None => return Err(broken(error.error())),
            }
            unused += 1;
        }
    }

    async fn take_kept(&self, bounds: &Bounds, deadline: Instant) -> Option<Line> {
        let by = deadline.min(Instant::now() + bounds.connect);
        timeout_at(by, self.pool.take()).await.ok().flatten()
    }

    async fn read(
        &self,
        line: Line,
        response: http::Response<Incoming>,
        deadline: Instant,
        bytes_max: usize,
    ) -> Result<Answered, Fault> {
        let (head, mut incoming) = response.into_parts();
        let cut = |why: String| Fault::new(NetworkFault::AnswerCut, why);
        let mut body = BytesMut::new();
        let answered = |body: BytesMut, is_whole| Answered {
            status: head.status.as_u16(),
            headers: head.headers.clone(),
            body: body.freeze(),
            is_whole,
        };
        loop {
            let frame = timeout_at(deadline, incoming.frame()).await;
            let frame = frame.map_err(|_| cut("the answer began and did not end in time".to_owned()))?;
            let Some(frame) = frame else {
                break;
            };
            let frame = frame.map_err(|error| cut(format!("the answer began and did not end: {error}")))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let room = bytes_max - body.len();
            body.extend_from_slice(&data[..data.len().min(room)]);
            if room < data.len() {
                // The connection goes with its rest unread.
                return Ok(answered(body, false));
            }
        }
        self.pool.put(line);
        Ok(answered(body, true))
    }
}

/// The request, or a part of it, was written.
fn broken(error: &hyper::Error) -> Fault {
    let kind = if error.is_parse() { NetworkFault::AnswerCut } else { NetworkFault::Broken };
    Fault::new(kind, format!("the connection broke after the request was written: {error}"))
}

#[cfg(test)]
mod tests;
