//! What most applications need: `use ichido::prelude::*;`.
//!
//! Guarantee: everything here is also public elsewhere in this crate; a program that imports it needs no other crate of ours.

pub use ichido_core::retry::Retry;
pub use ichido_core::time::Timestamp;
pub use ichido_store::Store;
pub use ichido_store::error::StoreError;
pub use ichido_store::message::{CancelOutcome, Enqueued};
pub use sqlx::{Postgres, Sqlite};

#[cfg(feature = "client")]
pub use crate::client::ClientExt;
pub use crate::destination::{Handler, Job, JobError, JobSuccess};
pub use crate::message::{Draft, EnqueueError, Message};
#[cfg(feature = "once")]
pub use crate::once::{Class, Guarantee, LeaseKeeper, Once};
pub use crate::worker::{QueueConfig, Worker, WorkerHandle};
pub use crate::{Ichido, Transaction, Tx};
