//! The flags of every server that listens, and what they come to.
//!
//! Guarantee: everything that is wrong is reported at once, each under its flag.

use std::net::SocketAddr;
use std::time::Duration;

use ichido_core::settings::{Faults, duration};

use super::limits::Limits;

/// Where to listen, as a flag says it. Names are not looked up: what they lead to may change between two starts.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let numbers = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numbers.as_deref().unwrap_or(text).parse().map_err(|_| {
        "this is no address and port; write them as numbers, such as 127.0.0.1:4180, or 0.0.0.0:4180 to let others in".to_owned()
    })
}

/// How much it takes in, and how long it waits.
#[derive(Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Limits"))]
pub struct Bounds {
    /// Connections at once, and requests on all of them; more wait, then get 503 [default: 1024]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT"))]
    pub connections_max: Option<String>,

    /// The same for one address; raise it behind a load balancer [default: three quarters of all]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT"))]
    pub peer_connections_max: Option<String>,

    /// How long a request's head may take, and a connection be idle [default: 15s]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub head_timeout: Option<String>,

    /// How long a body may make no progress [default: 30s]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub body_idle_timeout: Option<String>,

    /// How long a request's body may take in all [default: 5m]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub body_timeout: Option<String>,

    /// How long requests in flight may go on after SIGTERM [default: 30s]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub drain_timeout: Option<String>,
}

impl Bounds {
    /// Understands them, or says everything that is wrong; what no flag says is as it was.
    pub fn resolve(&self, before: Limits, faults: &mut Faults) -> Option<Limits> {
        let mut times = |flag, text: Option<&String>, before| match text {
            Some(text) => time(flag, text, faults),
            None => Some(before),
        };
        let head = times("--head-timeout", self.head_timeout.as_ref(), before.head);
        let body_idle = times("--body-idle-timeout", self.body_idle_timeout.as_ref(), before.body_idle);
        let body = times("--body-timeout", self.body_timeout.as_ref(), before.body);
        let drain = times("--drain-timeout", self.drain_timeout.as_ref(), before.drain);
        let mut counts = |flag, text: Option<&String>| {
            let count = text.map(|text| count(flag, text, faults))?;
            Some(count.and_then(|count| usize::try_from(count).ok()))
        };
        let connections_max = counts("--connections-max", self.connections_max.as_ref());
        let of_peer = counts("--peer-connections-max", self.peer_connections_max.as_ref());
        Some(Limits {
            connections_max: connections_max.unwrap_or(Some(before.connections_max))?,
            peer_connections_max: match of_peer {
                Some(chosen) => Some(chosen?),
                None => before.peer_connections_max,
            },
            head: head?,
            body_idle: body_idle?,
            body: body?,
            drain: drain?,
        })
    }
}

/// The highest count that may be chosen.
pub const COUNT_MAX: u32 = 1_000_000;

/// A length of time above zero: no time at all would let nothing through.
pub fn time(flag: &str, text: &str, faults: &mut Faults) -> Option<Duration> {
    let parsed = faults.check(flag, duration::parse(text))?;
    if parsed.is_zero() {
        faults.add(flag, "no time at all would let nothing through; give it some, such as 3s");
        return None;
    }
    Some(parsed)
}

/// A count from 1 to [`COUNT_MAX`].
pub fn count(flag: &str, text: &str, faults: &mut Faults) -> Option<u32> {
    let parsed = text.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
    if parsed.is_none() {
        faults.add(flag, format!("\"{text}\" is no count; write a whole number from 1 to {COUNT_MAX}"));
    }
    parsed
}
