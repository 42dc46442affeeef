//! The errors that stop a server or a worker.

use ichido_core::settings::ConfigErrors;

/// Why a server or worker did not start, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was attempted and failed.
    #[error("{0}")]
    Failed(String),
    /// It was not attempted: the settings are wrong.
    #[error("{0}")]
    Misconfigured(ConfigErrors),
    /// It was stopped immediately, which cut off requests and calls in flight.
    #[error("{0}")]
    Interrupted(String),
    /// The store was unreachable, or the outcome of a statement is unknown.
    #[error("{0}")]
    Unreachable(String),
    /// The database file was removed, moved or replaced while it was in use.
    #[error("{0}")]
    StoreLost(String),
}
