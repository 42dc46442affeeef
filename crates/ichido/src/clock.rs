//! A local clock that only moves forward, and an estimate of the store's clock.

use std::sync::Mutex;
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use tokio::time::Instant;

/// The local time of a query to the store, and the test skew then.
#[derive(Clone, Copy)]
pub struct StoreQuery {
    pub(crate) at: Duration,
    skew: Duration,
}

/// A local clock that only moves forward and estimates the store's clock.
pub struct Clock {
    /// The store whose clock it follows; `None` for a purely local clock.
    store: Option<Store>,
    since: Instant,
    /// The last time the store returned, with the local time of that query.
    last_reading: Mutex<(Duration, Timestamp)>,
}

impl Clock {
    /// Creates a clock that follows the store's clock.
    pub fn new(store: Store) -> Self {
        Self {
            store: Some(store),
            since: Instant::now(),
            last_reading: Mutex::new((Duration::ZERO, Timestamp::EPOCH)),
        }
    }

    /// Creates a clock that follows no store. Compare its moments only with each other.
    pub fn local() -> Self {
        // Not the epoch, which means "never".
        const START: Timestamp = Timestamp::from_secs(1_000_000_000);
        Self { store: None, since: Instant::now(), last_reading: Mutex::new((Duration::ZERO, START)) }
    }

    fn skewed_by(&self) -> Duration {
        self.store.as_ref().map_or(Duration::ZERO, Store::clock_advance)
    }

    /// Returns the local time. A test that moves the store's clock also moves this one.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed() + self.skewed_by()
    }

    /// Records the time that the store returned for a query made at `query`.
    ///
    /// Ignores the reading and returns `false` if a test moved the clock in the meantime: the reading may or may not
    /// include the move, and counting the move twice would put every moment into the future. The previous reading remains.
    pub fn record_reading(&self, query: StoreQuery, store_time: Timestamp) -> bool {
        let is_reliable = self.skewed_by() == query.skew;
        if is_reliable {
            *lock(&self.last_reading) = (query.at, store_time);
        }
        is_reliable
    }

    /// Returns the current local time, for a query to the store.
    pub fn start_query(&self) -> StoreQuery {
        let skew = self.skewed_by();
        StoreQuery { at: self.since.elapsed() + skew, skew }
    }

    /// Returns the store's time.
    ///
    /// It is ahead by at most the duration of the last query.
    pub fn now(&self) -> Timestamp {
        self.at(self.elapsed())
    }

    /// Returns the store's time at this local time.
    pub fn at(&self, elapsed: Duration) -> Timestamp {
        let (asked_at, store_time) = *lock(&self.last_reading);
        store_time.plus(elapsed.saturating_sub(asked_at))
    }
}
