//! Anthropic's messages.

mod wire;

use ichido_core::settings::Faults;

use super::http_model::{ApiDialect, HttpModel, ServiceSettings};

/// The version of the API that is spoken. What is sent and read here is the same in the one that followed it, and servers that imitate
/// the API know this one.
const VERSION: &str = "2023-06-01";

/// A model of Anthropic. Made by [`AnthropicSettings::resolve`].
pub type Anthropic = HttpModel;

/// A model of Anthropic, or one that is asked in the same way.
#[derive(Clone, Debug)]
pub struct AnthropicSettings {
    /// Where it is asked.
    pub service: ServiceSettings,
    /// Whether it is told of the [form](super::Form), by `output_config.format`; the answer is checked against it in any case. Models
    /// before Claude 4.5 and servers that imitate the API do not know it. Yes.
    pub tells_form: bool,
}

impl AnthropicSettings {
    /// Where Anthropic's own API begins.
    pub const BASE_URL: &str = "https://api.anthropic.com";

    /// A model at one endpoint.
    pub fn new(service: ServiceSettings) -> Self {
        Self { service, tells_form: true }
    }

    /// The model, or everything that is wrong.
    pub fn resolve(&self) -> Result<Anthropic, Faults> {
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
