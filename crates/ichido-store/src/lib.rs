//! The database of Ichido: the ledger and the outbox, on SQLite and on PostgreSQL.
//!
//! Guarantee: what is acknowledged is durable, and what is not acknowledged is whole or not there at all. Every
//! method is atomic in itself and speaks of requests and messages, never of rows.
//!
//! Start at [`Store`]. It is one interface over two protocols:
//!
//! - the **ledger**, for a request that arrives: [`Keys::claim`](crate::Keys::claim), do the work, [`Keys::settle`](crate::Keys::settle). The example is at
//!   [`ledger`].
//! - the **outbox**, for a message that must leave: [`Messages::enqueue`](crate::Messages::enqueue) (or, inside your own transaction,
//!   [`Messages::enqueue_in_postgres`](crate::Messages::enqueue_in_postgres) and [`Messages::enqueue_in_sqlite`](crate::Messages::enqueue_in_sqlite)), then in a worker [`Claims::take`](crate::Claims::take),
//!   call, [`Claims::settle`](crate::Claims::settle). The example of a worker is at [`message`], that of the rescue of a dead one at [`rescue`].
//!
//! What a crate above this one will do by itself, its user does today: call [`Claims::promote`](crate::Claims::promote), [`Claims::rescue`](crate::Claims::rescue),
//! [`Keys::sweep`](crate::Keys::sweep), [`Messages::forget`](crate::Messages::forget) and [`Queues::fold_counts`](crate::Queues::fold_counts) now and then. [`node`] shows it.
//!
//! All decisions are `ichido_core`'s; it is where events, verdicts and policies come from. [`error`] says what to do about each error.
//!
//! # The tables
//!
//! `ichido.ledger` and so on in PostgreSQL, `ichido_ledger` in SQLite. Hot tables are small and narrow; large data is written once.
//!
//! - `ledger`: one row per key, inserted by the claim and updated once by the settle.
//! - `messages`: the requests. Never updated.
//! - `ready`: what can be claimed now. Inserted and deleted, never updated; its primary key is the order of claims.
//! - `scheduled`: what waits for its time. `letters`: dead and parked messages. `leases`: one row for a claimed batch. `begun`: start marks.
//! - `events`: every end of an attempt and every operator's action, appended. An attempt is one row: `claimed_at` is its queued → sending, `at`
//!   its end, so a claim appends nothing.
//! - `answers`: what models answered, kept until a person has it forgotten. A row exists before the first call, so calls of a dead run are known.
//! - `tallies`: counts per minute, from all nodes. `alerts`: incidents, at most one open for each rule and subject.
//! - `queue_facts`: what each node knows of its queues, for commands without a configuration. `queue_keys`: their kind of outbound key.
//! - The view `message` shows all of this as one row. PostgreSQL keeps counts as deltas, which a maintenance task folds; SQLite, with its one
//!   writer, counts in place.

pub mod action;
pub mod alert;
pub mod answer;
pub mod audit;
pub mod backup;
pub mod batch;
mod check;
mod claim_end;
mod claim_tracker;
mod columns;
mod db_timestamp;
mod disk_space;
mod driver;
mod duplicate;
pub mod error;
mod error_class;
mod error_detail;
pub mod facts;
mod guarantee_columns;
mod headers;
mod json;
pub mod ledger;
pub mod letter;
pub mod message;
mod migrations;
pub mod node;
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
mod take;
pub mod tally;
#[cfg(all(unix, feature = "testing"))]
pub mod testing;
pub mod token;
mod transaction;
pub mod vitals;
pub mod waiters;
mod write_job;
mod write_queues;

pub use store::{
    Actions, Alerts, Answers, AuditTrail, Claims, DeadLetters, Facts, Keys, Messages, Nodes, Paces, Queues,
    Store, Tallies, Tokens,
};

/// The longest delay, window, lease or time to live: a hundred years. More is taken as this, alike on both databases: PostgreSQL
/// counts an interval's microseconds as a floating-point number, which is exact this far, and no clock gets beyond what a column holds.
const DURATION_MAX: std::time::Duration = std::time::Duration::from_hours(100 * 366 * 24);

/// A duration that every database can hold.
fn bounded(duration: std::time::Duration) -> std::time::Duration {
    duration.min(DURATION_MAX)
}

/// A duration as the statements take it.
fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(bounded(duration).as_micros()).unwrap_or(i64::MAX)
}
