//! The fence: identifies the current claim of a record or message.
//!
//! Guarantee: fences of one store only grow, so the later of two claims has the greater fence. A fence is separate from
//! the attempt count, which a requeue resets: a zombie of the first life must not be mistaken for the worker of the
//! second.

/// The number of one claim, drawn by the store from a sequence that never repeats or goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64); // Invariant: at most i64::MAX, because databases hold it in a signed column.

impl Fence {
    /// Creates the fence numbered `number`; `None` if it does not fit a database column.
    pub fn new(number: u64) -> Option<Self> {
        i64::try_from(number).is_ok().then_some(Self(number))
    }

    /// Returns the number, as stored in headers and columns.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_fits_a_signed_column() {
        assert!(Fence::new(0).is_some());
        assert!(Fence::new(i64::MAX.unsigned_abs()).is_some());
        assert!(Fence::new(i64::MAX.unsigned_abs() + 1).is_none());
    }
}
