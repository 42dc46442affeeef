//! How much a server takes in, and how long it waits.
//!
//! Guarantee: every count, size and time of a connection has a limit here.

use std::time::Duration;

/// The most header fields of one request; one more is answered 431.
pub const HEADERS_MAX: usize = 100;
/// The most bytes of a request's line and header fields together; one more is answered 431.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The most requests at once on one HTTP/2 connection.
pub const STREAMS_MAX: u32 = 128;
/// How long a connection that was asked to close may take to do so, once nothing is in flight on it.
pub const CLOSING: Duration = Duration::from_secs(5);

/// How long a connection without a seat may take to send a head, and how long its request waits for a seat. Short, because
/// it may be in the way of somebody who asks for the server's health.
pub const SEAT_WAIT: Duration = Duration::from_secs(5);
/// The most connections without a seat. Enough for the health checks and scrapers of many at once, and few enough that
/// they cost nothing.
pub const SPARES_MAX: usize = 64;
/// The room on an HTTP/2 connection, and on one of its streams, for what nobody has read yet; hyper's own is 1 MiB for each.
pub const WINDOW_BYTES: u32 = 256 * 1024;
/// The most bytes of request bodies in memory at once: what a small machine can spare.
pub const BODIES_BYTES_MAX: usize = 256 << 20;
/// The most of them for one token, or one peer of a proxy: a quarter, so that one caller leaves room for others, and
/// the largest body that any operation may have.
pub const BODIES_BYTES_OF_ONE_MAX: usize = 64 << 20;
/// When a body that found no room may be sent again.
pub const BODIES_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long a request's body may keep us waiting before it must have a rate: a network may pause for some seconds.
pub const BODY_GRACE: Duration = Duration::from_secs(20);
/// The rate, in bytes a second of waiting, that a request's body must have after that. A poor mobile network has ten times as much.
pub const BODY_RATE_MIN: u64 = 512;

/// What an operator may choose.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most connections at once, and the most requests on all of them. More wait for a moment, and are then refused.
    pub connections_max: usize,
    /// The most of one peer, where somebody chose it.
    pub peer_connections_max: Option<usize>,
    /// How long a client may take to send a request's head, and how long a connection may be idle.
    pub head: Duration,
    /// How long a body, either way, may make no progress.
    pub body_idle: Duration,
    /// How long a request's body may take in all.
    pub body: Duration,
    /// How long requests in flight may go on after a signal to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1_024,
            peer_connections_max: None,
            head: Duration::from_secs(15),
            body_idle: Duration::from_secs(30),
            body: Duration::from_mins(5),
            drain: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The most connections, and requests, of one peer: three quarters of all unless somebody chose otherwise. One address may be
    /// a proxy or a network that stands for many, and still leaves a quarter to others.
    pub fn of_peer(&self) -> usize {
        let share = self.connections_max.saturating_mul(3).div_ceil(4);
        self.peer_connections_max.unwrap_or(share).min(self.connections_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_has_three_quarters_unless_it_is_chosen() {
        let of = |connections_max, peer_connections_max| {
            Limits { connections_max, peer_connections_max, ..Limits::default() }.of_peer()
        };
        assert_eq!([of(1024, None), of(4, None), of(2, None), of(1, None)], [768, 3, 2, 1]);
        assert_eq!([of(1024, Some(10)), of(4, Some(1_000))], [10, 4]);
    }
}
