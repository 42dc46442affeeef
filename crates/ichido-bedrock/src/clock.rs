//! The clock of this model: from when a date in an answer is counted.

use ichido_core::time::Timestamp;

/// Now, by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "this is the shell: a server's date is the time of the day")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}
