//! Limits and timeouts of a server.
//!
//! Guarantee: every count, size and time of a connection has a limit here.

use std::time::Duration;

/// The maximum number of header fields of a request. More get a 431.
pub const MAX_HEADERS: usize = 100;
/// The maximum size of the request line and header fields together. More gets a 431.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;
/// The maximum number of concurrent requests on one HTTP/2 connection.
pub const MAX_STREAMS: u32 = 128;
/// How long a closing connection may take once nothing is in flight on it.
pub const CLOSING: Duration = Duration::from_secs(5);

/// The head timeout of a connection without a seat, and the wait for a seat.
///
/// It is short, because such a connection may block a health check.
pub const SEAT_WAIT: Duration = Duration::from_secs(5);
/// The maximum number of connections without a seat.
///
/// It is enough for many concurrent health checks and scrapers, and small enough to cost nothing.
pub const MAX_SPARES: usize = 64;
/// The flow-control window of an HTTP/2 connection and of each stream. hyper's default is 1 MiB each.
pub const WINDOW_BYTES: u32 = 256 * 1024;
/// The maximum memory for request bodies: what a small machine can spare.
pub const MAX_BODIES_BYTES: usize = 256 << 20;
/// The maximum memory for bodies of one token or one proxy peer.
///
/// It is a quarter of the total, so one caller leaves space for others, and it is the largest body that any operation
/// accepts.
pub const MAX_BODIES_BYTES_OF_ONE: usize = 64 << 20;
/// When to retry a body for which there was no memory.
pub const BODIES_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long the server waits for a body before the minimum rate applies. Networks may pause for seconds.
pub const BODY_GRACE: Duration = Duration::from_secs(20);
/// The minimum rate after the grace period, in bytes per second of waiting.
///
/// A poor mobile network is ten times as fast.
pub const MIN_BODY_RATE: u64 = 512;

/// The limits that an operator can set.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of connections, and of requests on all of them. More wait briefly and are then refused.
    pub max_connections: usize,
    /// The maximum number of connections of one peer, if it is set.
    pub max_peer_connections: Option<usize>,
    /// The timeout of a request head and of an idle connection.
    pub head: Duration,
    /// How long a request or response body may make no progress.
    pub body_idle: Duration,
    /// How long a request body may take in total.
    pub body: Duration,
    /// How long requests in flight may continue after a signal to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 1_024,
            max_peer_connections: None,
            head: Duration::from_secs(15),
            body_idle: Duration::from_secs(30),
            body: Duration::from_mins(5),
            drain: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Returns the maximum number of connections, and of requests, of one peer.
    ///
    /// The default is three quarters of all. One address may be a proxy or a network with many clients, and a quarter
    /// is still left for others.
    pub fn of_peer(&self) -> usize {
        let share = self.max_connections.saturating_mul(3).div_ceil(4);
        self.max_peer_connections.unwrap_or(share).min(self.max_connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_has_three_quarters_by_default() {
        let of = |max_connections, max_peer_connections| {
            Limits { max_connections, max_peer_connections, ..Limits::default() }.of_peer()
        };
        assert_eq!([of(1024, None), of(4, None), of(2, None), of(1, None)], [768, 3, 2, 1]);
        assert_eq!([of(1024, Some(10)), of(4, Some(1_000))], [10, 4]);
    }
}
