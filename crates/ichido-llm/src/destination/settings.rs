//! What a destination that asks a model is told, and all that can be wrong with it.

use std::num::NonZeroU32;
use std::sync::Arc;

use ichido_core::json::Document;
use ichido_core::retry::Retry;
use ichido_core::settings::Faults;
use ichido_store::message::QueueName;
use serde_json::Value;

use super::template::Template;
use crate::models::{Form, Model, Prompt, Reply};

/// The longest template.
pub const TEMPLATE_BYTES_MAX: usize = 64 << 10;
/// The most places in one template.
pub const PLACES_MAX: usize = 64;
/// The longest prompt that a message may make.
pub const PROMPT_BYTES_MAX: usize = 4 << 20;
/// The most tokens that an answer may be given.
pub const MAX_TOKENS_MAX: u32 = 1_000_000;

/// What a model is asked about each message. [`LlmSettings::new`] has the rest as it is mostly wanted.
#[derive(Clone)]
pub struct LlmSettings {
    /// How the model is to behave. It may have places as the prompt has.
    pub system: Option<String>,
    /// What the model is asked: a text with a place `{/pointer}` wherever something of the message goes, a pointer into its JSON.
    /// A text goes there as it is, everything else as JSON.
    pub prompt: String,
    /// The most tokens of an answer. 1024.
    pub max_tokens: u32,
    /// The JSON that the model is to answer with. None: any text is an answer.
    pub form: Option<Arc<Form>>,
    /// The queue that answers are put into.
    pub answers_to: String,
    /// How often the delivery of an answer is tried. As often as the outbox does.
    pub answer_tries: NonZeroU32,
}

ichido_core::debug_only! {
    /// The words stay out of logs.
    LlmSettings as llm_settings { prompt_bytes: llm_settings.prompt.len(), max_tokens, form, answers_to }
}

/// A destination that asks a model, but for the store that its answers go into.
#[derive(Clone)]
pub struct LlmPlan {
    pub(super) model: Arc<dyn Model>,
    system: Option<Template>,
    prompt: Template,
    max_tokens: u32,
    form: Option<Arc<Form>>,
    pub(super) answers_to: QueueName,
    pub(super) answer_tries: NonZeroU32,
}

ichido_core::debug_only! {
    LlmPlan as llm_plan { model: llm_plan.model.name() }
}

impl LlmSettings {
    /// A prompt, and where its answers go.
    pub fn new(prompt: impl Into<String>, answers_to: impl Into<String>) -> Self {
        Self {
            system: None,
            prompt: prompt.into(),
            max_tokens: 1024,
            form: None,
            answers_to: answers_to.into(),
            answer_tries: Retry::OUTBOX.tries,
        }
    }

    /// The destination but for its store, or everything that is wrong.
    pub fn resolve(&self, model: Arc<dyn Model>) -> Result<LlmPlan, Faults> {
        let mut problems = Faults::default();
        let prompt = problems.check("prompt", Template::parse(&self.prompt));
        if prompt.as_ref().is_some_and(|prompt| !prompt.has_places()) {
            problems.add("prompt", "has no place for anything of the message, so that all would be asked the same; write one, such as {/title}");
        }
        let system = self.system.as_ref().and_then(|text| problems.check("system", Template::parse(text)));
        problems.within("max_tokens", self.max_tokens, 1..=MAX_TOKENS_MAX);
        let answers_to = QueueName::parse(&self.answers_to);
        if answers_to.is_none() {
            problems.add("answers_to", "is no name of a queue");
        }
        let (prompt, answers_to) = problems.or(prompt.zip(answers_to))?;
        Ok(LlmPlan {
            model,
            system,
            prompt,
            max_tokens: self.max_tokens,
            form: self.form.clone(),
            answers_to,
            answer_tries: self.answer_tries,
        })
    }
}

impl LlmPlan {
    /// The queue that answers are put into.
    pub fn answers_to(&self) -> &QueueName {
        &self.answers_to
    }

    /// The same with another number of tries for the delivery of an answer: that of its queue.
    #[must_use]
    pub fn answer_tries(self, answer_tries: NonZeroU32) -> Self {
        Self { answer_tries, ..self }
    }

    /// What the model is asked about a message, or why nothing can be made of it.
    pub(super) fn prompt(&self, body: &[u8]) -> Result<Prompt, String> {
        let document = Document::parse(body, body.len())
            .map_err(|error| format!("the message is no JSON, of which the prompt is made: {error}"))?;
        let filled = |template: &Template| template.fill(&document).map_err(|error| error.to_string());
        Ok(Prompt {
            system: self.system.as_ref().map(filled).transpose()?,
            user: filled(&self.prompt)?,
            max_tokens: self.max_tokens,
            form: self.form.clone(),
        })
    }

    /// The answer itself: JSON of the form, or the text.
    pub(super) fn read(&self, reply: &Reply) -> Result<Value, String> {
        let read = match &self.form {
            Some(form) => form.read_reply(reply).map(|read| read.value),
            None => reply.whole().map(Value::from),
        };
        read.map_err(|unusable| unusable.to_string())
    }
}
