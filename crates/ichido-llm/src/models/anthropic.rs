//! Anthropic's messages.

mod wire;

use std::fmt;
use std::time::Duration;

use ichido_core::settings::Faults;

use super::line::{Line, ServiceSettings};
use super::{Asking, Model, Prompt};

/// The version of the API that is spoken. What is sent and read here is the same in the one that followed it, and servers that imitate
/// the API know this one.
const VERSION: &str = "2023-06-01";

/// A model of Anthropic. Made by [`AnthropicSettings::resolve`].
pub struct Anthropic {
    line: Line,
    tells_form: bool,
}

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
        let fields = [("anthropic-version", VERSION)];
        let line = self.service.resolve("/v1/messages", &fields, |key| ("x-api-key", key.to_owned()))?;
        Ok(Anthropic { line, tells_form: self.tells_form })
    }
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Anthropic").field(&self.line).finish()
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.line.model
    }

    fn endpoints(&self) -> &[String] {
        self.line.endpoints()
    }

    fn time_out(&self) -> Duration {
        self.line.time_out()
    }

    fn ask<'a>(&'a self, endpoint: usize, prompt: &'a Prompt) -> Asking<'a> {
        Box::pin(async move {
            let body = wire::body(&self.line.model, prompt, self.tells_form);
            self.line.ask(endpoint, prompt, &body, wire::reply).await
        })
    }
}
