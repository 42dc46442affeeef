//! The store of Ichido: the ledger and the outbox, on SQLite and PostgreSQL.
//!
//! Guarantee: everything acknowledged is durable, and everything not acknowledged is complete or absent. Every method is atomic
//! and takes requests and messages, not rows.
//!
//! Start at [`Store`]. It is one interface over two protocols:
//!
//! - the **ledger**, for a request that arrives: [`Keys::claim`](crate::Keys::claim), do the work,
//!   [`Keys::settle`](crate::Keys::settle). [`ledger`] has an example.
//! - the **outbox**, for a message that must leave: [`Messages::enqueue`](crate::Messages::enqueue) (or, inside your own
//!   transaction, [`Messages::enqueue_in`](crate::Messages::enqueue_in)). A worker then calls
//!   [`Claims::claim`](crate::Claims::claim), delivers, and calls [`Claims::settle`](crate::Claims::settle). [`message`] has an
//!   example of a worker, [`rescue`] of the rescue of a dead one.
//!
//! Without the worker of the crate `ichido`, call [`Claims::promote`](crate::Claims::promote),
//! [`Claims::rescue`](crate::Claims::rescue), [`Keys::sweep`](crate::Keys::sweep),
//! [`Messages::delete_finished`](crate::Messages::delete_finished), [`Queues::fold_counts`](crate::Queues::fold_counts),
//! [`FailureGroups::fold`](crate::FailureGroups::fold),
//! [`Series::flush`](crate::Series::flush), [`Series::roll_up`](crate::Series::roll_up) and
//! [`Series::sweep`](crate::Series::sweep) periodically. [`node`] has an example.
//!
//! `ichido_core` makes all decisions; events, verdicts and policies come from there. [`error`] lists what to do about each
//! error.
//!
//! # Tables
//!
//! Tables are named `ichido.ledger` and so on in PostgreSQL, `ichido_ledger` in SQLite. Hot tables are small and narrow; large
//! data is written once.
//!
//! - `ledger`: one row per key, inserted by the claim and updated once by the settle.
//! - `messages`: the requests. Never updated.
//! - `ready`: messages that can be claimed now. Inserted and deleted, never updated; the primary key is the claim order.
//! - `scheduled`: messages that are due later. `letters`: dead and parked messages. `leases`: one row per claimed batch.
//!   `start_marks`: the marks before irreversible calls. `cancellations`: requests to cancel messages in flight.
//! - `events`: the end of every attempt and every operator's action, append-only. An attempt is one row: `claimed_at` is its
//!   queued → sending, `at` its end, so a claim appends nothing.
//! - `answers`: answers of models, kept until a person deletes them. A row exists before the first call, so the calls of a dead
//!   run are known.
//! - `failure_groups`: open dead letters with the same error. `failure_group_deltas`: changes of groups, folded by maintenance.
//! - `counters`: counts per minute, from all nodes. `counter_hours`: their sums per hour. `alerts`: incidents, at most one open for each rule and subject.
//! - `queue_facts`: each node's facts about its queues, for commands without a configuration. `queue_keys`: their kind of
//!   outbound key.
//! - The view `message` shows all of this as one row. PostgreSQL keeps counts as deltas, which a maintenance task folds;
//!   SQLite, with its one writer, counts in place.

pub mod action;
pub mod alert;
pub mod answer;
pub mod audit;
pub mod backup;
pub mod batch;
mod caller_transaction;
mod check;
mod claim_end;
mod claim_tracker;
mod columns;
pub mod counters;
mod db_timestamp;
pub mod dead_letter;
pub mod diagnostics;
mod disk_space;
mod driver;
mod duplicate;
pub mod error;
mod error_class;
mod error_detail;
pub mod facts;
pub mod failure_group;
pub mod future;
mod group_key;
mod guarantee_columns;
mod headers;
mod json;
mod key_sealing;
pub mod ledger;
pub mod message;
mod migrations;
pub mod node;
mod node_lock;
pub mod page_reads;
mod placement;
mod postgres;
mod record;
pub mod rescue;
mod row_changes;
mod rows;
mod skew;
mod split_retry;
mod sqlite;
mod statement;
mod store;
mod store_database;
mod subject;
mod take;
#[cfg(all(unix, feature = "testing"))]
pub mod testing;
pub mod token;
mod transaction;
mod transaction_state;
pub mod waiters;
mod write_job;
mod write_queues;

pub use caller_transaction::{Begun, CallerConnection};
pub use store::{
    Actions, Alerts, Answers, AuditTrail, Claims, DeadLetters, Facts, FailureGroups, Keys, Messages, Nodes,
    Paces, Queues, Replayed, Series, Store, Tokens,
};
pub use store_database::StoreDatabase;
pub use transaction_state::TransactionState;

/// The maximum delay, window, lease or time to live: a hundred years. Longer durations are capped, the same on both databases.
/// PostgreSQL counts an interval's microseconds as a floating-point number, which is exact up to here, and no clock exceeds
/// what a column can hold.
const MAX_DURATION: std::time::Duration = std::time::Duration::from_hours(100 * 366 * 24);

/// Caps a duration at what every database can hold.
fn bounded(duration: std::time::Duration) -> std::time::Duration {
    duration.min(MAX_DURATION)
}

/// Converts a duration to a statement parameter.
fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(bounded(duration).as_micros()).unwrap_or(i64::MAX)
}
