//! How much a server takes in, and how long it waits.

use std::time::Duration;

/// The most header fields of one request; one more is answered 431.
pub(crate) const HEADERS_MAX: usize = 100;
/// The most bytes of a request's line and header fields together; one more is answered 431.
pub(crate) const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The most requests at once on one HTTP/2 connection.
pub(crate) const STREAMS_MAX: u32 = 128;
/// How long a connection that was asked to close may take to do so, once nothing is in flight on it.
pub(crate) const CLOSING: Duration = Duration::from_secs(5);

/// What an operator may choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most connections at once, and the most requests on all of them. More wait: connections in the system's queue.
    pub(crate) connections_max: usize,
    /// How long a client may take to send a request's head, and how long a connection may be idle.
    pub(crate) head: Duration,
    /// How long a body, either way, may make no progress.
    pub(crate) body_idle: Duration,
    /// How long a request's body may take in all.
    pub(crate) body: Duration,
    /// How long requests in flight may go on after a signal to stop.
    pub(crate) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1_024,
            head: Duration::from_secs(15),
            body_idle: Duration::from_secs(30),
            body: Duration::from_mins(5),
            drain: Duration::from_secs(30),
        }
    }
}
