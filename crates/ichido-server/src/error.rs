//! Why a server or a worker does not run, or ended otherwise than in good order.

use ichido_core::settings::Faults;

/// Why it does not run, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was tried, and failed.
    #[error("{0}")]
    Failed(String),
    /// It was not tried: the settings are wrong.
    #[error("{0}")]
    Misconfigured(Faults),
    /// It was stopped at once, and cut off what was still in flight.
    #[error("{0}")]
    Cut(String),
    /// The store was not reached, or gave no outcome.
    #[error("{0}")]
    Unreachable(String),
    /// Its database file was removed, moved or replaced while it ran.
    #[error("{0}")]
    StoreLost(String),
}
