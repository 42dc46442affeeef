//! The wall clock: the only code outside the store that reads this machine's time.
//!
//! Guarantee: all other code gets the time as an argument.

use ichido_core::time::Timestamp;

/// Returns the current time of this machine.
#[expect(clippy::disallowed_methods, reason = "the outermost shell holds the clock and passes moments in")]
pub fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}
