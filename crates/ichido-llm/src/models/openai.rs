//! Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, Ollama, llama.cpp.

mod wire;

use ichido_core::settings::Faults;

use super::http_model::{ApiDialect, HttpModel, ServiceSettings};

/// A model behind an endpoint that speaks OpenAI's chat completions. Made by [`OpenAiSettings::resolve`].
pub type OpenAi = HttpModel;

ichido_core::words! {
    /// How a model is told of the [form](super::Form) that its answer is to have. The answer is checked against it in any case.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum FormBy {
        /// `response_format` with the JSON Schema: OpenAI, vLLM, Ollama and llama.cpp hold the model to it.
        #[default]
        JsonSchema = "json_schema",
        /// `response_format` of type `json_object`, for servers that know no schema. The schema is put at the end of the system's words.
        JsonObject = "json_object",
        /// Not at all: the prompt says what is wanted.
        Nothing = "nothing",
    }
}

ichido_core::words! {
    /// The member that bounds how long an answer may be.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LimitBy {
        /// `max_completion_tokens`, which OpenAI's newer models insist on. It counts what a model thinks to itself as well.
        MaxCompletionTokens = "max_completion_tokens",
        /// `max_tokens`, which OpenAI has given up. Some servers (Ollama) know this one alone, and pass over the other without a word.
        MaxTokens = "max_tokens",
    }
}

/// A model of OpenAI, or one that is asked in the same way.
#[derive(Clone, Debug)]
pub struct OpenAiSettings {
    /// Where it is asked.
    pub service: ServiceSettings,
    /// How it is told of the form.
    pub form_by: FormBy,
    /// How it is told how long its answer may be. `None`: by `max_completion_tokens` where every endpoint is of OpenAI (`*.openai.com`,
    /// `*.openai.azure.com`), else by `max_tokens`, which every other server knows.
    pub limit_by: Option<LimitBy>,
}

impl OpenAiSettings {
    /// Where OpenAI's own API begins.
    pub const BASE_URL: &str = "https://api.openai.com/v1";

    /// A model at one endpoint.
    pub fn new(service: ServiceSettings) -> Self {
        Self { service, form_by: FormBy::default(), limit_by: None }
    }

    /// The model, or everything that is wrong.
    ///
    /// ```
    /// use ichido_llm::models::{Model, OpenAiSettings, ServiceSettings};
    ///
    /// let service = ServiceSettings {
    ///     api_key: Some("sk-…".replace('…', "0")),
    ///     ..ServiceSettings::new("gpt-5-mini", "http://localhost:8000/v1")
    /// };
    /// let model = OpenAiSettings::new(service).resolve()?;
    /// assert_eq!((model.name(), model.endpoints().len()), ("gpt-5-mini", 1));
    /// # Ok::<(), ichido_core::settings::Faults>(())
    /// ```
    pub fn resolve(&self) -> Result<OpenAi, Faults> {
        let is_openai = self.service.base_urls.iter().all(|url| wire::is_openai(url));
        let by_host = if is_openai { LimitBy::MaxCompletionTokens } else { LimitBy::MaxTokens };
        let (form_by, limit_by) = (self.form_by, self.limit_by.unwrap_or(by_host));
        self.service.resolve(ApiDialect {
            path: "/chat/completions",
            fields: &[],
            key_field: |key| ("authorization", format!("Bearer {key}")),
            write: Box::new(move |model, prompt| wire::body(model, prompt, form_by, limit_by)),
            read: wire::reply,
        })
    }
}
