//! The worker: claims messages from the outbox and delivers them, each with exactly-once effects.
//!
//! Guarantee: a message is delivered only under a live claim, and leaves its queue only when its outcome is durable. What
//! is known of its effect decides whether it is retried, never a guess. A worker that dies, hangs or is stopped loses
//! nothing: unstarted messages return to the queue, started ones count as attempts, and unknown effects are parked.
//!
//! ```
//! use ichido::destination::{Job, JobError};
//! use ichido::message::Message;
//! use ichido::worker::Worker;
//! # use ichido_store::Store;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Summarize {
//!     bookmark_id: u64,
//! }
//!
//! impl Message for Summarize {
//!     const QUEUE: &str = "summarize";
//! }
//!
//! # async fn run(store: Store) -> Result<(), Box<dyn std::error::Error>> {
//! let worker = Worker::new(store)
//!     .handle_idempotent(|job: Job<Summarize>| async move {
//!         if job.payload.bookmark_id == 0 {
//!             return Err(JobError::dead("no bookmark has the number 0"));
//!         }
//!         Ok(())
//!     })
//!     .start()?;
//! worker.stop();
//! worker.ended().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Structure
//!
//! Each queue has a runner, which claims messages and owns the slots. Each claimed message is an attempt in its own slot,
//! so none waits for another's call. Attempts whose handlers never wait share a task, the `lane`, and are settled together.
//! A destination has one pacer per node, and all pacers of a name share one row of the store. `maintenance` promotes due
//! messages and rescues those of dead workers. On one node at a time, `singleton_tasks` sweeps, seals and prunes, and
//! `reconcile` looks up parked messages.
//!
//! Start at [`Worker`]; then read `queue_runner`, which claims, and `attempt`, which delivers one message.
// Spec: D, E1, E2, F2.

mod alert;
mod attempt;
mod attempt_tasks;
mod builder;
mod cancellations;
mod claim;
mod config_error;
#[cfg(feature = "testing")]
pub(crate) mod drain;
mod heartbeat;
mod in_place;
mod lane;
mod maintenance;
mod metrics;
mod node;
mod pacer;
pub mod pacing;
mod queue_runner;
mod reconcile;
mod resolved;
mod running;
mod settings;
mod settle;
mod singleton_tasks;
mod slots;
mod stop;
mod transactional;

/// The `tracing` target of the event emitted after each call.
///
/// Its level is TRACE and its fields are `message_id`, `queue`, `key`, `attempt`, `trace` (the message's `traceparent`),
/// `began_at` and `ended_at` (microseconds since the Unix epoch), and `code` if it failed. It is for traces, which carry the key:
/// keep it out of logs.
pub const DELIVERY: &str = "ichido::delivery";

pub use self::metrics::describe_metrics;
pub use alert::{AlertFormat, AlertReceiver, AlertSettings, QUEUE_PREFIX};
pub use builder::{ShortKeyRetention, Worker, config_errors, short_key_retention};
pub use config_error::{WorkerConfigError, WorkerConfigErrors};
pub use pacer::{DestinationPace, PaceChange, Paces};
pub use resolved::{Resolution, record_resolution};
pub use running::{StopHandle, WorkerHandle};
pub use settings::{DestinationConfig, OutboundKey, QueueConfig, limits};
