//! An entry: an accepted action and its state.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use ichido_core::key::IdempotencyKey;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::age::ClockMark;
use super::error::QueueError;
use super::fields;
use super::next::EntryHistory;
use crate::action::{Action, Cause};

/// Identifies an entry, in order of acceptance. Never reused in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(super) i64);

impl EntryId {
    /// Creates an id from a number.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

ichido_core::words! {
    /// The state of an entry. Entries that are done are removed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum State {
        /// It waits for its turn or its next attempt.
        Waiting = "waiting",
        /// An attempt is in flight, or its process died and the next sender recovers it.
        Sending = "sending",
        /// It is not retried unless a person decides so.
        Failed = "failed",
        /// It is too old to be sent again unless a person decides so.
        Held = "held",
    }
}

/// Explains an entry's state: a code for programs and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The code: the server's own (`code` of problem details) if there is one.
    pub code: String,
    /// The text: the server's own if there is one.
    pub text: String,
}

impl Reason {
    /// The maximum length of each part, because a server may send a long text.
    pub const MAX_CHARS: usize = 1_000;

    pub(super) fn new(code: &str, text: &str) -> Self {
        let cut = |text: &str| text.chars().take(Self::MAX_CHARS).collect();
        Self { code: cut(code), text: cut(text) }
    }
}

/// An entry for display, without its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// Its destination.
    pub destination: String,
    /// Its method.
    pub method: String,
    /// Its path and query.
    pub path: String,
    /// Its key, which never changes.
    pub key: IdempotencyKey,
    /// The size of its body.
    pub body_bytes: u64,
    /// When it was accepted.
    pub created: Timestamp,
    /// Its state.
    pub state: State,
    /// The failed attempts since it was accepted or a person last decided.
    pub attempts: u32,
    /// All requests, including those that may not have arrived.
    pub sends: u32,
    /// When it was first sent, if ever.
    pub first_sent: Option<Timestamp>,
    /// The time until its next attempt, if it waits for one.
    pub due_in: Option<Duration>,
    /// Its effect, as far as it is known.
    pub effect: Effect,
    /// Why it failed, is held, or waits for another attempt.
    pub reason: Option<Reason>,
}

ichido_core::debug_only! {
    /// Shows the hash of the key instead of the key.
    Entry as entry { id, key, state, attempts, sends, effect }
}

impl Entry {
    /// Reads an entry from a row. `passed` is the elapsed time of the file's clock.
    pub(super) fn read(row: &SqliteRow, passed: Duration) -> Result<Self, QueueError> {
        let state = state_of(row)?;
        let due = micros(row.try_get("due_passed_us")?)?.saturating_sub(passed);
        Ok(Self {
            id: EntryId(row.try_get("id")?),
            destination: row.try_get("destination")?,
            method: row.try_get("method")?,
            path: row.try_get("path")?,
            key: key_of(row)?,
            body_bytes: row.try_get::<i64, _>("body_bytes")?.unsigned_abs(),
            created: Timestamp::from_micros(row.try_get("created_us")?),
            state,
            attempts: count(row, "attempts")?,
            sends: count(row, "sends_all")?,
            first_sent: row.try_get::<Option<i64>, _>("first_sent_us")?.map(Timestamp::from_micros),
            due_in: Some(due).filter(|due| state == State::Waiting && !due.is_zero()),
            // The sender may be dead: a sent request may have arrived.
            effect: if state == State::Sending {
                Effect::Unknown
            } else {
                parsed(row, "effect", Effect::parse)?
            },
            reason: reason_of(row)?,
        })
    }
}

/// The next entry in order, with everything that an attempt needs.
pub(super) struct NextEntry {
    pub(super) id: EntryId,
    pub(super) history: EntryHistory,
    pub(super) sends_all: u32,
    pub(super) cause: Cause,
    pub(super) key: IdempotencyKey,
    pub(super) action: Action,
}

impl NextEntry {
    pub(super) fn read(row: &SqliteRow) -> Result<Self, QueueError> {
        let first_sent = match row.try_get::<Option<i64>, _>("first_sent_us")? {
            None => None,
            Some(at) => Some(ClockMark {
                at: Timestamp::from_micros(at),
                passed: micros(row.try_get("first_sent_passed_us")?)?,
                set_backs: count(row, "first_sent_set_backs")?,
            }),
        };
        let history = EntryHistory {
            attempts: count(row, "attempts")?,
            sends: count(row, "sends")?,
            first_sent,
            due: micros(row.try_get("due_passed_us")?)?,
            is_released: row.try_get("is_released")?,
            effect: parsed(row, "effect", Effect::parse)?,
        };
        let sends_all = count(row, "sends_all")?;
        let cause = parsed(row, "cause", Cause::parse)?;
        let key = key_of(row)?;
        let action = action_of(row, key.clone())?.started_by(cause).with_previous_attempts(sends_all);
        Ok(Self { id: EntryId(row.try_get("id")?), history, sends_all, cause, key, action })
    }
}

fn action_of(row: &SqliteRow, key: IdempotencyKey) -> Result<Action, QueueError> {
    let method = parsed(row, "method", |method| Method::try_from(method).ok())?;
    let path: String = row.try_get("path")?;
    let body: Vec<u8> = row.try_get("body")?;
    // The media type is among the header fields, which are set below.
    let action = Action::new(method, &path, key, "", Bytes::from(body));
    let mut action =
        action.map_err(|error| QueueError::damaged(format!("an entry is not an action: {error}")))?;
    action.headers = fields::decode(row.try_get("headers")?)
        .ok_or_else(|| QueueError::damaged("the headers are invalid"))?;
    Ok(action)
}

fn key_of(row: &SqliteRow) -> Result<IdempotencyKey, QueueError> {
    parsed(row, "key", |key| IdempotencyKey::parse(key).ok())
}

pub(super) fn state_of(row: &SqliteRow) -> Result<State, QueueError> {
    parsed(row, "state", State::parse)
}

fn parsed<T>(row: &SqliteRow, column: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, QueueError> {
    let text: String = row.try_get(column)?;
    parse(&text).ok_or_else(|| QueueError::damaged(format!("an entry's {column} is invalid")))
}

pub(super) fn reason_of(row: &SqliteRow) -> Result<Option<Reason>, QueueError> {
    let (code, text): (Option<String>, Option<String>) = (row.try_get("code")?, row.try_get("reason")?);
    Ok(code.zip(text).map(|(code, text)| Reason { code, text }))
}

fn count(row: &SqliteRow, column: &str) -> Result<u32, QueueError> {
    let number: i64 = row.try_get(column)?;
    u32::try_from(number).map_err(|_| QueueError::damaged(format!("{column} is out of range")))
}

pub(super) fn micros(number: i64) -> Result<Duration, QueueError> {
    let number = u64::try_from(number).map_err(|_| QueueError::damaged("a time is out of range"))?;
    Ok(Duration::from_micros(number))
}

/// Converts a duration to the file's format.
pub(super) fn to_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
