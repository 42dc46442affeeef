//! `ichido mock-broker`: runs the mock broker as a program.

mod args;
mod settings;

use ichido_mock_broker::{Broker, serve};
use tokio::net::TcpListener;

pub(crate) use args::Args;

use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use settings::Settings;

/// Runs a broker until it is stopped.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Settings { listen, behaviour, seed } = settings::resolve(&args)?;
    // Before the first connection, so a signal never arrives when the broker could not stop cleanly.
    let signals = Signals::listen()?;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| Exit::Failed(format!("cannot listen on {listen}: {error}")))?;
    announce(&listener, seed)?;
    match serve(listener, Broker::new(behaviour, seed), &signals.stops()).await {
        0 => Ok(()),
        cut => Err(Exit::Interrupted(format!(
            "stopped before all requests in flight ended; closed connections: {cut}"
        ))),
    }
}

/// Prints the bound address, and the seed that reproduces the same faults.
fn announce(listener: &TcpListener, seed: u64) -> Result<(), Exit> {
    let address = listener.local_addr();
    let address =
        address.map_err(|error| Exit::Failed(format!("cannot read the listen address: {error}")))?;
    out::print_line(format_args!("ichido: mock broker listening on http://{address} with seed {seed}"))
}
