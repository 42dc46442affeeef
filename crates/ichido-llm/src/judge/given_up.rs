//! The items that a run gave up on, until somebody reads about them.

use std::sync::Mutex;

use ichido_core::sync::lock;

use super::FallbackReason;

/// Maximum number of items that wait to be read; the result has them all.
const MAX_WAITING: usize = 1_000;

/// The items that were given up, by the index of their prompt, and why.
#[derive(Default)]
pub(super) struct GivenUpItems(Mutex<Vec<(usize, FallbackReason)>>);

impl GivenUpItems {
    pub(super) fn add(&self, index: usize, why: &FallbackReason) {
        let waiting = &mut *lock(&self.0);
        if waiting.len() < MAX_WAITING {
            waiting.push((index, why.clone()));
        }
    }

    pub(super) fn take(&self) -> Vec<(usize, FallbackReason)> {
        std::mem::take(&mut *lock(&self.0))
    }
}
