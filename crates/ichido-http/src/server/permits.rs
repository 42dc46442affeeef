//! Permits under a total limit and a limit per holder.
//!
//! Guarantee: the permits of all holders never exceed the total limit, and those of one holder never exceed its own
//! limit. Dropping a permit returns its amount. A holder without permits leaves no state behind.
//!
//! An unknown holder (`None`) has no limit of its own.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use ichido_core::sync::lock;
use tokio::sync::{Semaphore, SemaphorePermit};

/// All permits of one kind.
pub struct Permits<K: Eq + Hash> {
    all: Arc<Semaphore>,
    max_of_one: usize,
    holders: Holders<K>,
}

/// Only the holders that have a permit or wait for one.
type Holders<K> = Arc<Mutex<HashMap<K, Arc<Semaphore>>>>;

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The total limit.
    All,
    /// The holder's own limit.
    Own,
}

/// An amount that one holder has, until it is dropped.
pub struct Permit<K: Eq + Hash> {
    all: Arc<Semaphore>,
    own: Option<HolderPermit<K>>,
    amount: usize,
}

struct HolderPermit<K: Eq + Hash> {
    holder: K,
    /// `None` only during drop.
    semaphore: Option<Arc<Semaphore>>,
    holders: Holders<K>,
}

impl<K: Eq + Hash + Clone> Permits<K> {
    /// Creates `max` permits, of which one holder can have `max_of_one`.
    pub fn new(max: usize, max_of_one: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(max)), max_of_one, holders: Arc::default() }
    }

    /// Creates a permit of amount zero, which can grow.
    pub fn empty(&self, holder: Option<K>) -> Permit<K> {
        let own = holder.map(|holder| {
            let mut known = lock(&self.holders);
            let semaphore = known.entry(holder.clone());
            let semaphore = semaphore.or_insert_with(|| Arc::new(Semaphore::new(self.max_of_one)));
            HolderPermit {
                holder,
                semaphore: Some(Arc::clone(semaphore)),
                holders: Arc::clone(&self.holders),
            }
        });
        Permit { all: Arc::clone(&self.all), own, amount: 0 }
    }

    /// Takes one permit if one is available now.
    pub fn try_take(&self, holder: Option<K>) -> Result<Permit<K>, Full> {
        let mut permit = self.empty(holder);
        permit.try_grow(1)?;
        Ok(permit)
    }

    /// Takes one permit, waiting first behind the same holder's requests and then behind all.
    pub async fn take(&self, holder: Option<K>) -> Permit<K> {
        let mut permit = self.empty(holder);
        // The semaphores are never closed, so acquiring cannot fail.
        let own = match permit.own_semaphore() {
            Some(own) => own.acquire().await.ok(),
            None => None,
        };
        let all = permit.all.acquire().await.ok();
        own.into_iter().chain(all).for_each(SemaphorePermit::forget);
        permit.amount = 1;
        permit
    }
}

impl<K: Eq + Hash> Permit<K> {
    /// Takes `amount` more if it is available now.
    pub fn try_grow(&mut self, amount: usize) -> Result<(), Full> {
        // An amount that a semaphore cannot count is more than there is.
        let count = u32::try_from(amount).map_err(|_| Full::All)?;
        // Check the holder's own limit first: the total limit would reveal something about other holders.
        let own = match self.own_semaphore() {
            Some(own) => Some(own.try_acquire_many(count).map_err(|_| Full::Own)?),
            None => None,
        };
        let all = self.all.try_acquire_many(count).map_err(|_| Full::All)?;
        own.into_iter().chain([all]).for_each(SemaphorePermit::forget);
        self.amount += amount;
        Ok(())
    }

    fn own_semaphore(&self) -> Option<&Semaphore> {
        self.own.as_ref().and_then(|own| own.semaphore.as_deref())
    }
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        self.all.add_permits(self.amount);
        if let Some(own) = self.own_semaphore() {
            own.add_permits(self.amount);
        }
    }
}

impl<K: Eq + Hash> Drop for HolderPermit<K> {
    fn drop(&mut self) {
        let mut known = lock(&self.holders);
        // Drop it under the lock, so the second of two concurrent drops sees that it is the last.
        self.semaphore = None;
        if known.get(&self.holder).is_some_and(|semaphore| Arc::strong_count(semaphore) == 1) {
            known.remove(&self.holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn permits_have_a_limit_per_holder_and_in_total() {
        let permits = Permits::new(5, 2);
        let take = |holder| permits.try_take(holder);
        let first = take(Some(1)).expect("a permit");
        let second = take(Some(1)).expect("a permit");
        assert_eq!(take(Some(1)).err(), Some(Full::Own));
        let other = take(Some(2)).expect("another holder has its own limit");
        let unknown = [take(None).expect("a permit"), take(None).expect("a permit")];
        assert_eq!(take(None).err(), Some(Full::All));
        assert_eq!(take(Some(3)).err(), Some(Full::All));
        drop((first, unknown));
        drop(take(Some(1)).expect("what was given back"));
        drop((second, other));
        assert_eq!(permits.all.available_permits(), 5);
        assert!(lock(&permits.holders).is_empty(), "nothing is kept of those who have gone");
    }

    #[test]
    fn a_permit_grows_within_both_limits_and_a_refused_growth_changes_nothing() {
        let permits = Permits::new(100, 60);
        let mut permit = permits.empty(Some("ann"));
        permit.try_grow(50).expect("within its own");
        assert_eq!(permit.try_grow(11), Err(Full::Own));
        permit.try_grow(10).expect("the refused one took nothing");
        let mut other = permits.empty(Some("ben"));
        assert_eq!(other.try_grow(41), Err(Full::All));
        other.try_grow(40).expect("the refused one took nothing");
        drop(permit);
        other.try_grow(20).expect("what was given back");
        assert_eq!(other.try_grow(usize::MAX), Err(Full::All));
    }

    /// Returns the output if the future is ready at once.
    fn ends<F: Future>(future: F) -> Option<F::Output> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn waiting_for_an_own_permit_does_not_block_others() {
        let permits = Permits::new(2, 1);
        let first = ends(permits.take(Some(1))).expect("a permit");
        assert!(ends(permits.take(Some(1))).is_none(), "it has its permit");
        let other = ends(permits.take(Some(2))).expect("another holder goes ahead");
        assert!(ends(permits.take(Some(3))).is_none(), "all are taken");
        drop(first);
        assert!(ends(permits.take(Some(1))).is_some(), "what those who stopped waiting had is given back");
        drop(other);
        assert!(lock(&permits.holders).is_empty());
    }
}
