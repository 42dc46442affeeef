//! Language models as destinations: `kind = "openai"` and `kind = "anthropic"`.

use std::path::Path;
use std::sync::Arc;

use ichido_core::settings::ConfigErrors;
use ichido_llm::destination::{LlmPlan, LlmSettings};
use ichido_llm::models::{
    AnswerForm, AnthropicSettings, LimitBy, Model, OpenAiSettings, SchemaMode, ServiceSettings,
};

use super::super::document::Section;
use super::PLACEHOLDER;
use crate::redacted;

/// Replaces the URL of a model that could not be parsed.
const PLACEHOLDER_URL: &str = "http://localhost";
/// The name of a form whose file has no name that providers accept.
const FORM_NAME: &str = "answer";

/// Reads a model destination: its address for display, and its plan.
pub(super) fn read(section: &Section<'_>, is_openai: bool) -> Option<(String, LlmPlan)> {
    let model = model(section, is_openai).map_err(|faults| section.report_all(faults)).ok();
    let settings = llm_settings(section);
    // Errors in the prompt settings are reported even if the model's are wrong too.
    let to = model.clone().or_else(placeholder_model)?;
    let plan = settings.resolve(to).map_err(|faults| section.report_all(faults)).ok();
    let (model, plan) = (model?, plan?);
    let urls: Vec<String> = model.endpoints().iter().map(|url| redacted::url(url)).collect();
    section.has("answers_to").then(|| (format!("{} at {}", model.name(), urls.join(", ")), plan))
}

/// Returns a placeholder for a model that could not be parsed.
fn placeholder_model() -> Option<Arc<dyn Model>> {
    let settings = OpenAiSettings::new(ServiceSettings::new(PLACEHOLDER, PLACEHOLDER_URL));
    settings.resolve().ok().map(|model| Arc::new(model) as Arc<dyn Model>)
}

/// Reads the model.
fn model(section: &Section<'_>, is_openai: bool) -> Result<Arc<dyn Model>, ConfigErrors> {
    let service = ServiceSettings {
        base_urls: section.all_resolved("base_urls").unwrap_or_else(|| vec![PLACEHOLDER_URL.to_owned()]),
        api_key: section.resolved("api_key"),
        trusted_roots: section.resolved("trusted_roots"),
        allow_link_local: section.get_or_default("allow_link_local"),
        timeout: section.get_or_default("timeout"),
        connect_timeout: section.get_or_default("connect_timeout"),
        ..ServiceSettings::new(
            section.get("model").unwrap_or_else(|| PLACEHOLDER.to_owned()),
            PLACEHOLDER_URL,
        )
    };
    let schema_mode = section.word("schema_mode", SchemaMode::parse).unwrap_or_default();
    if is_openai {
        let limit_by = section.word("limit_by", LimitBy::parse);
        let settings = OpenAiSettings { schema_mode, limit_by, ..OpenAiSettings::new(service) };
        settings.resolve().map(|model| Arc::new(model) as Arc<dyn Model>)
    } else {
        let tells_form = schema_mode != SchemaMode::None;
        let settings = AnthropicSettings { tells_form, ..AnthropicSettings::new(service) };
        settings.resolve().map(|model| Arc::new(model) as Arc<dyn Model>)
    }
}

/// Reads what the model is asked about each message, and where its answers go.
fn llm_settings(section: &Section<'_>) -> LlmSettings {
    let prompt = section.get("prompt").unwrap_or_else(|| "{/missing}".to_owned());
    let answers_to = section.get("answers_to").unwrap_or_else(|| PLACEHOLDER.to_owned());
    LlmSettings {
        system: section.get("system"),
        max_tokens: section.get_or_default("max_tokens"),
        form: form(section).map(Arc::new),
        ..LlmSettings::new(prompt, answers_to)
    }
}

/// Reads a form from its schema file, and names it after the file.
fn form(section: &Section<'_>) -> Option<AnswerForm> {
    let text = section.resolved("schema")?;
    let path: String = section.get("schema")?;
    let shown = section.source.outside.folder.join(&path);
    let schema = serde_json::from_str(&text)
        .map_err(|error| format!("{} is not valid JSON: {error}; write a JSON Schema", shown.display()));
    let stem = Path::new(&path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default();
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let name: String = stem.chars().filter(|letter| is_fine(*letter)).take(64).collect();
    let name = if name.is_empty() { FORM_NAME.to_owned() } else { name };
    let form = schema.and_then(|schema| {
        AnswerForm::new(name, schema).map_err(|error| format!("{}: {error}", shown.display()))
    });
    section.checked("schema", form)
}
