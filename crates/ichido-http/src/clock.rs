//! The time of day: the one place outside the store that asks this machine for it.
//!
//! Guarantee: everything else gets its moments passed in.

use ichido_core::time::Timestamp;

/// Now, by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "the outermost shell holds the clock and passes moments in")]
pub fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}
