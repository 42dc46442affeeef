//! The mock broker: a receiver of messages for trying and testing (SPEC D7, D8, D18).
//!
//! Guarantee: it is a real HTTP server that fails in the ways it is told, and only in those, and counts truly what it did: how
//! often each key took effect, how often each fault was made, and under which fences it was called. Nothing that it counts is ever
//! forgotten to make room; when it is full it says so and does nothing.
//!
//! `POST` to any path is an order. `GET /orders/by-key/{key}` tells what became of one, `GET /paper/effects` what became of all, and
//! `PUT /paper/faults` changes how it fails while it runs.
//!
//! Start at [`serve`]. What it decides is in `effect_log`, which knows neither sockets nor clocks.

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

pub use behaviour::{Behaviour, WAIT_MAX};
pub use failure_mode::{Rates, help};
pub use server::serve;
pub use service::Broker;

/// A broker inside another program, which behaves as it is told, over HTTP as well. It ends with its owner.
pub struct InProcess {
    /// Where it listens.
    pub address: SocketAddr,
    serving: JoinHandle<usize>,
}

impl InProcess {
    /// Starts one on a free port of loopback.
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
