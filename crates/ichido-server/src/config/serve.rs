//! The server: `[serve]`, where it listens, how much it takes in and how long it waits. The flags of `ichido serve` win over it.

use std::net::SocketAddr;
use std::time::Duration;

use ichido_core::settings::Faults;
use ichido_http::server::bounds::COUNT_MAX;
use ichido_http::server::limits::{HEAD_BYTES_MAX, HEADERS_MAX, Limits};

use super::document::Section;
use crate::limits::{
    BATCH_BYTES_MOST, BATCH_LINES_MOST, BODY_BYTES_MOST, Chosen, HEAD_BYTES_LEAST, HEADERS_LEAST,
    LISTENERS_MOST,
};

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
    pub(crate) chosen: Chosen,
}

pub(super) fn read(section: Option<Section<'_>>, faults: &mut Faults) -> ServeConfig {
    let mut limits = Limits::default();
    let mut chosen = Chosen::default();
    let mut listen = LISTEN_DEFAULT;
    let Some(mut section) = section else { return ServeConfig { listen, limits, chosen } };
    if let Some(text) = section.text("listen", faults) {
        let parsed = text.parse::<SocketAddr>().map_err(|_| {
            "is no address and port; write them as numbers, such as \"127.0.0.1:4180\", \"0.0.0.0:4180\" or \"[::1]:4180\""
        });
        listen = faults.check(&section.place("listen"), parsed).unwrap_or(listen);
    }
    if let Some(most) = section.count("connections_max", 1..=COUNT_MAX, faults) {
        limits.connections_max = usize::try_from(most).unwrap_or(usize::MAX);
    }
    let of_peer = section.count("peer_connections_max", 1..=COUNT_MAX, faults);
    limits.peer_connections_max = of_peer.and_then(|most| usize::try_from(most).ok());
    let mut time = |name: &'static str, into: &mut Duration| match section.time(name, faults) {
        Some(time) if time.is_zero() => {
            faults.add(
                section.place(name),
                "no time at all would let nothing through; give it some, such as \"3s\"",
            );
        }
        Some(time) => *into = time,
        None => {}
    };
    time("head_timeout", &mut limits.head);
    time("body_idle_timeout", &mut limits.body_idle);
    time("body_timeout", &mut limits.body);
    time("drain_timeout", &mut limits.drain);
    taken_in(&mut section, &mut chosen, faults);
    section.finish(faults);
    ServeConfig { listen, limits, chosen }
}

fn taken_in(section: &mut Section<'_>, chosen: &mut Chosen, faults: &mut Faults) {
    let mut size = |name, least: usize, most: usize, into: &mut usize| {
        *into = section.size(name, least..=most, faults).unwrap_or(*into);
    };
    // The parser has bounds of its own, which answer without a body and are not turned.
    size("head_bytes_max", HEAD_BYTES_LEAST, HEAD_BYTES_MAX, &mut chosen.head_bytes_max);
    size("body_bytes_max", 1, BODY_BYTES_MOST, &mut chosen.body_bytes_max);
    size("batch_bytes_max", 1, BATCH_BYTES_MOST, &mut chosen.batch_bytes_max);
    let mut count = |name, least: u32, most: u32, into: &mut usize| {
        let count = section.count(name, least..=most, faults);
        *into = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(*into);
    };
    let headers_most = u32::try_from(HEADERS_MAX).unwrap_or(u32::MAX);
    count("headers_max", HEADERS_LEAST, headers_most, &mut chosen.headers_max);
    count("batch_lines_max", 1, BATCH_LINES_MOST, &mut chosen.batch_lines_max);
    count("waiters_max", 0, COUNT_MAX, &mut chosen.waiters_max);
    count("listeners_max", 0, LISTENERS_MOST, &mut chosen.listeners_max);
}
