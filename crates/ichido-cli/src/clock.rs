//! The clock: the one place in the program that asks what time it is.

use ichido_core::time::Timestamp;

/// Now, by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "the outermost shell holds the clock and passes moments in")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}
