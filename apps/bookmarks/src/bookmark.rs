//! A bookmark as the API shows it.
// SPEC A12.

use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::job_error::JobErrorCode;

/// A row of the view `bookmark_now`: id, url, title, summary, summary's author, hint, created from and at; then of its
/// message: queue, status, attempts, maximum attempts, next attempt, error.
pub(crate) type Row = (
    Uuid,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    i64,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<String>,
);

/// The state of a bookmark. Clients also have `saving`, before the server knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Processing,
    Retrying,
    Done,
    Failed,
}

impl State {
    /// Derives the state from that of its message. A sent message is deleted eventually, and its work stays done.
    pub(crate) fn from_stage(stage: Option<StateName>) -> Self {
        match stage {
            Some(StateName::Queued | StateName::Sending) => Self::Processing,
            Some(StateName::Failed) => Self::Retrying,
            Some(StateName::Sent) | None => Self::Done,
            Some(StateName::Dead | StateName::Parked | StateName::Cancelled) => Self::Failed,
        }
    }
}

/// A bookmark as JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bookmark {
    pub(crate) id: Uuid,
    pub(crate) url: String,
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    /// `model`, or `extract` for sentences taken from the page.
    pub(crate) summary_by: Option<String>,
    pub(crate) state: State,
    pub(crate) error_code: Option<&'static str>,
    pub(crate) error_message: Option<&'static str>,
    pub(crate) can_retry: bool,
    pub(crate) job_type: Option<String>,
    pub(crate) attempt: Option<i64>,
    pub(crate) max_attempts: Option<i64>,
    pub(crate) retry_at: Option<String>,
    pub(crate) source_hint: Option<String>,
    pub(crate) created_from: Option<String>,
    pub(crate) created_at: String,
}

/// The error of a message with an unknown effect, and of a cancelled one.
const PARKED: (&str, &str) = ("job_parked", "The job was interrupted and waits for an operator's decision");
const CANCELLED: (&str, &str) = ("job_cancelled", "The job was cancelled before it finished");

impl From<Row> for Bookmark {
    fn from(row: Row) -> Self {
        let (id, url, title, summary, summary_by, source_hint, created_from, created_at, ..) = row;
        let (.., job_type, status, attempt, max_attempts, retry_at, error) = row;
        let message = status.as_deref().and_then(StateName::parse);
        let state = State::from_stage(message);
        let job_error = JobErrorCode::of_error(error.as_deref());
        let shown_error = match message {
            Some(StateName::Failed | StateName::Dead) => Some((job_error.as_str(), job_error.words())),
            Some(StateName::Parked) => Some(PARKED),
            Some(StateName::Cancelled) => Some(CANCELLED),
            Some(StateName::Queued | StateName::Sending | StateName::Sent) | None => None,
        };
        Self {
            id,
            url,
            title,
            summary,
            summary_by,
            state,
            error_code: shown_error.map(|(code, _)| code),
            error_message: shown_error.map(|(_, words)| words),
            // A job that retries automatically can be retried at once.
            can_retry: match message {
                Some(StateName::Dead) => job_error.can_retry(),
                _ => matches!(state, State::Failed | State::Retrying),
            },
            job_type,
            attempt,
            max_attempts,
            retry_at: retry_at.map(rfc3339),
            source_hint,
            created_from,
            created_at: rfc3339(created_at),
        }
    }
}

fn rfc3339(micros: i64) -> String {
    Timestamp::from_micros(micros).to_string()
}
