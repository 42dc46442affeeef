//! A bookmark as the API shows it.
// SPEC A12.

use ichido::lifecycle::StateName;
use ichido::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::job_error::JobErrorCode;
use crate::jobs::EXTRACTION;
use crate::tags::Tags;

/// A row of the view `bookmark_now`: id, url, title, tags, icon, summary, summary's author, hint, created from and at;
/// then of its message: queue, status, attempts, maximum attempts, next attempt, error.
pub(crate) type Row = (
    Uuid,
    String,
    Option<String>,
    String,
    Option<Uuid>,
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

/// The state of a bookmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// The request that saves it is in flight, so there is no bookmark yet.
    Saving,
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

/// The state of a bookmark's summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LlmStatus {
    /// The page is not read yet.
    Waiting,
    #[serde(untagged)]
    At(State),
}

impl LlmStatus {
    /// A page that cannot be read has no summary, so both have failed.
    fn of_job(job_type: Option<&str>, status: State) -> Self {
        match status {
            State::Processing | State::Retrying if job_type == Some(EXTRACTION) => Self::Waiting,
            _ => Self::At(status),
        }
    }
}

/// A bookmark. [`Bookmark::to_json`] is what callers get.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bookmark {
    pub(crate) id: Uuid,
    pub(crate) url: String,
    pub(crate) title: Option<String>,
    pub(crate) tags: Tags,
    /// The path of the site's icon.
    pub(crate) icon: Option<String>,
    pub(crate) summary: Option<String>,
    /// `model`, or `extract` for sentences taken from the page.
    pub(crate) summary_by: Option<String>,
    pub(crate) status: State,
    pub(crate) llm_status: LlmStatus,
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
        let (id, url, title, tags, icon, summary, summary_by, source_hint, created_from, created_at, ..) =
            row;
        let (.., job_type, status, attempt, max_attempts, retry_at, error) = row;
        let message = status.as_deref().and_then(StateName::parse);
        let state = State::from_stage(message);
        let llm_status = LlmStatus::of_job(job_type.as_deref(), state);
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
            tags: Tags::from_json(&tags),
            icon: icon.map(|icon| format!("/v1/icons/{icon}")),
            summary,
            summary_by,
            status: state,
            llm_status,
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

/// The other name of each member, for clients that were written before the API had one form of names.
const OTHER_NAMES: [(&str, &str); 11] = [
    ("status", "state"),
    ("summary_by", "summaryBy"),
    ("error_code", "errorCode"),
    ("error_message", "errorMessage"),
    ("can_retry", "canRetry"),
    ("job_type", "jobType"),
    ("max_attempts", "maxAttempts"),
    ("retry_at", "retryAt"),
    ("source_hint", "sourceHint"),
    ("created_from", "createdFrom"),
    ("created_at", "createdAt"),
];

impl Bookmark {
    /// Returns the bookmark with each member under both of its names.
    pub(crate) fn to_json(&self) -> Value {
        let mut members = json!(self);
        for (name, other) in OTHER_NAMES {
            members[other] = members[name].clone();
        }
        members
    }
}

fn rfc3339(micros: i64) -> String {
    Timestamp::from_micros(micros).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(job_type: Option<&str>, status: Option<&str>) -> Row {
        let url = "https://example.com/".to_owned();
        let (job_type, status) = (job_type.map(str::to_owned), status.map(str::to_owned));
        let error = Some("page_busy: 429".to_owned());
        let tags = "[]".to_owned();
        (
            Uuid::nil(),
            url,
            None,
            tags,
            None,
            None,
            None,
            None,
            None,
            0,
            job_type,
            status,
            Some(1),
            Some(3),
            None,
            error,
        )
    }

    #[test]
    fn every_member_with_two_words_has_both_names() {
        let json = Bookmark::from(row(Some("extraction"), Some("failed"))).to_json();
        let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        // The summary's state is new, so it has one name.
        for name in names.iter().filter(|name| name.contains('_') && **name != "llm_status") {
            let other = OTHER_NAMES.iter().find(|(snake, _)| snake == name).unwrap().1;
            assert_eq!(json[other], json[name], "{name}");
        }
        assert_eq!((&json["status"], &json["state"]), (&json!("retrying"), &json!("retrying")));
    }

    #[test]
    fn the_state_of_a_summary_follows_its_job() {
        for (job_type, status, expected) in [
            (Some("extraction"), Some("queued"), ("processing", "waiting")),
            (Some("extraction"), Some("failed"), ("retrying", "waiting")),
            (Some("extraction"), Some("dead"), ("failed", "failed")),
            (Some("llm_processing"), Some("sending"), ("processing", "processing")),
            (Some("llm_processing"), Some("failed"), ("retrying", "retrying")),
            (Some("llm_processing"), Some("dead"), ("failed", "failed")),
            (Some("llm_processing"), Some("sent"), ("done", "done")),
            // Its message was deleted long after it was done.
            (None, None, ("done", "done")),
        ] {
            let json = Bookmark::from(row(job_type, status)).to_json();
            assert_eq!((&json["status"], &json["llm_status"]), (&json!(expected.0), &json!(expected.1)));
        }
    }
}
