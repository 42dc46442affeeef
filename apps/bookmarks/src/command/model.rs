//! The model named on the command line, in the same form as for `ichido judge`.

use std::fmt;
use std::sync::Arc;

use ichido::settings::ConfigErrors;
use ichido_llm::models::{AnthropicSettings, Model, OpenAiSettings, ServiceSettings};

use super::CommandError;

/// A model and its provider.
pub(super) struct NamedModel {
    pub(super) model: Arc<dyn Model>,
    provider: &'static str,
    /// Whether it is not at the provider's own URL.
    is_elsewhere: bool,
}

impl NamedModel {
    /// Parses `--llm` and `--llm-url`.
    pub(super) fn new(llm: &str, url: Option<&str>) -> Result<Self, CommandError> {
        let forms = "use openai:MODEL or anthropic:MODEL";
        let parts = llm.split_once(':').filter(|(_, name)| !name.is_empty());
        let (provider, name) =
            parts.ok_or_else(|| format!("--llm: {llm:?} does not name a provider and a model; {forms}"))?;
        let service = |base_url: &str, key: &'static str| {
            let mut service = ServiceSettings::new(name, url.unwrap_or(base_url));
            service.api_key = std::env::var(key).ok().filter(|key| !key.is_empty());
            // A self-hosted server may need no key.
            if service.api_key.is_none() && url.is_none() {
                return Err(format!("--llm: the API key is missing; set {key} in the environment"));
            }
            Ok(service)
        };
        let (provider, model): (_, Arc<dyn Model>) = match provider {
            "openai" => {
                let key = "OPENAI_API_KEY";
                let settings = OpenAiSettings::new(service(OpenAiSettings::BASE_URL, key)?);
                ("openai", Arc::new(settings.resolve().map_err(|problems| render_problems(&problems, key))?))
            }
            "anthropic" => {
                let key = "ANTHROPIC_API_KEY";
                let settings = AnthropicSettings::new(service(AnthropicSettings::BASE_URL, key)?);
                (
                    "anthropic",
                    Arc::new(settings.resolve().map_err(|problems| render_problems(&problems, key))?),
                )
            }
            other => return Err(format!("--llm: unknown provider {other:?}; {forms}").into()),
        };
        Ok(Self { model, provider, is_elsewhere: url.is_some() })
    }
}

/// Renders the problems, each under the name of its flag or variable.
fn render_problems(problems: &ConfigErrors, key: &str) -> String {
    let lines = problems.0.iter().map(|problem| {
        let setting = match problem.place.as_str() {
            setting if setting.starts_with("base_urls") => "--llm-url",
            "api_key" => key,
            _ => "--llm",
        };
        format!("{setting}: {}", problem.what)
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl fmt::Display for NamedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} model {:?}", self.provider, self.model.name())?;
        match self.model.endpoints() {
            [url, ..] if self.is_elsewhere => write!(f, " at {url}"),
            _ => Ok(()),
        }
    }
}
