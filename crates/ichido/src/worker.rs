//! The worker: takes messages out of the outbox and acts on them, each once in effect (SPEC D, E1, E2, F2).
//!
//! Guarantee: a message is called only under a live claim, and leaves its place only when what came of it is durable. Whether it
//! is tried again is decided by what is known of its effect, never by a guess. A worker that dies, stands still or is stopped
//! loses nothing: what it had not begun goes back, what it had begun counts, and what nobody can know is parked.
//!
//! ```
//! use ichido::destination::{Failed, Job};
//! use ichido::worker::Worker;
//! # use ichido_store::Store;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Summarize {
//!     bookmark_id: u64,
//! }
//!
//! # async fn run(store: Store) -> Result<(), Box<dyn std::error::Error>> {
//! let worker = Worker::of(store)
//!     .handle("summarize", |job: Job<Summarize>| async move {
//!         if job.payload.bookmark_id == 0 {
//!             return Err(Failed::dead("no bookmark has the number 0"));
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
//! # How it is laid out
//!
//! Each queue has a lane, which claims and keeps the slots; each claimed message is an attempt in a slot of its own, so that none
//! waits for another's call. A destination has one pacer on each node, and all pacers of a name share one row of the store. The
//! upkeep promotes what is due and rescues what dead workers held; on one node at a time, `care` sweeps, seals and forgets, and
//! `reconcile` asks after what is parked.
//!
//! Start at [`Worker`]; reading on, `lane` is what claims, `attempt` what happens to one message.

mod alert;
mod attempt;
mod builder;
mod claim;
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
mod stop;

/// The target of the event of `tracing` that is told after each call, at the level TRACE: `message_id`, `queue`, `attempt`, `trace` (the
/// message's `traceparent`), `began_at` and `ended_at` (microseconds since the Unix epoch), and `code` where it failed.
pub const DELIVERY: &str = "ichido::delivery";

pub use self::metrics::describe_metrics;
pub use alert::{Alerts, Form, QUEUE_PREFIX, Receiver};
pub use builder::{BuildError, BuildErrors, ShortMemory, Worker, problems, short_memory};
pub use pacer::{Paces, SharedRate};
pub use resolved::{Resolution, tell_resolved};
pub use running::{Running, Stopper};
pub use settings::{OutboundKey, Queue, Target, limits};
