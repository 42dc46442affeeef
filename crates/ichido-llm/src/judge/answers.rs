//! What is answered already, and who is asking what.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_http::clock;
use ichido_store::Store;
use ichido_store::answer::limits::{FIND_MAX, TOPIC_BYTES_MAX};
use ichido_store::answer::{Answer, Asking, Question, QuestionId};
use ichido_store::error::StoreError;
use uuid::Uuid;

use super::SettingsError;

/// How long a call is believed to be under way when nothing is heard of its run.
const LEASE: Duration = Duration::from_secs(10);
/// How often a run is heard of.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(3);

pub(super) enum AnswerStore {
    /// Kept for good, and shared.
    Store { store: Store, topic: String, holder: Uuid },
    /// For as long as the judge lives.
    InProcess(Mutex<HashMap<QuestionId, Answer>>),
}

impl AnswerStore {
    pub(super) fn in_process() -> Self {
        Self::InProcess(Mutex::default())
    }

    pub(super) fn open(store: Store, topic: &str) -> Result<Self, SettingsError> {
        if topic.is_empty() || TOPIC_BYTES_MAX < topic.len() || topic.contains('\0') {
            return Err(SettingsError::Topic);
        }
        Ok(Self::Store { store, topic: topic.to_owned(), holder: Uuid::now_v7() })
    }

    /// What is known of these questions.
    pub(super) async fn find(
        &self,
        ids: impl Iterator<Item = QuestionId>,
    ) -> Result<HashMap<QuestionId, Question>, StoreError> {
        match self {
            Self::Store { store, .. } => {
                let ids: Vec<_> = ids.collect();
                let mut found = HashMap::new();
                for part in ids.chunks(FIND_MAX) {
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

    /// A call is about to be made; it stands in the store when this returns.
    pub(super) async fn ask(&self, id: QuestionId) -> Result<Asking, StoreError> {
        match self {
            Self::Store { store, topic, holder } => store.answers().ask(id, topic, *holder, LEASE).await,
            Self::InProcess(answers) => Ok(match lock(answers).get(&id) {
                Some(answer) => Asking::Answered(answer.clone()),
                None => Asking::Ours { lost: 0 },
            }),
        }
    }

    /// Keeps an answer; the one that stands comes back.
    pub(super) async fn keep(&self, id: QuestionId, bytes: Vec<u8>, lost: u32) -> Result<Answer, StoreError> {
        match self {
            Self::Store { store, .. } => {
                let kept = store.answers().keep(id, &bytes).await?;
                // Forgotten by a person while it was asked for: it is this run's all the same.
                Ok(kept.unwrap_or_else(|| Answer { bytes, at: clock::now(), lost }))
            }
            Self::InProcess(answers) => {
                let answer = Answer { bytes, at: clock::now(), lost };
                Ok(lock(answers).entry(id).or_insert(answer).clone())
            }
        }
    }

    /// No answer came of a call; `lost` says that nobody knows whether it was made all the same.
    pub(super) async fn fail(&self, id: QuestionId, lost: bool) -> Result<(), StoreError> {
        match self {
            Self::Store { store, holder, .. } => store.answers().fail(id, *holder, lost).await,
            Self::InProcess(_) => Ok(()),
        }
    }

    /// This run lives.
    pub(super) async fn renew(&self) -> Result<(), StoreError> {
        match self {
            Self::Store { store, holder, .. } => store.answers().renew(*holder, LEASE).await,
            Self::InProcess(_) => Ok(()),
        }
    }

    /// What time it is where answers are kept; `None` where that is here.
    pub(super) async fn time(&self) -> Result<Option<Timestamp>, StoreError> {
        match self {
            Self::Store { store, .. } => store.now().await.map(Some),
            Self::InProcess(_) => Ok(None),
        }
    }
}
