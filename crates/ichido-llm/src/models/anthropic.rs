//! Models behind Anthropic's Messages API.

mod wire;

use ichido_core::settings::ConfigErrors;

use super::http_model::{ApiDialect, HttpModel, ServiceSettings};

/// The API version. The next version is the same for everything sent and read here, and servers that imitate the API
/// know this one.
const VERSION: &str = "2023-06-01";

/// A model of Anthropic, made by [`AnthropicSettings::resolve`].
pub type Anthropic = HttpModel;

/// Settings of a model of Anthropic, or of a server with the same API.
#[derive(Clone, Debug)]
pub struct AnthropicSettings {
    /// Where and how to reach the service.
    pub service: ServiceSettings,
    /// Whether to send the [form](super::AnswerForm) as `output_config.format`. Default: true.
    ///
    /// The answer is validated in any case. Models before Claude 4.5 and servers that imitate the API do not support
    /// it.
    pub tells_form: bool,
}

impl AnthropicSettings {
    /// The base URL of Anthropic's API.
    pub const BASE_URL: &str = "https://api.anthropic.com";

    /// Creates settings with defaults.
    pub fn new(service: ServiceSettings) -> Self {
        Self { service, tells_form: true }
    }

    /// Validates the settings and returns the model, or every problem.
    pub fn resolve(&self) -> Result<Anthropic, ConfigErrors> {
        let tells_form = self.tells_form;
        self.service.resolve(ApiDialect {
            path: "/v1/messages",
            fields: &[("anthropic-version", VERSION)],
            key_field: |key| ("x-api-key", key.to_owned()),
            write: Box::new(move |model, prompt| wire::body(model, prompt, tells_form)),
            read: wire::reply,
        })
    }
}
