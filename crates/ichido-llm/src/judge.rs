//! Asks a model many questions under its rate limit; each gets one answer or a reason.
//!
//! Guarantee: every prompt gets one outcome, in order. An answer is stored once and never asked for again, by any run.
//! One that was cut off is asked for once more with twice the tokens.
//! A call is recorded in the store before it is made, so a call whose run died is known as possibly billed. At most
//! [`Settings::parallel`] calls are in flight, and an item's first call comes no sooner than [`Settings::interval`]
//! after it took its slot. A pause that the provider asks for holds back this model at this endpoint and nothing else,
//! for at least as long as it asked, up to [`limits::MAX_PAUSE`]. The model's limits are shared with everything else that calls it through the same store. A
//! run with a deadline ends by it.
//!
//! The caller decides what is asked: a [`AnswerForm`] describes the answers, and they are deserialized into any type.
//!
//! ```
//! use std::sync::Arc;
//! use ichido_llm::judge::{Judge, Outcome, Settings, Stop};
//! use ichido_llm::models::{AnswerForm, Model, Prompt};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize)]
//! struct Mood {
//!     mood: String,
//! }
//!
//! async fn moods(model: Arc<dyn Model>, letters: &[String]) -> Result<(), Box<dyn std::error::Error>> {
//!     let form = AnswerForm::new("mood", json!({
//!         "type": "object",
//!         "properties": { "mood": { "enum": ["glad", "sad"] } },
//!         "required": ["mood"],
//!     }))?;
//!     let prompts = letters.iter().map(|letter| Prompt {
//!         system: Some("Say the mood of the letter.".to_owned()),
//!         user: letter.clone(),
//!         max_tokens: 50,
//!         form: None, // The judge's own.
//!     });
//!     let judge = Judge::<Mood>::new(model, form, Settings::DEFAULT)?;
//!     let report = judge.run(prompts.collect(), &Stop::new()).await?;
//!     for outcome in &report.outcomes {
//!         match outcome {
//!             Outcome::Judged(judged) => println!("{}", judged.answer.mood),
//!             Outcome::Fallback(why) => println!("not judged: {why}"),
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Start at [`Judge`]. `batch` assigns slots, `attempt` makes one call, `endpoints` chooses the endpoint, and `next`
//! decides what to do after a failed call.
// SPEC B, B7, B4, B10.

mod answers;
mod attempt;
mod batch;
mod counts;
mod endpoints;
mod given_up;
mod next;
mod outcome;
mod pause;
mod settings;
mod stop;

pub use counts::{CallMetrics, Counts, RETRY_RATIO, describe_metrics};
pub use endpoints::{EndpointStatus, paced_model};
pub use outcome::{FallbackReason, JudgeEnd, JudgeReport, JudgedAnswer, Outcome};
pub use pause::JudgePause;
pub use settings::{Settings, SettingsError, limits};
pub use stop::Stop;

use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use ichido::worker::pacing::Clock;
use ichido_core::digest::Digest;
use ichido_store::Store;
use ichido_store::answer::QuestionId;
use ichido_store::error::StoreError;
use serde::de::DeserializeOwned;

use crate::models::{AnswerForm, Model, Prompt};
use answers::AnswerStore;
use attempt::Asker;
use batch::BatchRun;
use endpoints::EndpointPool;
use given_up::GivenUpItems;

/// Asks a model many questions and deserializes its answers as `T`.
pub struct Judge<T> {
    asker: Arc<Asker>,
    form: Arc<AnswerForm>,
    /// The schema as text, which is part of every question.
    schema: String,
    reads: PhantomData<fn() -> T>,
}

/// What a run would have to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownJudgements {
    /// Questions that already have an answer.
    pub answered: usize,
    /// Questions that a run has to ask. A question that appears several times in the batch counts once.
    pub missing: usize,
    /// Approximate number of tokens of their prompts.
    pub tokens: u64,
    /// Calls of earlier runs for the missing questions whose outcome is unknown: they may have been billed.
    pub lost: u64,
}

impl KnownJudgements {
    /// Assumes that nothing was asked before. A question that appears several times counts once.
    pub fn unasked(prompts: &[Prompt]) -> Self {
        let mut seen = HashSet::new();
        let asked = prompts.iter().filter(|prompt| seen.insert((&prompt.system, &prompt.user)));
        let tokens: Vec<u64> = asked.map(Prompt::tokens).collect();
        Self { answered: 0, missing: tokens.len(), tokens: tokens.iter().sum(), lost: 0 }
    }
}

impl<T: DeserializeOwned> Judge<T> {
    /// Creates a judge that stores answers for as long as it lives.
    pub fn new(model: Arc<dyn Model>, form: AnswerForm, settings: Settings) -> Result<Self, SettingsError> {
        Self::with(model, form, settings, AnswerStore::in_process(), Arc::new(Clock::local()), None)
    }

    /// Creates a judge that stores answers in a store and shares the model's pace.
    ///
    /// Answers stay until [`Answers::delete`](ichido_store::Answers::delete) deletes those of its topic. The pace is
    /// shared with everything that calls the model through that store.
    pub fn with_store(
        model: Arc<dyn Model>,
        form: AnswerForm,
        settings: Settings,
        store: &Store,
        topic: &str,
    ) -> Result<Self, SettingsError> {
        let answers = AnswerStore::open(store.clone(), topic)?;
        Self::with(model, form, settings, answers, Arc::new(Clock::new(store.clone())), Some(store))
    }

    fn with(
        model: Arc<dyn Model>,
        form: AnswerForm,
        settings: Settings,
        answers: AnswerStore,
        clock: Arc<Clock>,
        store: Option<&Store>,
    ) -> Result<Self, SettingsError> {
        let settings = settings.checked(&*model)?;
        let metrics = CallMetrics::new(model.name(), store);
        let endpoints = EndpointPool::new(&*model, settings.pace, store, &clock);
        let given_up = GivenUpItems::default();
        let asker = Asker { model, settings, answers, endpoints, clock, metrics, given_up };
        let schema = form.schema().to_string();
        Ok(Self { asker: Arc::new(asker), form: Arc::new(form), schema, reads: PhantomData })
    }

    /// Returns what a run of these prompts would have to ask. Also reads whether the model is paused.
    pub async fn known(&self, prompts: &[Prompt]) -> Result<KnownJudgements, StoreError> {
        let mut ids: Vec<(QuestionId, u64)> =
            prompts.iter().map(|prompt| (self.question(prompt), prompt.tokens())).collect();
        ids.sort_unstable();
        ids.dedup_by_key(|(id, _)| *id);
        let found = self.asker.answers.find(ids.iter().map(|(id, _)| *id)).await?;
        self.asker.sync_clock().await?;
        self.asker.endpoints.refresh().await;
        let is_missing = |id: &QuestionId| found.get(id).is_none_or(|question| question.answer.is_none());
        let missing = || ids.iter().filter(|(id, _)| is_missing(id));
        Ok(KnownJudgements {
            answered: ids.len() - missing().count(),
            missing: missing().count(),
            tokens: missing().map(|(_, tokens)| tokens).sum(),
            lost: missing()
                .filter_map(|(id, _)| found.get(id))
                .map(|question| u64::from(question.lost))
                .sum(),
        })
    }

    /// Asks the missing questions.
    ///
    /// A store error ends the run. Answers received until then are stored, and the same run again continues from there.
    pub async fn run(&self, prompts: Vec<Prompt>, stop: &Stop) -> Result<JudgeReport<T>, StoreError> {
        let questions = prompts.into_iter().map(|prompt| {
            let id = self.question(&prompt);
            (id, Prompt { form: Some(Arc::clone(&self.form)), ..prompt })
        });
        let batch = BatchRun::new(Arc::clone(&self.asker), questions, fits::<T>);
        batch.run(stop).await?.read()
    }

    /// Returns the pause that holds back every call, as far as is known here; `None` if some call could be made.
    pub fn paused(&self) -> Option<JudgePause> {
        self.asker.endpoints.paused()
    }

    /// Returns what is known here of each endpoint.
    pub fn endpoints(&self) -> Vec<EndpointStatus> {
        self.asker.endpoints.status()
    }

    /// Returns the time between two calls that was learned from refusals, if every endpoint refused too many.
    pub fn learned_spacing(&self) -> Option<Duration> {
        self.asker.endpoints.learned_spacing()
    }

    /// Takes the items that were given up since the last time, by the index of their prompt.
    pub fn take_given_up(&self) -> Vec<(usize, FallbackReason)> {
        self.asker.given_up.take()
    }

    /// Returns the counts of all runs of this judge so far.
    pub fn counts(&self) -> Counts {
        self.asker.metrics.counts()
    }

    /// Returns the id of a question: a digest of the model, the prompt and the form.
    fn question(&self, prompt: &Prompt) -> QuestionId {
        let parts = [
            self.asker.model.name(),
            prompt.system.as_deref().unwrap_or_default(),
            &prompt.user,
            self.form.name(),
            &self.schema,
        ];
        // Each part has its length, so no two lists of parts give the same text.
        let text: String = parts
            .iter()
            .flat_map(|part| [part.len().to_string(), ":".to_owned(), (*part).to_owned()])
            .collect();
        QuestionId::from_bytes(*Digest::of_bytes(text.as_bytes()).as_bytes())
    }
}

/// Returns whether an answer in the requested form can be deserialized.
fn fits<T: DeserializeOwned>(value: &serde_json::Value) -> bool {
    T::deserialize(value).is_ok()
}
