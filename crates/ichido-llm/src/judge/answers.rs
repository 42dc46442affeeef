//! Stores answers, and records which run asks which question.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_http::clock;
use ichido_store::Store;
use ichido_store::answer::limits::{MAX_FIND, MAX_TOPIC_BYTES};
use ichido_store::answer::{AskOutcome, Question, QuestionId, StoredAnswer};
use ichido_store::error::StoreError;
use uuid::Uuid;

use super::SettingsError;

/// How long a call counts as in flight without a sign of life from its run.
const LEASE: Duration = Duration::from_secs(10);
/// How often a run renews its lease.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(3);

pub(super) enum AnswerStore {
    /// Stored permanently, and shared between runs.
    Store { store: Store, topic: String, holder: Uuid },
    /// Kept for as long as the judge lives.
    InProcess(Mutex<HashMap<QuestionId, StoredAnswer>>),
}

impl AnswerStore {
    pub(super) fn in_process() -> Self {
        Self::InProcess(Mutex::default())
    }

    pub(super) fn open(store: Store, topic: &str) -> Result<Self, SettingsError> {
        if topic.is_empty() || MAX_TOPIC_BYTES < topic.len() || topic.contains('\0') {
            return Err(SettingsError::Topic);
        }
        Ok(Self::Store { store, topic: topic.to_owned(), holder: Uuid::now_v7() })
    }

    /// Returns what is known of these questions.
    pub(super) async fn find(
        &self,
        ids: impl Iterator<Item = QuestionId>,
    ) -> Result<HashMap<QuestionId, Question>, StoreError> {
        match self {
            Self::Store { store, .. } => {
                let ids: Vec<_> = ids.collect();
                let mut found = HashMap::new();
                for part in ids.chunks(MAX_FIND) {
                    let questions = store.answers().find(part).await?;
                    found.extend(questions.into_iter().map(|question| (question.id, question)));
                }
                Ok(found)
            }
            Self::InProcess(answers) => {
                let answers = lock(answers);
                let known = |id| {
                    let answer = answers.get(&id)?.clone();
                    Some((id, Question { id, lost: answer.lost, answer: Some(answer), held_until: None }))
                };
                Ok(ids.filter_map(known).collect())
            }
        }
    }

    /// Records that a call is about to be made. The record is durable when this returns.
    pub(super) async fn ask(&self, id: QuestionId) -> Result<AskOutcome, StoreError> {
        match self {
            Self::Store { store, topic, holder } => store.answers().ask(id, topic, *holder, LEASE).await,
            Self::InProcess(answers) => Ok(match lock(answers).get(&id) {
                Some(answer) => AskOutcome::Replay(answer.clone()),
                None => AskOutcome::Run { lost: 0 },
            }),
        }
    }

    /// Stores an answer and returns the one that is stored.
    pub(super) async fn keep(
        &self,
        id: QuestionId,
        bytes: Vec<u8>,
        lost: u32,
    ) -> Result<StoredAnswer, StoreError> {
        match self {
            Self::Store { store, .. } => {
                let kept = store.answers().store(id, &bytes).await?;
                // A person deleted it while it was asked for; this run keeps its answer all the same.
                Ok(kept.unwrap_or_else(|| StoredAnswer { bytes, at: clock::now(), lost }))
            }
            Self::InProcess(answers) => {
                let answer = StoredAnswer { bytes, at: clock::now(), lost };
                Ok(lock(answers).entry(id).or_insert(answer).clone())
            }
        }
    }

    /// Records a call without an answer; `lost` says that its outcome is unknown.
    pub(super) async fn fail(&self, id: QuestionId, lost: bool) -> Result<(), StoreError> {
        match self {
            Self::Store { store, holder, .. } => store.answers().fail(id, *holder, lost).await,
            Self::InProcess(_) => Ok(()),
        }
    }

    /// Renews the lease of this run.
    pub(super) async fn renew(&self) -> Result<(), StoreError> {
        match self {
            Self::Store { store, holder, .. } => store.answers().renew(*holder, LEASE).await,
            Self::InProcess(_) => Ok(()),
        }
    }

    /// Returns the store's time, or `None` without a store.
    pub(super) async fn time(&self) -> Result<Option<Timestamp>, StoreError> {
        match self {
            Self::Store { store, .. } => store.now().await.map(Some),
            Self::InProcess(_) => Ok(None),
        }
    }
}
