//! Helpers for the tests of an application: a database of its own, a clock that the test moves, and injected faults.
//!
//! Guarantee: nothing waits for real time, and nothing runs but [`TestIchido::drain`]. Two runs of a test do the same.
//!
//! ```
//! use std::time::Duration;
//!
//! use ichido::assert_enqueued;
//! use ichido::prelude::*;
//! use ichido::testing::{Drained, TestIchido};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! struct SendReceipt {
//!     order: i64,
//! }
//!
//! impl Message for SendReceipt {
//!     const QUEUE: &str = "mail";
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let test = TestIchido::new().await;
//! test.enqueue(&SendReceipt { order: 1 }).await.unwrap();
//! assert_enqueued!(test, SendReceipt, |receipt| receipt.order == 1);
//!
//! // The mailer is down for the first attempt.
//! let worker = test.worker().handle_once(|job: Job<SendReceipt>| async move {
//!     if job.attempt == 1 { Err(JobError::retry("the mailer is down")) } else { Ok(()) }
//! });
//! assert_eq!(test.drain(&worker, "mail").await, Drained { failed: 1, ..Drained::default() });
//! test.advance(Duration::from_mins(1));
//! assert_eq!(test.drain(&worker, "mail").await, Drained { sent: 1, ..Drained::default() });
//! # }
//! ```
//!
//! The crate's feature `testing` enables it; enable it in `[dev-dependencies]`, so the clock that tests move is not in your
//! production build. Start at [`TestIchido`].
// Spec: H7.

use std::ops::Deref;
use std::time::Duration;

use ichido_core::{digest, text};
use ichido_store::message::{MessageFilter, MessageRow, QueueName};
use ichido_store::testing::sqlite::{self, SqliteTestFile};
use sqlx::Sqlite;

use crate::application::Ichido;
use crate::destination::FaultLayer;
use crate::message::{Message, content_type};
use crate::worker::{Worker, drain};

pub use crate::destination::Fault;
pub use crate::worker::drain::Drained;

/// How many messages are read at a time.
const PAGE: u32 = 1_000;
/// The most messages that a failed assertion lists.
const MAX_LISTED: usize = 20;
/// The most characters of each.
const MAX_LISTED_CHARS: usize = 500;

/// An [`Ichido`] on a new SQLite file, which is removed with it.
///
/// It is used like one: enqueue by `test.enqueue(…)`, create your tables on `test.pool()`.
pub struct TestIchido {
    // Before the file, so it is closed when the file is removed.
    ichido: Ichido<Sqlite>,
    faults: FaultLayer,
    _file: SqliteTestFile,
}

/// Fails a test whose fault never happened: it would prove nothing.
impl Drop for TestIchido {
    fn drop(&mut self) {
        if let Some((queue, fault)) = self.faults.left()
            && !std::thread::panicking()
        {
            panic!(
                "{fault:?} of queue `{queue}` never happened; drain the queue after inject(…), and compare their names"
            );
        }
    }
}

impl TestIchido {
    /// Creates a database.
    ///
    /// # Panics
    ///
    /// If the temporary folder cannot be written.
    pub async fn new() -> Self {
        let file = sqlite::fresh_file();
        let ichido = Ichido::connect(&file.url).await.expect("an SQLite file in the temporary folder opens");
        Self { ichido, faults: FaultLayer::default(), _file: file }
    }

    /// Lets time pass, at once: retries and delayed messages become due, keys expire.
    pub fn advance(&self, time: Duration) {
        self.ichido.store().advance_clock(time);
    }

    /// Runs what is due in a queue with the worker's handlers, one message after another, until nothing is due.
    ///
    /// Do not start the worker. Messages that a handler enqueues in the same queue run too. A retry is due later, exactly as its
    /// schedule says and without jitter: see [`TestIchido::advance`].
    ///
    /// # Panics
    ///
    /// If the worker would not start or does not serve the queue, or if 10,000 attempts later the queue is still due.
    pub async fn drain(&self, worker: &Worker, queue: &str) -> Drained {
        match drain::drain(worker, queue, &self.faults).await {
            Ok(drained) => drained,
            Err(error) => panic!("cannot drain: {error}"),
        }
    }

    /// Injects a fault into the next attempt of a queue's messages. Several faults happen one after another.
    ///
    /// If it never happens, the test fails when `self` is dropped.
    pub fn inject(&self, queue: &str, fault: Fault) {
        self.faults.inject(queue, fault);
    }

    /// Returns the messages of a type that were enqueued, the oldest first, whatever became of them.
    ///
    /// # Panics
    ///
    /// If the database cannot be read.
    pub async fn enqueued<M: Message>(&self) -> Vec<M> {
        let rows = self.rows::<M>().await;
        rows.iter().filter_map(|row| serde_json::from_slice(&row.request).ok()).collect()
    }

    /// Returns whether a message was enqueued for which a predicate holds.
    #[doc(hidden)]
    pub async fn has_enqueued<M: Message>(&self, is_expected: impl Fn(&M) -> bool) -> bool {
        self.enqueued::<M>().await.iter().any(is_expected)
    }

    /// Describes the messages in a type's queue, for the failure of an assertion.
    #[doc(hidden)]
    pub async fn describe_enqueued<M: Message>(&self) -> String {
        let rows = self.rows::<M>().await;
        let shown = rows.iter().take(MAX_LISTED);
        let payload =
            |row: &MessageRow| text::bounded(&String::from_utf8_lossy(&row.request), MAX_LISTED_CHARS);
        let mut lines: Vec<String> =
            shown.map(|row| format!("\n  {} {}", row.status.as_str(), payload(row))).collect();
        if let Some(more) = rows.len().checked_sub(MAX_LISTED).filter(|more| 0 < *more) {
            lines.push(format!("\n  and {more} more"));
        }
        format!("queue `{}` has {} of this type:{}", M::QUEUE, rows.len(), lines.concat())
    }

    /// Returns the rows of a type's messages, the oldest first.
    async fn rows<M: Message>(&self) -> Vec<MessageRow> {
        let mut filter = MessageFilter { queue: QueueName::parse(M::QUEUE), ..MessageFilter::default() };
        let mut rows = Vec::new();
        loop {
            let page = self.ichido.store().messages().list(&filter, PAGE).await.expect("the store responds");
            let Some(last) = page.last() else { break };
            filter.after = Some(last.id);
            rows.extend(page);
        }
        let media_type = content_type::<M>().ok().map(|declared| digest::media_type(&declared));
        rows.retain(|row| media_type.as_ref() == Some(&digest::media_type(&row.content_type)));
        rows.reverse();
        rows
    }
}

impl Deref for TestIchido {
    type Target = Ichido<Sqlite>;

    fn deref(&self) -> &Ichido<Sqlite> {
        &self.ichido
    }
}

/// Asserts that a message of a type was enqueued for which a predicate holds: `assert_enqueued!(test, Type, |m| …)`.
///
/// Without a predicate any message of the type will do. A failure lists the messages that were enqueued. Use it in async
/// functions.
#[macro_export]
macro_rules! assert_enqueued {
    ($test:expr, $message:ty $(,)?) => {
        $crate::assert_enqueued!($test, $message, |_| true)
    };
    ($test:expr, $message:ty, $predicate:expr $(,)?) => {{
        if !$test.has_enqueued::<$message>($predicate).await {
            ::std::panic!(
                "no {} was enqueued with {}; {}",
                ::std::stringify!($message),
                ::std::stringify!($predicate),
                $test.describe_enqueued::<$message>().await,
            );
        }
    }};
}
