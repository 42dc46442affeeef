//! Settings of a destination that asks a model, and their validation.

use std::num::NonZeroU32;
use std::sync::Arc;

use ichido_core::json::Document;
use ichido_core::retry::Retry;
use ichido_core::settings::ConfigErrors;
use ichido_store::message::QueueName;
use serde_json::Value;

use super::template::Template;
use crate::models::{AnswerForm, Model, Prompt, Reply};

/// Maximum length of a template.
pub const MAX_TEMPLATE_BYTES: usize = 64 << 10;
/// Maximum number of placeholders in one template.
pub const MAX_LOCATIONS: usize = 64;
/// Maximum length of a prompt built from a message.
pub const MAX_PROMPT_BYTES: usize = 4 << 20;
/// Maximum number of tokens that an answer may be allowed.
pub const MAX_TOKENS_LIMIT: u32 = 1_000_000;

/// What a model is asked about each message; [`LlmSettings::new`] sets defaults.
#[derive(Clone)]
pub struct LlmSettings {
    /// The system prompt. It may have placeholders, like the prompt.
    pub system: Option<String>,
    /// The question, with a placeholder `{/pointer}` for each part of the message: a pointer into its JSON. A string is
    /// inserted as it is, everything else as JSON.
    pub prompt: String,
    /// Maximum number of tokens of an answer. Default: 1024.
    pub max_tokens: u32,
    /// The JSON that the model must answer with. `None` accepts any text.
    pub form: Option<Arc<AnswerForm>>,
    /// The queue for answers.
    pub answers_to: String,
    /// Maximum delivery attempts of an answer. Default: that of the outbox.
    pub answer_attempts: NonZeroU32,
}

ichido_core::debug_only! {
    /// Prompts stay out of logs.
    LlmSettings as llm_settings { prompt_bytes: llm_settings.prompt.len(), max_tokens, form, answers_to }
}

/// A destination that asks a model, without the store for its answers.
#[derive(Clone)]
pub struct LlmPlan {
    pub(super) model: Arc<dyn Model>,
    system: Option<Template>,
    prompt: Template,
    max_tokens: u32,
    form: Option<Arc<AnswerForm>>,
    pub(super) answers_to: QueueName,
    pub(super) answer_attempts: NonZeroU32,
}

ichido_core::debug_only! {
    LlmPlan as llm_plan { model: llm_plan.model.name() }
}

impl LlmSettings {
    /// Creates settings from a prompt and the queue for its answers.
    pub fn new(prompt: impl Into<String>, answers_to: impl Into<String>) -> Self {
        Self {
            system: None,
            prompt: prompt.into(),
            max_tokens: 1024,
            form: None,
            answers_to: answers_to.into(),
            answer_attempts: Retry::ORDER.max_attempts,
        }
    }

    /// Validates the settings and returns the plan, or every problem.
    pub fn resolve(&self, model: Arc<dyn Model>) -> Result<LlmPlan, ConfigErrors> {
        let mut problems = ConfigErrors::default();
        let prompt = problems.check("prompt", Template::parse(&self.prompt));
        if prompt.as_ref().is_some_and(|prompt| !prompt.has_placeholders()) {
            problems.add(
                "prompt",
                "has no placeholder, so every message would get the same prompt; add one, such as {/title}",
            );
        }
        let system = self.system.as_ref().and_then(|text| problems.check("system", Template::parse(text)));
        problems.within("max_tokens", self.max_tokens, 1..=MAX_TOKENS_LIMIT);
        let answers_to = QueueName::parse(&self.answers_to);
        if answers_to.is_none() {
            problems.add("answers_to", "is not a valid queue name");
        }
        let (prompt, answers_to) = problems.or(prompt.zip(answers_to))?;
        Ok(LlmPlan {
            model,
            system,
            prompt,
            max_tokens: self.max_tokens,
            form: self.form.clone(),
            answers_to,
            answer_attempts: self.answer_attempts,
        })
    }
}

impl LlmPlan {
    /// Returns the queue for answers.
    pub fn answers_to(&self) -> &QueueName {
        &self.answers_to
    }

    /// Sets the delivery attempts of an answer, to those of its queue.
    #[must_use]
    pub fn answer_attempts(self, answer_attempts: NonZeroU32) -> Self {
        Self { answer_attempts, ..self }
    }

    /// Builds the prompt for a message, or returns why it cannot.
    pub(super) fn prompt(&self, body: &[u8]) -> Result<Prompt, String> {
        let document = Document::parse(body, body.len())
            .map_err(|error| format!("the message is not JSON, which the prompt is made of: {error}"))?;
        let filled = |template: &Template| template.fill(&document).map_err(|error| error.to_string());
        Ok(Prompt {
            system: self.system.as_ref().map(filled).transpose()?,
            user: filled(&self.prompt)?,
            max_tokens: self.max_tokens,
            form: self.form.clone(),
        })
    }

    /// Returns the answer: JSON in the requested form, or the text.
    pub(super) fn read(&self, reply: &Reply) -> Result<Value, String> {
        let read = match &self.form {
            Some(form) => form.read_reply(reply).map(|read| read.value),
            None => reply.whole().map(Value::from),
        };
        read.map_err(|unusable| unusable.to_string())
    }
}
