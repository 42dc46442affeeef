//! A language model that messages are put to: `kind = "openai"` and `kind = "anthropic"`.

use std::path::Path;
use std::sync::Arc;

use ichido_core::settings::Faults;
use ichido_llm::destination::{LlmPlan, LlmSettings, MAX_TOKENS_MAX};
use ichido_llm::models::{AnthropicSettings, Form, FormBy, LimitBy, Model, OpenAiSettings, ServiceSettings};

use super::super::document::Section;
use super::super::outside::Outside;
use crate::redacted;

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenAi,
    Anthropic,
}

/// How a model is told of the form, as the file names it.
const FORMS: [(&str, FormBy); 3] =
    [("json_schema", FormBy::JsonSchema), ("json_object", FormBy::JsonObject), ("nothing", FormBy::Nothing)];
/// The same of those who know a schema or nothing.
const FORMS_OF_ANTHROPIC: [(&str, FormBy); 2] =
    [("json_schema", FormBy::JsonSchema), ("nothing", FormBy::Nothing)];
/// How a model is told how long its answer may be.
const LIMITS: [(&str, LimitBy); 2] =
    [("max_completion_tokens", LimitBy::MaxCompletionTokens), ("max_tokens", LimitBy::MaxTokens)];
/// What a form is called whose file has no name that a provider takes.
const FORM_NAME: &str = "answer";
/// Stands for what is missing, so that the rest is judged all the same. It was said, and so leads to no configuration.
const STAND_IN: &str = "missing";

/// Reads what there is of a model in a destination's section: where it is, for people, and what is asked of it.
pub(super) fn read(
    section: &mut Section<'_>,
    dialect: Dialect,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> (String, Option<LlmPlan>) {
    let model = model(section, dialect, outside, faults);
    let asked = asked(section, outside, faults);
    // What is wrong with the questions is said whatever is wrong with the model.
    let to = model.clone().or_else(nobody);
    let plan = to.map(|model| asked.resolve(model).map_err(|problems| say(&problems, section, faults)));
    match (model, plan) {
        (Some(model), Some(Ok(plan))) if section.has("answers_to") => (
            format!(
                "{} at {}",
                model.name(),
                model.endpoints().iter().map(|url| redacted::url(url)).collect::<Vec<_>>().join(", ")
            ),
            Some(plan),
        ),
        _ => (String::new(), None),
    }
}

/// Stands for a model that was not understood.
fn nobody() -> Option<Arc<dyn Model>> {
    let settings = OpenAiSettings::new(ServiceSettings::new(STAND_IN, "http://localhost"));
    settings.resolve().ok().map(|model| Arc::new(model) as Arc<dyn Model>)
}

/// The model itself.
fn model(
    section: &mut Section<'_>,
    dialect: Dialect,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> Option<Arc<dyn Model>> {
    let service = service(section, dialect, outside, faults);
    let resolved: Result<Arc<dyn Model>, Faults> = match dialect {
        Dialect::OpenAi => {
            let form_by = section.word("form_by", &FORMS, faults).unwrap_or_default();
            let limit_by = section.word("limit_by", &LIMITS, faults);
            section.holds("form_by", "\"json_schema\"");
            let settings = OpenAiSettings { form_by, limit_by, ..OpenAiSettings::new(service) };
            settings.resolve().map(|model| Arc::new(model) as Arc<dyn Model>)
        }
        Dialect::Anthropic => {
            let form_by = section.word("form_by", &FORMS_OF_ANTHROPIC, faults).unwrap_or_default();
            section.holds("form_by", "\"json_schema\"");
            let tells_form = form_by != FormBy::Nothing;
            let settings = AnthropicSettings { tells_form, ..AnthropicSettings::new(service) };
            settings.resolve().map(|model| Arc::new(model) as Arc<dyn Model>)
        }
    };
    resolved.map_err(|problems| say(&problems, section, faults)).ok()
}

fn service(
    section: &mut Section<'_>,
    dialect: Dialect,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> ServiceSettings {
    let model = needed(section, "model", "say which, as its provider names it: model = \"…\"", faults);
    let base_url = match dialect {
        Dialect::OpenAi => OpenAiSettings::BASE_URL,
        Dialect::Anthropic => AnthropicSettings::BASE_URL,
    };
    let mut service = ServiceSettings::new(model.unwrap_or(STAND_IN), base_url);
    section.holds("base_urls", format_args!("[{base_url:?}]"));
    if let Some(urls) = urls(section, outside, faults) {
        service.base_urls = urls;
    }
    let place = section.place("api_key");
    if let Some(reference) = section.text("api_key", faults) {
        service.api_key = faults.check(&place, outside.secret(reference));
    }
    let place = section.place("trusted_roots");
    if let Some(path) = section.text("trusted_roots", faults) {
        service.trusted_roots = faults.check(&place, outside.read(path));
    }
    let hosts = section.texts("allow_link_local", faults).unwrap_or_default();
    service.allow_link_local = hosts.into_iter().map(str::to_owned).collect();
    section.holds("allow_link_local", "[]");
    service.time_out = section.time("time_out", faults).unwrap_or(service.time_out);
    // A whole that was shortened shortens the part of which nothing was said.
    let connect = section.time("connect_time_out", faults);
    service.connect_time_out = connect.unwrap_or(service.connect_time_out.min(service.time_out));
    section.holds_time("time_out", service.time_out);
    section.holds_time("connect_time_out", service.connect_time_out);
    service
}

fn urls(section: &mut Section<'_>, outside: &Outside<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let place = section.place("base_urls");
    let texts = section.texts("base_urls", faults)?;
    let count = texts.len();
    let urls: Vec<String> =
        texts.into_iter().filter_map(|text| faults.check(&place, outside.resolve(text))).collect();
    (urls.len() == count).then_some(urls)
}

/// What it is asked about each message, and where its answers go.
fn asked(section: &mut Section<'_>, outside: &Outside<'_>, faults: &mut Faults) -> LlmSettings {
    let prompt = needed(
        section,
        "prompt",
        "say what is asked, with a place for each part of the message: prompt = \"Summarise {/text}\"",
        faults,
    );
    let answers_to =
        needed(section, "answers_to", "name the queue that answers are put into: answers_to = \"…\"", faults);
    let mut asked = LlmSettings::new(prompt.unwrap_or("{/missing}"), answers_to.unwrap_or(STAND_IN));
    asked.system = section.text("system", faults).map(ToOwned::to_owned);
    if let Some(most) = section.count("max_tokens", 1..=MAX_TOKENS_MAX, faults) {
        asked.max_tokens = most;
    }
    section.holds("max_tokens", asked.max_tokens);
    let place = section.place("form");
    if let Some(path) = section.text("form", faults) {
        asked.form = faults.check(&place, form(path, outside)).map(Arc::new);
    }
    asked
}

/// A form by the file of its schema, whose name it has.
fn form(path: &str, outside: &Outside<'_>) -> Result<Form, String> {
    let shown = outside.folder.join(path);
    let schema = serde_json::from_str(&outside.read(path)?)
        .map_err(|error| format!("{} is no JSON: {error}; write a JSON Schema", shown.display()))?;
    let stem = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default();
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let name: String = stem.chars().filter(|letter| is_fine(*letter)).take(64).collect();
    let name = if name.is_empty() { FORM_NAME.to_owned() } else { name };
    Form::new(name, schema).map_err(|error| format!("{}: {error}", shown.display()))
}

fn needed<'a>(
    section: &mut Section<'a>,
    name: &'static str,
    mend: &str,
    faults: &mut Faults,
) -> Option<&'a str> {
    if !section.has(name) {
        faults.add(section.place(name), format!("is missing; {mend}"));
    }
    section.text(name, faults)
}

/// The settings have the same names in the file.
fn say(problems: &Faults, section: &Section<'_>, faults: &mut Faults) {
    for problem in &problems.0 {
        faults.add(section.place_within(&problem.place), problem.what.clone());
    }
}
