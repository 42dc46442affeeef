//! The fence: which claim of a record or a message is the current one.
//!
//! Guarantee: fences of one store only grow, so of two claims of the same thing the later one has the
//! greater fence. A fence is apart from the count of tries, which a requeue resets: a zombie of the first
//! life must still be told apart from the worker of the second.

/// The number of one claim, drawn by the store from a sequence that never repeats and never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64); // Invariant: at most i64::MAX, because databases hold it in a signed column.

impl Fence {
    /// The fence numbered `number`; `None` when no database column could hold it.
    pub fn new(number: u64) -> Option<Self> {
        i64::try_from(number).is_ok().then_some(Self(number))
    }

    /// The number, as a header or a column carries it.
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
