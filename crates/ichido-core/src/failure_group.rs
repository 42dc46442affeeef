//! Failure groups: dead letters of one queue that failed for the same reason.
//!
//! Guarantee: the same code and the same error text always give the same [`FailureFingerprint`], in every process and
//! release of this scheme. Numbers, ids, hex, addresses, times and quoted text do not change it. A [`template`] never
//! contains quoted text, apart from the messages of a JSON error, and has at most [`MAX_TEMPLATE_BYTES`] bytes.
//!
//! [`template`] normalises an error, [`FailureFingerprint`] identifies it, and [`GroupStanding`] decides the state of a
//! group: open, acknowledged, resolved, or back after it was resolved.
//!
//! ```
//! use ichido_core::failure_group::{FailureFingerprint, template};
//!
//! let first = template("order 4711: unknown symbol \"ACME\" after 12.5 ms");
//! assert_eq!(first, "order #: unknown symbol \"…\" after # ms");
//! assert_eq!(first, template("order 4712: unknown symbol \"USDJPY\" after 9 ms"));
//! let fingerprint = FailureFingerprint::new(Some("BAD_REQUEST"), &first);
//! assert_ne!(fingerprint, FailureFingerprint::new(Some("UNAUTHORIZED"), &first));
//! ```

mod json_error;
mod quotes;
mod standing;
mod template;

use std::fmt;

pub use standing::{GroupEvent, GroupStanding, GroupState};
pub use template::{MAX_TEMPLATE_BYTES, flattened, template};

use crate::digest::{Hasher, hex};

/// The length of a fingerprint, in bytes. A queue has far fewer causes of failures than this can distinguish.
const FINGERPRINT_BYTES: usize = 8;

/// 16 hex digits: a hash of an error's code and template, the same in every queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureFingerprint([u8; FINGERPRINT_BYTES]);

impl FailureFingerprint {
    /// Computes the fingerprint of an error from its code and its [`template`].
    pub fn new(code: Option<&str>, template: &str) -> Self {
        let mut hasher = Hasher::new("ichido/failure-group/1");
        hasher.part(code.unwrap_or_default().as_bytes());
        hasher.part(template.as_bytes());
        let mut bytes = [0; FINGERPRINT_BYTES];
        for (byte, hashed) in bytes.iter_mut().zip(hasher.finish()) {
            *byte = hashed;
        }
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; FINGERPRINT_BYTES] {
        &self.0
    }
}

impl fmt::Display for FailureFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for FailureFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
