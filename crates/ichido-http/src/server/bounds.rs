//! The command line flags of every server, and the limits they set.
//!
//! Guarantee: all invalid flags are reported together, each by name.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ichido_core::settings::{ConfigErrors, duration};

use super::limits::Limits;

/// Parses the listen address of a flag.
///
/// A port alone, as `4180` or `:4180`, is one of loopback. Host names are not resolved, because they may resolve differently at the
/// next start.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().map_err(|_| {
        "not an IP address and port; use for example 4180 or 127.0.0.1:4180, or 0.0.0.0:4180 to accept other hosts".to_owned()
    })
}

/// The limits and timeouts of a server.
#[derive(Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Limits"))]
pub struct ConnectionLimits {
    /// Maximum connections and requests; more wait, then get 503 [default: 1024]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT"))]
    pub max_connections: Option<String>,

    /// The same per address; raise behind a load balancer [default: 3/4 of all]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT"))]
    pub max_peer_connections: Option<String>,

    /// Timeout for request heads and idle connections [default: 15s]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub head_timeout: Option<String>,

    /// Timeout for a body that makes no progress [default: 30s]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub body_idle_timeout: Option<String>,

    /// Timeout for a whole request body [default: 5m]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub body_timeout: Option<String>,

    /// Timeout for requests in flight after SIGTERM [default: 30s]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub drain_timeout: Option<String>,
}

impl ConnectionLimits {
    /// Applies the flags to `limits`. An invalid flag is added to `faults` and leaves its limit unchanged.
    pub fn resolve(&self, mut limits: Limits, faults: &mut ConfigErrors) -> Limits {
        for (flag, text, limit) in [
            ("--head-timeout", &self.head_timeout, &mut limits.head),
            ("--body-idle-timeout", &self.body_idle_timeout, &mut limits.body_idle),
            ("--body-timeout", &self.body_timeout, &mut limits.body),
            ("--drain-timeout", &self.drain_timeout, &mut limits.drain),
        ] {
            *limit = text.as_ref().and_then(|text| time(flag, text, faults)).unwrap_or(*limit);
        }
        let mut counts = |flag, text: &Option<String>| {
            let count = text.as_ref().and_then(|text| count(flag, text, faults))?;
            usize::try_from(count).ok()
        };
        let max_connections = counts("--max-connections", &self.max_connections);
        let max_peer_connections = counts("--max-peer-connections", &self.max_peer_connections);
        limits.max_connections = max_connections.unwrap_or(limits.max_connections);
        limits.max_peer_connections = max_peer_connections.or(limits.max_peer_connections);
        limits
    }
}

/// The highest count that a flag accepts.
pub const MAX_COUNT: u32 = 1_000_000;

/// Parses a positive duration. A timeout of zero would let nothing through.
pub fn time(flag: &str, text: &str, faults: &mut ConfigErrors) -> Option<Duration> {
    let parsed = faults.check(flag, duration::parse(text))?;
    if parsed.is_zero() {
        faults.add(flag, "must be longer than zero; use for example 3s");
        return None;
    }
    Some(parsed)
}

/// Parses a count from 1 to [`MAX_COUNT`].
pub fn count(flag: &str, text: &str, faults: &mut ConfigErrors) -> Option<u32> {
    let parsed = text.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count));
    if parsed.is_none() {
        faults.add(flag, format!("\"{text}\" is not a count; use a whole number from 1 to {MAX_COUNT}"));
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        for text in ["21003", ":21003", "localhost:21003", "127.0.0.1:21003"] {
            assert_eq!(address(text), Ok(SocketAddr::from(([127, 0, 0, 1], 21003))), "{text}");
        }
        assert_eq!(address("0.0.0.0:80"), Ok(SocketAddr::from(([0, 0, 0, 0], 80))));
        for text in ["", ":", "70000", "example.com:80", "127.0.0.1"] {
            assert!(address(text).unwrap_err().contains("not an IP address and port"), "{text}");
        }
    }
}
