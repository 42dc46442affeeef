//! Models behind OpenAI's chat completions: OpenAI itself, vLLM, Ollama, llama.cpp.

mod family;
mod wire;

use ichido_core::settings::ConfigErrors;

use super::http_model::{ApiDialect, HttpModel, ServiceSettings};
use family::ModelFamily;

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
    /// `None` means `max_completion_tokens` if every endpoint is OpenAI's (`*.openai.com`, `*.openai.azure.com`) or the
    /// model has the name of one of OpenAI's reasoning models, which a gateway may pass on; else `max_tokens`, which
    /// every other server knows.
    pub limit_by: Option<LimitBy>,
    /// Whether to ask for little reasoning (`reasoning_effort` of `low`).
    ///
    /// `None` means yes if the name is that of a model that takes it: `gpt-5`, `gpt-5-mini`, `o3`, `gpt-oss-20b` and so
    /// on, but not `gpt-4.1`, `gpt-5-chat-latest` or `gpt-5-pro`, which refuse it.
    pub reasons_little: Option<bool>,
}

impl OpenAiSettings {
    /// The base URL of OpenAI's API.
    pub const BASE_URL: &str = "https://api.openai.com/v1";

    /// Creates settings with defaults.
    pub fn new(service: ServiceSettings) -> Self {
        Self { service, schema_mode: SchemaMode::default(), limit_by: None, reasons_little: None }
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
        let family = ModelFamily::of(&self.service.model);
        let is_openai = self.service.base_urls.iter().all(|url| wire::is_openai(url));
        let usual = if is_openai || family.is_limited_by_completion() {
            LimitBy::MaxCompletionTokens
        } else {
            LimitBy::MaxTokens
        };
        let dialect = wire::Dialect {
            schema_mode: self.schema_mode,
            limit_by: self.limit_by.unwrap_or(usual),
            reasons_little: self.reasons_little.unwrap_or(family.takes_reasoning_effort()),
        };
        self.service.resolve(ApiDialect {
            path: "/chat/completions",
            fields: &[],
            key_field: |key| ("authorization", format!("Bearer {key}")),
            write: Box::new(move |model, prompt| wire::body(model, prompt, dialect)),
            read: wire::reply,
        })
    }
}
