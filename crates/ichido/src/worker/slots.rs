//! The slots of a queue: how many of its messages run at the same time on this node.

use std::sync::{Arc, Mutex};

use ichido_core::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) struct Slots {
    permits: Arc<Semaphore>,
    size: Mutex<Size>,
}

#[derive(Clone, Copy)]
struct Size {
    /// How many slots there are, taken or free.
    current: usize,
    /// How many there should be. If fewer, taken ones end when their attempts do.
    wanted: usize,
}

impl Slots {
    pub(super) fn new(count: u32) -> Self {
        let count = slots(count);
        let size = Mutex::new(Size { current: count, wanted: count });
        Self { permits: Arc::new(Semaphore::new(count)), size }
    }

    /// Changes the number of slots. More apply at once, fewer as running attempts end.
    pub(super) fn resize(&self, count: u32) {
        let wanted = slots(count);
        let mut size = lock(&self.size);
        size.wanted = wanted;
        if size.current < wanted {
            self.permits.add_permits(wanted - size.current);
            size.current = wanted;
        } else {
            size.current -= self.permits.forget_permits(size.current - wanted);
        }
    }

    /// Waits for a slot. Cancelling it takes none.
    pub(super) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            // Nobody closes the semaphore.
            let slot = Arc::clone(&self.permits).acquire_owned().await.ok()?;
            if !self.end_surplus() {
                return Some(slot);
            }
            slot.forget();
        }
    }

    /// Takes up to `most` slots that are free now. `None` if there are none.
    pub(super) fn take_free(&self, most: usize) -> Option<(usize, OwnedSemaphorePermit)> {
        let count = most.min(self.permits.available_permits());
        let permits = u32::try_from(count).ok().filter(|count| 0 < *count)?;
        Some((count, Arc::clone(&self.permits).try_acquire_many_owned(permits).ok()?))
    }

    /// Whether there is a slot too many. It counts as ended then.
    fn end_surplus(&self) -> bool {
        let mut size = lock(&self.size);
        let is_surplus = size.wanted < size.current;
        if is_surplus {
            size.current -= 1;
        }
        is_surplus
    }
}

fn slots(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_pending<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> bool {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    #[tokio::test]
    async fn fewer_slots_apply_as_attempts_end_and_more_at_once() {
        let slots = Slots::new(3);
        let (first, second) = (slots.acquire().await, slots.acquire().await);
        slots.resize(1); // One was free; one of the taken ones ends with its attempt.
        assert!(slots.take_free(1).is_none());
        drop(first);
        let mut waiting = Box::pin(slots.acquire());
        assert!(is_pending(&mut waiting), "two would run");
        drop(second);
        let only = waiting.await;
        assert!(slots.take_free(9).is_none());
        slots.resize(4);
        assert_eq!(slots.take_free(9).map(|(count, _)| count), Some(3));
        drop(only);
        assert_eq!(slots.take_free(9).map(|(count, _)| count), Some(4));
    }

    #[tokio::test]
    async fn waiting_attempt_gets_a_slot_that_is_added() {
        let slots = Slots::new(1);
        let _taken = slots.acquire().await;
        let mut waiting = Box::pin(slots.acquire());
        assert!(is_pending(&mut waiting));
        slots.resize(2);
        assert!(waiting.await.is_some());
    }
}
