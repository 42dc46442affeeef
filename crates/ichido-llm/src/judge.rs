//! Many questions to a model, under its rate limit: each answered once, or given up on with a reason (SPEC B).
//!
//! Guarantee: there is one outcome for every prompt, in order. An answer that was had once is kept and not asked for again, by whichever run
//! (SPEC B7); a call stands in the store before it is made, so that one whose run died is known as possibly billed. At most
//! [`Settings::parallel`] calls are under way at once, and an item's first comes no sooner than [`Settings::interval`] after it took its
//! place (SPEC B4). The model's limits are shared with whoever else calls it through the same store (SPEC B10). With a deadline, a run
//! ends by it.
//!
//! What is asked is the caller's: a [`Form`] says what answers look like, and they come back as any type that can be read from JSON.
//!
//! ```
//! use std::sync::Arc;
//! use ichido_llm::judge::{Judge, Outcome, Settings, Stop};
//! use ichido_llm::models::{Form, Model, Prompt};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize)]
//! struct Mood {
//!     mood: String,
//! }
//!
//! async fn moods(model: Arc<dyn Model>, letters: &[String]) -> Result<(), Box<dyn std::error::Error>> {
//!     let form = Form::new("mood", json!({
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
//! Start at [`Judge`]. Reading on, `batch` gives out the places, `attempt` is one call, `endpoints` are the model's endpoints, and `next` is
//! what follows a call that came to nothing.

mod answers;
mod attempt;
mod batch;
pub(crate) mod counts;
mod endpoints;
mod next;
mod outcome;
mod settings;
mod stop;

pub use counts::{Counts, describe_metrics};
pub use outcome::{Ended, Judged, Outcome, Report, Why};
pub use settings::{Settings, SettingsError, limits};
pub use stop::Stop;

use std::marker::PhantomData;
use std::sync::Arc;

use ichido::worker::pacing::Clock;
use ichido_core::digest::Digest;
use ichido_store::Store;
use ichido_store::answer::QuestionId;
use ichido_store::error::StoreError;
use serde::de::DeserializeOwned;

use crate::models::{Form, Model, Prompt};
use answers::AnswerStore;
use attempt::Asker;
use batch::BatchRun;
use counts::CallMetrics;
use endpoints::EndpointPool;

/// Asks a model many questions, and reads its answers as `T`.
pub struct Judge<T> {
    asker: Arc<Asker>,
    form: Arc<Form>,
    /// As text, which is a part of every question.
    schema: String,
    reads: PhantomData<fn() -> T>,
}

/// What is known before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Questions that are answered already.
    pub answered: usize,
    /// Questions that a run has to ask. The same question is counted once, however often it is in the batch.
    pub missing: usize,
    /// About how many tokens their prompts have.
    pub tokens: u64,
    /// Calls of earlier runs for those that are missing of which nobody knows what came: they may have been billed.
    pub lost: u64,
}

impl<T: DeserializeOwned> Judge<T> {
    /// One that remembers answers for as long as it lives.
    pub fn new(model: Arc<dyn Model>, form: Form, settings: Settings) -> Result<Self, SettingsError> {
        Self::with(model, form, settings, AnswerStore::in_process(), Arc::new(Clock::alone()), None)
    }

    /// One that keeps answers in a store, until [`Answers::forget`](ichido_store::Answers::forget) is asked to forget those of its topic; and that shares the model's
    /// pace with whoever calls it through that store.
    pub fn with_store(
        model: Arc<dyn Model>,
        form: Form,
        settings: Settings,
        store: &Store,
        topic: &str,
    ) -> Result<Self, SettingsError> {
        let answers = AnswerStore::open(store.clone(), topic)?;
        Self::with(model, form, settings, answers, Arc::new(Clock::new(store.clone())), Some(store))
    }

    fn with(
        model: Arc<dyn Model>,
        form: Form,
        settings: Settings,
        answers: AnswerStore,
        clock: Arc<Clock>,
        store: Option<&Store>,
    ) -> Result<Self, SettingsError> {
        let settings = settings.checked(&*model)?;
        let counting = CallMetrics::new(model.name());
        let endpoints = EndpointPool::new(&*model, settings.pace, store, &clock);
        let asker = Asker { model, settings, answers, endpoints, clock, counting };
        let schema = form.schema().to_string();
        Ok(Self { asker: Arc::new(asker), form: Arc::new(form), schema, reads: PhantomData })
    }

    /// What a run of these prompts would have to ask.
    pub async fn known(&self, prompts: &[Prompt]) -> Result<Known, StoreError> {
        let mut ids: Vec<(QuestionId, u64)> =
            prompts.iter().map(|prompt| (self.question(prompt), prompt.tokens())).collect();
        ids.sort_unstable();
        ids.dedup_by_key(|(id, _)| *id);
        let found = self.asker.answers.find(ids.iter().map(|(id, _)| *id)).await?;
        let is_missing = |id: &QuestionId| found.get(id).is_none_or(|question| question.answer.is_none());
        let missing = || ids.iter().filter(|(id, _)| is_missing(id));
        Ok(Known {
            answered: ids.len() - missing().count(),
            missing: missing().count(),
            tokens: missing().map(|(_, tokens)| tokens).sum(),
            lost: missing()
                .filter_map(|(id, _)| found.get(id))
                .map(|question| u64::from(question.lost))
                .sum(),
        })
    }

    /// Asks what is missing. An error of the store ends the run: what was answered until then is kept, and the same run once more goes on
    /// from there.
    pub async fn run(&self, prompts: Vec<Prompt>, stop: &Stop) -> Result<Report<T>, StoreError> {
        let questions = prompts.into_iter().map(|prompt| {
            let id = self.question(&prompt);
            (id, Prompt { form: Some(Arc::clone(&self.form)), ..prompt })
        });
        let batch = BatchRun::new(Arc::clone(&self.asker), questions, fits::<T>);
        batch.run(stop).await?.read()
    }

    /// What was counted so far, by all runs of this judge.
    pub fn counts(&self) -> Counts {
        self.asker.counting.counts()
    }

    /// All that an answer depends on: the model, the words and the form.
    fn question(&self, prompt: &Prompt) -> QuestionId {
        let parts = [
            self.asker.model.name(),
            prompt.system.as_deref().unwrap_or_default(),
            &prompt.user,
            self.form.name(),
            &self.schema,
        ];
        // Each with its length, so that no two lists of parts are one text.
        let text: String = parts
            .iter()
            .flat_map(|part| [part.len().to_string(), ":".to_owned(), (*part).to_owned()])
            .collect();
        QuestionId::from_bytes(*Digest::of_bytes(text.as_bytes()).as_bytes())
    }
}

/// Whether an answer that is of the form can be read; the error shows nothing of it.
fn fits<T: DeserializeOwned>(value: &serde_json::Value) -> bool {
    T::deserialize(value).is_ok()
}
