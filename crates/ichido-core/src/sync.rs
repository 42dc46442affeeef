//! Locks whose holder may have panicked.
//!
//! Guarantee: a panic in one task does not spread to others through a lock. Use it only if each change under the lock
//! is complete, so nobody sees half of one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, even if an earlier holder panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_outlives_a_panic_of_its_holder() {
        let mutex = Mutex::new(1);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut guard = lock(&mutex);
            *guard = 2;
            panic!("while it is held");
        }));
        assert!(panicked.is_err() && mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 2);
    }
}
