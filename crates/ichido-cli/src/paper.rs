//! `ichido paper`: a broker of paper, for trying and testing (SPEC D7, D8, D18).
//!
//! Guarantee: it is a real HTTP server that fails in the ways it is told, and only in those, and counts truly what it did: how
//! often each key took effect, how often each fault was made, and under which fences it was called. Nothing that it counts is ever
//! forgotten to make room; when it is full it says so and does nothing.
//!
//! `POST` to any path is an order. `GET /orders/by-key/{key}` tells what became of one, `GET /paper/effects` what became of all, and
//! `PUT /paper/faults` changes how it fails while it runs.
//!
//! Start at [`run`]. What it decides is in `book`, which knows neither sockets nor clocks.

mod answer;
mod args;
mod behaviour;
mod book;
mod fault;
mod server;
mod service;
mod settings;
mod wire;

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) use args::Args;
pub(crate) use behaviour::Behaviour;
pub(crate) use fault::Rates;

use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use service::Broker;
use settings::Settings;

/// Runs a broker until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let settings =
        settings::resolve(&args).map_err(|faults| Exit::Misconfigured { command: "paper", faults })?;
    let Settings { listen, behaviour, seed } = settings;
    // Before the first connection, so that a signal never finds us without a way to end well.
    let mut signals =
        Signals::listen().map_err(|error| Exit::Failed(format!("signals cannot be caught: {error}")))?;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| Exit::Failed(format!("cannot listen on {listen}: {error}")))?;
    announce(&listener, seed)?;
    match server::serve(listener, Broker::new(behaviour, seed), async || signals.next().await).await {
        0 => Ok(()),
        cut => {
            Err(Exit::Cut(format!("stopped before everything in flight had ended; connections cut: {cut}")))
        }
    }
}

/// A broker inside another program, which behaves as it is told, over HTTP as well. It ends with its owner.
pub(crate) struct InProcess {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<usize>,
}

impl InProcess {
    /// Starts one on a free port of loopback.
    pub(crate) async fn start(behaviour: Behaviour, seed: u64) -> Result<Self, Exit> {
        let taken = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await;
        let taken = taken.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = taken.map_err(|error| {
            Exit::Failed(format!("the broker of paper cannot listen on loopback: {error}"))
        })?;
        let broker = Broker::new(behaviour, seed);
        let serving = tokio::spawn(server::serve(listener, broker, async || std::future::pending().await));
        Ok(Self { address, serving })
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One line, with the address that was really taken, and the seed with which the same faults come again.
fn announce(listener: &TcpListener, seed: u64) -> Result<(), Exit> {
    let address = listener.local_addr();
    let address = address.map_err(|error| Exit::Failed(format!("cannot say where it listens: {error}")))?;
    out::line(format_args!("ichido: paper listening on http://{address} with seed {seed}"))
}
