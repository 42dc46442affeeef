//! The mock broker: an HTTP receiver for demos and tests that fails as configured.
//!
//! Guarantee: it is a real HTTP server that fails only in the configured ways and counts exactly what it did: how
//! often each key took effect, how often each failure was produced, and which fences it saw. It never drops a count
//! to free memory; when it is full, it says so and does nothing.
//!
//! `POST` to any path places an order. `GET /orders/by-key/{key}` returns one order, `GET /mock/effects` returns all
//! counts, and `PUT /mock/faults` changes how it fails at run time.
//!
//! Start at [`serve`]. The decisions are in `effect_log`, which uses neither sockets nor clocks.
// Spec: D7, D8, D18.

mod behaviour;
mod effect_log;
mod failure_mode;
mod response;
mod server;
mod service;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use ichido_http::server::Stops;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use behaviour::{Behaviour, MAX_WAIT};
pub use failure_mode::{Rates, help};
pub use server::serve;
pub use service::Broker;

/// A broker inside another process, configurable over HTTP as well. It stops when dropped.
pub struct InProcess {
    /// The address it listens on.
    pub address: SocketAddr,
    serving: JoinHandle<usize>,
}

impl InProcess {
    /// Starts a broker on a free loopback port.
    pub async fn start(behaviour: Behaviour, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let broker = Broker::new(behaviour, seed);
        let serving = tokio::spawn(async { serve(listener, broker, &Stops::default()).await });
        Ok(Self { address, serving })
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
