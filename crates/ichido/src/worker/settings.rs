//! What somebody decides about queues and destinations.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::pace;
use ichido_core::retry::Retry;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;

use crate::destination::Destination;

/// The bounds of a worker's settings, and what holds when nothing is said.
pub mod limits {
    use std::time::Duration;

    /// Messages of one queue that are worked on at once by one worker (SPEC D15).
    pub const PARALLELISM_DEFAULT: u32 = 4;
    /// The most of them.
    pub const PARALLELISM_MAX: u32 = 100_000;
    /// The most messages that one claim takes (SPEC D15).
    pub const BATCH_SIZE_DEFAULT: u32 = 32;
    /// How long an idle queue waits before it looks again, unless it is woken (SPEC D15).
    pub const IDLE_SLEEP_DEFAULT: Duration = Duration::from_millis(200);
    /// How long a claim holds without being renewed: after so long without a sign of life a worker counts as stuck, and its messages
    /// are taken from it (SPEC D12, D15). It is renewed all the while, so that a shorter one costs little and takes them sooner.
    pub const LEASE_DEFAULT: Duration = Duration::from_mins(10);
    /// The shortest lease: it is renewed three times before it lapses, and a database may take its time.
    pub const LEASE_MIN: Duration = Duration::from_secs(1);
    /// The longest lease: one that ends later was taken while the clock was ahead, and counts as lapsed.
    pub const LEASE_MAX: Duration = ichido_store::message::limits::LEASE_MAX;
    /// How long calls under way may go on after a stop.
    pub const STOP_WITHIN_DEFAULT: Duration = Duration::from_secs(25);
    /// How long messages are kept after they were sent or cancelled.
    pub const KEEP_FINISHED_DEFAULT: Duration = Duration::from_hours(90 * 24);
    /// The longest name of a destination or a worker, in bytes.
    pub const NAME_BYTES_MAX: usize = 128;
}

/// A queue that a worker serves. [`Queue::new`] has the defaults; set the fields for anything else.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// The name of the destination that its messages go to.
    pub destination: String,
    /// How many of its messages this worker works on at once.
    pub parallelism: NonZeroU32,
    /// The most messages that one claim takes. What exceeds the free slots is held, not begun, and given back on a stop.
    pub batch_size: NonZeroU32,
    /// How long to wait after a failure. How often to try is said by the message.
    pub retry: Retry,
    /// Whether an operator may send its dead messages again (SPEC D17).
    pub requeue: bool,
    /// How long a claim holds without being renewed: longer than a call may take. What a dead worker held waits for so long.
    pub lease: Duration,
    /// Which key its calls carry.
    pub key: OutboundKey,
    /// Whether a durable mark is made before each call, so that after a death it is known what had not begun. `None` is: where the
    /// destination promises nothing about repetitions.
    pub marks: Option<bool>,
}

impl Queue {
    /// A queue whose messages go to a destination.
    pub fn new(name: impl Into<String>, destination: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            destination: destination.into(),
            parallelism: PARALLELISM,
            batch_size: BATCH_SIZE,
            retry: Retry::OUTBOX,
            requeue: false,
            lease: limits::LEASE_DEFAULT,
            key: OutboundKey::Derived,
            marks: None,
        }
    }
}

ichido_core::words! {
    /// Which key a call carries; on every try of a message it is the same (SPEC D7).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OutboundKey {
        /// One made of queue, identity and key, so that two identities with the same key are two actions at the destination.
        Derived = "derived",
        /// The message's own: where keys are unique by themselves (UUID, ULID), or the queue serves one identity.
        Own = "own",
    }
}

impl OutboundKey {
    /// What stands in a store for a queue, where that is another kind: its messages may have been tried under such keys, and a
    /// try under another would be another action to their receiver. A worker that would do so serves nothing.
    pub async fn contradicted_by(
        self,
        store: &Store,
        queue: &QueueName,
    ) -> Result<Option<String>, StoreError> {
        let stands = store.queues().kind_of_key(queue, self.as_str()).await?;
        Ok((stands != self.as_str()).then_some(stands))
    }

    /// The key that calls for a message carry.
    pub fn of(self, queue: &QueueName, identity: &str, key: &IdempotencyKey) -> IdempotencyKey {
        match self {
            Self::Own => key.clone(),
            Self::Derived => IdempotencyKey::derived(
                "outbox",
                &[queue.as_str().as_bytes(), identity.as_bytes(), key.as_str().as_bytes()],
            ),
        }
    }
}

/// A destination by its name, and how fast it may be called. [`Target::new`] has the defaults; set the fields for anything else.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name. All workers on one database that use a name share its pace.
    pub name: String,
    /// What it is.
    pub destination: Destination,
    /// How fast it may be called by all nodes together, and when it counts as down.
    pub pace: pace::Settings,
    /// The most calls of this worker at once, over all its queues; `None` is as many as the queues allow.
    pub max_parallel: Option<NonZeroU32>,
    /// How long each message waits in its slot before its first call (SPEC B4).
    pub interval: Duration,
}

impl Target {
    /// A destination that is called as fast as it bears.
    pub fn new(name: impl Into<String>, destination: impl Into<Destination>) -> Self {
        Self {
            name: name.into(),
            destination: destination.into(),
            pace: pace::Settings::DEFAULT,
            max_parallel: None,
            interval: Duration::ZERO,
        }
    }
}

const PARALLELISM: NonZeroU32 = NonZeroU32::new(limits::PARALLELISM_DEFAULT).expect("it is not zero");
const BATCH_SIZE: NonZeroU32 = NonZeroU32::new(limits::BATCH_SIZE_DEFAULT).expect("it is not zero");
