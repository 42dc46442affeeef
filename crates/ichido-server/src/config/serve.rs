//! The server: `[serve]`. The flags of `ichido serve` win over it.

use std::net::SocketAddr;

use ichido_http::server::limits::Limits;

use super::document::Section;
use crate::limits::RequestLimits;

/// The default address: this machine only.
pub const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4180);

/// Settings of the server.
#[derive(Clone, Copy, Debug)]
pub struct ServeConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Limits and timeouts of connections.
    pub limits: Limits,
    pub(crate) request_limits: RequestLimits,
}

pub(super) fn read(section: &Section<'_>) -> ServeConfig {
    let listen = section.get::<String>("listen").and_then(|text| text.parse().ok());
    let limits = Limits {
        connections_max: section.get_or_default("connections_max"),
        peer_connections_max: section.get("peer_connections_max"),
        head: section.get_or_default("head_timeout"),
        body_idle: section.get_or_default("body_idle_timeout"),
        body: section.get_or_default("body_timeout"),
        drain: section.get_or_default("drain_timeout"),
    };
    let request_limits = RequestLimits {
        headers_max: section.get_or_default("headers_max"),
        head_bytes_max: section.get_or_default("head_bytes_max"),
        body_bytes_max: section.get_or_default("body_bytes_max"),
        batch_lines_max: section.get_or_default("batch_lines_max"),
        batch_bytes_max: section.get_or_default("batch_bytes_max"),
        waiters_max: section.get_or_default("waiters_max"),
        listeners_max: section.get_or_default("listeners_max"),
    };
    ServeConfig { listen: listen.unwrap_or(LISTEN_DEFAULT), limits, request_limits }
}
