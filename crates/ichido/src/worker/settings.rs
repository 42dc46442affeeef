//! Settings of queues and destinations.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::json::Redaction;
use ichido_core::key::IdempotencyKey;
use ichido_core::pace;
use ichido_core::retry::Retry;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;

use crate::destination::Destination;

/// Limits and defaults of a worker's settings.
pub mod limits {
    use std::time::Duration;

    /// The default for concurrent messages of one queue per worker, which is one process.
    // Spec: D15.
    pub const PARALLELISM_DEFAULT: u32 = 4;
    /// The most concurrent messages of one queue per worker.
    pub const MAX_PARALLELISM: u32 = 100_000;
    /// The default for messages per claim.
    // Spec: D15.
    pub const BATCH_SIZE_DEFAULT: u32 = 32;
    /// The default polling interval of an idle queue, unless it is woken.
    // Spec: D15.
    pub const IDLE_SLEEP_DEFAULT: Duration = Duration::from_millis(200);
    /// The default lease of a claim.
    ///
    /// After this long without a renewal a worker counts as stuck, and its messages are taken from it. The lease is renewed
    /// continuously, so a shorter one costs little and frees them sooner.
    // Spec: D12, D15.
    pub const LEASE_DEFAULT: Duration = Duration::from_mins(10);
    /// The shortest lease.
    ///
    /// It is renewed three times before it lapses, and a database may be slow.
    pub const MIN_LEASE: Duration = Duration::from_secs(1);
    /// The longest lease.
    ///
    /// One that ends later was taken while the clock was ahead, and counts as lapsed.
    pub const MAX_LEASE: Duration = ichido_store::message::limits::MAX_LEASE;
    /// The default for how long calls in flight may continue after a stop.
    pub const STOP_TIMEOUT_DEFAULT: Duration = Duration::from_secs(25);
    /// The default for how long messages are stored after they were sent or cancelled.
    pub const KEEP_FINISHED_DEFAULT: Duration = Duration::from_hours(90 * 24);
    /// The time between look-ups of a parked message at a destination that can be asked.
    pub const ASK_PARKED_EVERY: Duration = Duration::from_mins(1);
    /// The same for dead letters of unknown effect: they may be many, and nobody waits for them.
    pub const ASK_DEAD_EVERY: Duration = Duration::from_mins(10);
    /// The default for the largest response to a success that is kept, in bytes.
    // Spec: D18.
    pub const KEEP_RESPONSE_DEFAULT: usize = 64 << 10;
    /// The default for how long a handler's transaction may be open on SQLite.
    // Spec: H1.
    pub const TX_TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);
    /// The longest time that it can be set to: the store's own writes wait no longer for the file.
    pub const MAX_TX_TIMEOUT: Duration = Duration::from_secs(5);
    /// The longest name of a destination or a worker, in bytes.
    pub const MAX_NAME_BYTES: usize = 128;
}

/// A queue that a worker serves. [`QueueConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct QueueConfig {
    /// Its name.
    pub name: String,
    /// The name of its destination.
    pub destination: String,
    /// How many of its messages this worker processes concurrently.
    pub parallelism: NonZeroU32,
    /// The most messages per claim.
    ///
    /// Those beyond the free slots are held unstarted, and given back on a stop.
    pub batch_size: NonZeroU32,
    /// The retry schedule. The message says how many attempts it may have.
    pub retry: Retry,
    /// Whether an operator may requeue its dead letters.
    ///
    /// `None`: only if the destination's guarantee makes a repetition safe.
    // Spec: D17.
    pub requeue: Option<bool>,
    /// How long a claim holds without renewal: longer than a call may take.
    ///
    /// A dead worker's messages wait this long.
    pub lease: Duration,
    /// The kind of key that its calls carry.
    pub outbound_key: OutboundKey,
    /// Whether a durable start mark is written before each call.
    ///
    /// After a crash it is then known what had not started.
    ///
    /// `None`: only if the destination guarantees nothing about repeated calls.
    pub start_marks: Option<bool>,
    /// The largest response to a success that is kept, in bytes. Of a larger one, size and digest are kept.
    ///
    /// At most [`MAX_RESPONSE_BYTES`](ichido_store::message::limits::MAX_RESPONSE_BYTES) are kept. Only HTTP destinations
    /// have responses.
    // Spec: D18.
    pub keep_response: usize,
    /// The values in requests and responses that people do not see.
    ///
    /// The worker hides them in error texts before it stores or logs them; `ichido serve` hides them in everything it shows.
    pub redact: Redaction,
}

impl QueueConfig {
    /// A queue for a destination, with the defaults.
    pub fn new(name: impl Into<String>, destination: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            destination: destination.into(),
            parallelism: PARALLELISM,
            batch_size: BATCH_SIZE,
            retry: Retry::ORDER,
            requeue: None,
            lease: limits::LEASE_DEFAULT,
            outbound_key: OutboundKey::Derived,
            start_marks: None,
            keep_response: limits::KEEP_RESPONSE_DEFAULT,
            redact: Redaction::NONE,
        }
    }
}

ichido_core::words! {
    /// The key that a call carries.
    ///
    /// It is the same on every attempt of a message.
    // Spec: D7.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OutboundKey {
        /// Derived from queue, identity and key.
        ///
        /// Two identities with the same key are two actions at the destination.
        Derived = "derived",
        /// The message's own key.
        ///
        /// Use it if keys are globally unique (UUID, ULID), or the queue serves one identity.
        Own = "own",
    }
}

impl OutboundKey {
    /// Returns the kind recorded in the store for a queue, if it differs.
    ///
    /// Its messages may have been attempted under such keys, and an attempt under another key would be another action to
    /// their receiver. A worker in conflict serves nothing.
    pub async fn conflicting_kind(
        self,
        store: &Store,
        queue: &QueueName,
    ) -> Result<Option<String>, StoreError> {
        let stands = store.queues().key_kind(queue, self.as_str()).await?;
        Ok((stands != self.as_str()).then_some(stands))
    }

    /// Returns the key that calls for a message carry.
    pub fn key_for(self, queue: &QueueName, identity: &str, key: &IdempotencyKey) -> IdempotencyKey {
        match self {
            Self::Own => key.clone(),
            Self::Derived => IdempotencyKey::derived(
                "outbox",
                &[queue.as_str().as_bytes(), identity.as_bytes(), key.as_str().as_bytes()],
            ),
        }
    }
}

/// A named destination, and how fast it may be called. [`DestinationConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct DestinationConfig {
    /// Its name. All workers of one database that use a name share its pace.
    pub name: String,
    /// The destination.
    pub destination: Destination,
    /// How fast all nodes together may call it, and when it counts as down.
    pub pace: pace::PaceSettings,
    /// The most concurrent calls of this worker, over all its queues.
    ///
    /// `None` for no limit beyond the queues'.
    pub max_parallel: Option<NonZeroU32>,
    /// How long each message waits in its slot before its first call.
    // Spec: B4.
    pub interval: Duration,
}

impl DestinationConfig {
    /// A destination that is called as fast as it allows.
    pub fn new(name: impl Into<String>, destination: impl Into<Destination>) -> Self {
        Self {
            name: name.into(),
            destination: destination.into(),
            pace: pace::PaceSettings::DEFAULT,
            max_parallel: None,
            interval: Duration::ZERO,
        }
    }
}

const PARALLELISM: NonZeroU32 = NonZeroU32::new(limits::PARALLELISM_DEFAULT).expect("it is not zero");
const BATCH_SIZE: NonZeroU32 = NonZeroU32::new(limits::BATCH_SIZE_DEFAULT).expect("it is not zero");
