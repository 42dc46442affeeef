//! The server: `[serve]`, where it listens, how much it takes in and how long it waits. The flags of `ichido serve` win over it.

use std::net::SocketAddr;

use ichido_http::server::limits::Limits;

use super::document::Section;
use crate::limits::RequestLimits;

/// Where it listens when nobody says: on this machine alone.
pub const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4180);

/// How a server listens.
#[derive(Clone, Copy, Debug)]
pub struct ServeConfig {
    /// Where.
    pub listen: SocketAddr,
    /// How much it takes in, and how long it waits.
    pub limits: Limits,
    pub(crate) chosen: RequestLimits,
}

pub(super) fn read(section: &Section<'_>) -> ServeConfig {
    let listen = section.get::<String>("listen").and_then(|text| text.parse().ok());
    let limits = Limits {
        connections_max: section.of("connections_max"),
        peer_connections_max: section.get("peer_connections_max"),
        head: section.of("head_timeout"),
        body_idle: section.of("body_idle_timeout"),
        body: section.of("body_timeout"),
        drain: section.of("drain_timeout"),
    };
    let chosen = RequestLimits {
        headers_max: section.of("headers_max"),
        head_bytes_max: section.of("head_bytes_max"),
        body_bytes_max: section.of("body_bytes_max"),
        batch_lines_max: section.of("batch_lines_max"),
        batch_bytes_max: section.of("batch_bytes_max"),
        waiters_max: section.of("waiters_max"),
        listeners_max: section.of("listeners_max"),
    };
    ServeConfig { listen: listen.unwrap_or(LISTEN_DEFAULT), limits, chosen }
}
