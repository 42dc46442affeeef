//! Models behind OpenAI's chat completions: OpenAI itself, vLLM, Ollama, llama.cpp.

mod wire;

use ichido_core::settings::ConfigErrors;

use super::http_model::{ApiDialect, HttpModel, ServiceSettings};

/// A model behind OpenAI's chat completions, made by [`OpenAiSettings::resolve`].
pub type OpenAi = HttpModel;

ichido_core::words! {
    /// How a model learns the [form](super::AnswerForm) of its answer. The answer is validated in any case.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum SchemaMode {
        /// `response_format` with the JSON Schema: OpenAI, vLLM, Ollama and llama.cpp enforce it.
        #[default]
        JsonSchema = "json_schema",
        /// `response_format` of type `json_object`, for servers without schemas. The schema is appended to the system
        /// prompt.
        JsonObject = "json_object",
        /// Not at all: the prompt says what is wanted.
        None = "none",
    }
}

ichido_core::words! {
    /// The request member that limits the length of an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LimitBy {
        /// `max_completion_tokens`, which OpenAI's newer models require. It includes reasoning tokens.
        MaxCompletionTokens = "max_completion_tokens",
        /// `max_tokens`, which OpenAI has deprecated. Some servers (Ollama) know only this one and silently ignore the
        /// other.
        MaxTokens = "max_tokens",
    }
}

/// Settings of a model of OpenAI, or of a server with the same API.
#[derive(Clone, Debug)]
pub struct OpenAiSettings {
    /// Where and how to reach the service.
    pub service: ServiceSettings,
    /// How the model learns the form.
    pub schema_mode: SchemaMode,
    /// The member that limits the answer's length.
    ///
    /// `None` means `max_completion_tokens` if every endpoint is OpenAI's (`*.openai.com`, `*.openai.azure.com`), else
    /// `max_tokens`, which every other server knows.
    pub limit_by: Option<LimitBy>,
}

impl OpenAiSettings {
    /// The base URL of OpenAI's API.
    pub const BASE_URL: &str = "https://api.openai.com/v1";

    /// Creates settings with defaults.
    pub fn new(service: ServiceSettings) -> Self {
        Self { service, schema_mode: SchemaMode::default(), limit_by: None }
    }

    /// Validates the settings and returns the model, or every problem.
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
    /// # Ok::<(), ichido_core::settings::ConfigErrors>(())
    /// ```
    pub fn resolve(&self) -> Result<OpenAi, ConfigErrors> {
        let is_openai = self.service.base_urls.iter().all(|url| wire::is_openai(url));
        let by_host = if is_openai { LimitBy::MaxCompletionTokens } else { LimitBy::MaxTokens };
        let (schema_mode, limit_by) = (self.schema_mode, self.limit_by.unwrap_or(by_host));
        self.service.resolve(ApiDialect {
            path: "/chat/completions",
            fields: &[],
            key_field: |key| ("authorization", format!("Bearer {key}")),
            write: Box::new(move |model, prompt| wire::body(model, prompt, schema_mode, limit_by)),
            read: wire::reply,
        })
    }
}
