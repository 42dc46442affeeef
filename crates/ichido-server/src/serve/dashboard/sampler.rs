//! One sample of the store for all viewers: queues, nodes, alerts and what waits for a person.
//!
//! Guarantee: however many look, the store is read at most once in [`FRESH`] and once for each change that the event feed announces, by
//! one of them while the others wait. A page that is fetched after an announcement shows what was announced.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ichido_core::failure_group::template;
use ichido_core::time::Timestamp;
use ichido_http::clock;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::error::StoreError;
use ichido_store::facts::PublishedQueue;
use ichido_store::failure_group::FailureGroup;
use ichido_store::message::DeadLetterState;

use super::super::alerts::{self, Alert};
use super::super::api::ApiState;
use super::super::models::{NodeStatus, Queue};
use super::super::queues::{current_nodes, current_queues};
use super::cached::Cached;
use super::group_names::cause;
use super::shared_reads::FRESH;

/// Maximum dead letters that are counted; more are shown as `100+`.
pub(super) const MAX_COUNTED: u32 = 100;
/// Maximum failure groups of a sample: those that need a person most. The largest of them are shown.
const MAX_GROUPS: u32 = 1_000;

/// The state of the store at one time.
pub(super) struct Sample {
    pub(super) queues: Vec<Queue>,
    /// The queues that a worker serves, or served last.
    pub(super) published: BTreeSet<String>,
    /// What workers say about these queues.
    pub(super) facts: Vec<PublishedQueue>,
    pub(super) nodes: Vec<NodeStatus>,
    /// Those that fire, newest first.
    pub(super) alerts: Vec<Alert>,
    /// Open dead letters of each queue, up to [`MAX_COUNTED`] in all.
    letters: usize,
    /// The parked message that was parked last, and since when the oldest one of its queue is.
    pub(super) parked: Option<ParkedSample>,
    /// Those that need a person most, up to [`MAX_GROUPS`].
    pub(super) groups: Vec<FailureGroup>,
    /// Requests of unknown outcome.
    pub(super) unknown_keys: u64,
    /// How far the store's clock is ahead of this machine's.
    ahead_micros: i64,
}

impl Sample {
    async fn read(api: &ApiState) -> Result<Self, StoreError> {
        let now = api.store.now().await?;
        let ahead_micros = now.as_micros().saturating_sub(clock::now().as_micros());
        let published = api.store.facts().list().await?;
        let unknown = api.store.keys().count_unknown(now).await?;
        let open = DeadLetterFilter::default();
        let queues = current_queues(api, |_| true).await?;
        let has_parked = queues.iter().any(|queue| queue.counts.is_some_and(|counts| 0 < counts.parked));
        Ok(Self {
            parked: if has_parked { ParkedSample::read(api).await? } else { None },
            queues,
            published: published.iter().map(|known| known.queue.as_str().to_owned()).collect(),
            facts: published,
            nodes: current_nodes(api).await?,
            alerts: alerts::firing(api).await?,
            letters: api.store.dead_letters().page(&open, None, MAX_COUNTED).await?.len(),
            groups: api.store.failure_groups().list(None, MAX_GROUPS).await?,
            unknown_keys: unknown.iter().map(|known| known.count).sum(),
            ahead_micros,
        })
    }

    /// Returns the number of open dead letters, up to [`MAX_COUNTED`].
    pub(super) fn open_letters(&self) -> usize {
        self.letters
    }
}

/// A parked message, for its queue and its cause.
pub(super) struct ParkedSample {
    pub(super) queue: String,
    pub(super) cause: String,
    /// Since when the oldest one of the queue is parked.
    pub(super) since: Timestamp,
}

impl ParkedSample {
    async fn read(api: &ApiState) -> Result<Option<Self>, StoreError> {
        let filter = DeadLetterFilter { state: DeadLetterState::Parked, ..DeadLetterFilter::default() };
        let Some(letter) = api.store.dead_letters().page(&filter, None, 1).await?.pop() else {
            return Ok(None);
        };
        let oldest = api.store.dead_letters().oldest(DeadLetterState::Parked, &letter.queue).await?;
        // Without the values of one message, as its failure group has it.
        let text = template(letter.error.as_deref().unwrap_or_default());
        Ok(Some(Self {
            cause: cause(letter.code.as_deref(), &text),
            since: oldest.unwrap_or(letter.since),
            queue: letter.queue.as_str().to_owned(),
        }))
    }
}

/// Samples the store for all viewers.
#[derive(Default)]
pub(super) struct Sampler {
    sample: Cached<Sample>,
    /// The version of the feed at the last request for a sample.
    version: AtomicU64,
}

impl Sampler {
    /// Returns a fresh sample.
    pub(super) async fn get(&self, api: &ApiState) -> Result<Arc<Sample>, StoreError> {
        let version = api.feed.version();
        if self.version.swap(version, Ordering::SeqCst) != version {
            self.sample.forget();
        }
        self.sample.get(FRESH, Sample::read(api)).await
    }

    /// Samples if nobody has, and again if the feed announced changes since: the navigation shows what waits, on every page.
    ///
    /// An error is that of the page itself, too, which says so.
    pub(super) async fn keep_up(&self, api: &ApiState) {
        if self.latest().is_none() || self.version.load(Ordering::SeqCst) != api.feed.version() {
            drop(self.get(api).await);
        }
    }

    /// Returns the store's time: this machine's, corrected by what the last sample found.
    pub(super) fn now(&self, own: Timestamp) -> Timestamp {
        let ahead = self.latest().map_or(0, |sample| sample.ahead_micros);
        Timestamp::from_micros(own.as_micros().saturating_add(ahead))
    }

    /// Reads the store again for the next page, because somebody changed something.
    pub(super) fn forget(&self) {
        self.sample.forget();
    }

    /// Returns the last sample, however old.
    pub(super) fn latest(&self) -> Option<Arc<Sample>> {
        self.sample.latest()
    }
}

#[cfg(test)]
impl Sample {
    /// Returns a made-up sample.
    pub(super) fn new_for_tests(
        queues: Vec<Queue>,
        published: &[&str],
        nodes: Vec<NodeStatus>,
        alerts: Vec<Alert>,
        letters: usize,
        unknown_keys: u64,
    ) -> Self {
        let published = published.iter().map(|name| (*name).to_owned()).collect();
        Self {
            queues,
            published,
            facts: Vec::new(),
            nodes,
            alerts,
            letters,
            parked: None,
            groups: Vec::new(),
            unknown_keys,
            ahead_micros: 0,
        }
    }
}
