//! The server: `[serve]`, where it listens, how much it takes in and how long it waits. The flags of `ichido serve` win over it.

use std::net::SocketAddr;
use std::time::Duration;

use super::document::Section;
use crate::faults::Faults;
use crate::listen::bounds::COUNT_MAX;
use crate::listen::limits::Limits;

/// Where it listens when nobody says: on this machine alone.
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4180);

/// How a server listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServeConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) limits: Limits,
}

pub(super) fn read(section: Option<Section<'_>>, faults: &mut Faults) -> ServeConfig {
    let mut limits = Limits::default();
    let mut listen = LISTEN_DEFAULT;
    let Some(mut section) = section else { return ServeConfig { listen, limits } };
    if let Some(text) = section.text("listen", faults) {
        let parsed = text.parse::<SocketAddr>().map_err(|_| {
            "is no address and port; write them as numbers, such as \"127.0.0.1:4180\", \"0.0.0.0:4180\" or \"[::1]:4180\""
        });
        listen = faults.check(&section.place("listen"), parsed).unwrap_or(listen);
    }
    if let Some(most) = section.count("connections_max", 1..=COUNT_MAX, faults) {
        limits.connections_max = usize::try_from(most).unwrap_or(usize::MAX);
    }
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
    section.finish(faults);
    ServeConfig { listen, limits }
}
