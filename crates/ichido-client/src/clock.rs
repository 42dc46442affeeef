//! The clock of this client: from when a date in `Retry-After` is counted.

use ichido_core::time::Timestamp;

/// Now, by this machine's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the shell: a server's date is compared with the time of the day"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}
