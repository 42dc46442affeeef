//! The signals that stop a program.
//!
//! Guarantee: once [`Signals`] listens, no signal ends the process and none is missed.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::server::Stops;

/// The program cannot listen for signals.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for signals: {0}")]
pub struct SignalsError(#[from] io::Error);

/// A stream of `SIGTERM`, `SIGINT` and `SIGHUP` (a closed terminal).
pub struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    hang_up: Signal,
}

impl Signals {
    /// Starts to listen. From now on the signals do not end the process.
    pub fn listen() -> Result<Self, SignalsError> {
        #[cfg(unix)]
        return Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        });
        #[cfg(not(unix))]
        return Ok(Self {});
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Turns each signal into a request to stop a server.
    pub fn stops(mut self) -> Stops {
        let stops = Stops::default();
        let handle = stops.clone();
        tokio::spawn(async move {
            loop {
                self.next().await;
                handle.stop();
            }
        });
        stops
    }
}
