//! Two clocks: our own, which only goes forward, and the store's, as far as we know it.

use std::sync::Mutex;
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use tokio::time::Instant;

/// When the store was asked, by our own clock, and by how much a test had moved the clocks.
#[derive(Clone, Copy)]
pub struct StoreQuery {
    pub(crate) at: Duration,
    skew: Duration,
}

/// A clock that only goes forward, and what it knows of the store's.
pub struct Clock {
    /// Whose clock it follows; without one it is a clock of its own.
    store: Option<Store>,
    since: Instant,
    /// What the store said, and when it was asked.
    last_reading: Mutex<(Duration, Timestamp)>,
}

impl Clock {
    /// One that follows the store's.
    pub fn new(store: Store) -> Self {
        Self {
            store: Some(store),
            since: Instant::now(),
            last_reading: Mutex::new((Duration::ZERO, Timestamp::EPOCH)),
        }
    }

    /// One that follows nobody's. Its moments compare with each other alone.
    pub fn alone() -> Self {
        // Not the beginning of time, which stands for what never happened.
        const START: Timestamp = Timestamp::from_secs(1_000_000_000);
        Self { store: None, since: Instant::now(), last_reading: Mutex::new((Duration::ZERO, START)) }
    }

    fn skewed_by(&self) -> Duration {
        self.store.as_ref().map_or(Duration::ZERO, Store::skewed_by)
    }

    /// Our own. A test that moves the store's clock moves this one with it.
    pub fn own(&self) -> Duration {
        self.since.elapsed() + self.skewed_by()
    }

    /// The store was asked at this moment of our own clock, and said so.
    ///
    /// A clock that was moved meanwhile is not believed: nobody can tell whether the answer knows of the move, and counting it twice
    /// would put every moment into the future. What was heard before stands; `false` says so.
    pub fn hear(&self, query: StoreQuery, store_time: Timestamp) -> bool {
        let is_reliable = self.skewed_by() == query.skew;
        if is_reliable {
            *lock(&self.last_reading) = (query.at, store_time);
        }
        is_reliable
    }

    /// Now, for a question to the store.
    pub fn ask(&self) -> StoreQuery {
        let skew = self.skewed_by();
        StoreQuery { at: self.since.elapsed() + skew, skew }
    }

    /// The store's, later by no more than its last answer took to come.
    pub fn now(&self) -> Timestamp {
        let (asked_at, store_time) = *lock(&self.last_reading);
        store_time.plus(self.own().saturating_sub(asked_at))
    }
}
