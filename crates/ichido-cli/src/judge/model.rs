//! Selects the model, its endpoint and its credentials.

use std::sync::Arc;

use ichido_core::settings::ConfigErrors;
use ichido_llm::models::{Anthropic, AnthropicSettings, Model, OpenAi, OpenAiSettings, ServiceSettings};

use super::Args;

/// Environment variables for keys: every user of the machine can read the command line.
const OPENAI_KEY: &str = "OPENAI_API_KEY";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// The accepted values of `--llm`.
const FORMS: &str = "write openai:MODEL, anthropic:MODEL or bedrock:MODEL";

/// Returns the model that the command line names.
pub(super) async fn resolve(args: &Args, faults: &mut ConfigErrors) -> Option<Arc<dyn Model>> {
    let named = args.llm.as_deref().or_else(|| args.has_bedrock().then_some("bedrock"));
    let Some(named) = named else {
        faults.add("--llm", format!("no model given; {FORMS}"));
        return None;
    };
    let (provider, model) = match named.split_once(':') {
        Some((provider, model)) if !model.is_empty() => (provider, Some(model)),
        Some((provider, _)) => (provider, None),
        None => (named, None),
    };
    match (provider, model) {
        ("openai", Some(model)) => {
            let service = service(args, model, OpenAiSettings::BASE_URL, OPENAI_KEY, faults);
            resolved(OpenAiSettings::new(service).resolve(), faults).map(|model: OpenAi| Arc::new(model) as _)
        }
        ("anthropic", Some(model)) => {
            let service = service(args, model, AnthropicSettings::BASE_URL, ANTHROPIC_KEY, faults);
            resolved(AnthropicSettings::new(service).resolve(), faults)
                .map(|model: Anthropic| Arc::new(model) as _)
        }
        ("bedrock", model) => bedrock(args, model, faults).await,
        ("openai" | "anthropic", None) => {
            faults.add("--llm", format!("{named:?} does not name a model; {FORMS}"));
            None
        }
        _ => {
            faults.add("--llm", format!("{provider:?} is not a known provider; {FORMS}"));
            None
        }
    }
}

fn service(
    args: &Args,
    model: &str,
    base_url: &str,
    key: &str,
    faults: &mut ConfigErrors,
) -> ServiceSettings {
    let mut service = ServiceSettings::new(model, base_url);
    if !args.endpoints.is_empty() {
        service.base_urls.clone_from(&args.endpoints);
    }
    service.api_key = std::env::var(key).ok().filter(|key| !key.is_empty());
    // A self-hosted server may need no key.
    if service.api_key.is_none() && args.endpoints.is_empty() {
        faults.add("--llm", format!("the API key is missing; set {key} in the environment"));
    }
    service.timeout = args.call_timeout;
    service.connect_timeout = service.connect_timeout.min(args.call_timeout);
    service
}

/// Reports each error under its flag.
fn resolved<T>(resolved: Result<T, ConfigErrors>, faults: &mut ConfigErrors) -> Option<T> {
    let flag = |setting: &str| match setting {
        "timeout" | "connect_timeout" => "--call-timeout",
        "model" | "api_key" => "--llm",
        _ => "--endpoint",
    };
    let found = match resolved {
        Ok(model) => return Some(model),
        Err(found) => found,
    };
    for error in found.0 {
        faults.add(flag(&error.place), error.what);
    }
    None
}

#[cfg(feature = "bedrock")]
async fn bedrock(args: &Args, model: Option<&str>, faults: &mut ConfigErrors) -> Option<Arc<dyn Model>> {
    use ichido_bedrock::{BedrockSettings, EndpointSettings};

    let model = model.map(str::to_owned).or_else(|| args.model_id.clone());
    let mut settings = BedrockSettings::new(model.clone().unwrap_or_default());
    settings.model_id = model;
    settings.inference_profile_arn.clone_from(&args.inference_profile_arn);
    settings.timeout = args.call_timeout;
    settings.endpoints = args.endpoints.iter().map(|endpoint| endpoint_of(endpoint)).collect();
    if settings.endpoints.is_empty() {
        let region = std::env::var("AWS_REGION").or_else(|_| std::env::var("AWS_DEFAULT_REGION"));
        match region {
            Ok(region) => settings.endpoints.push(EndpointSettings::region(region)),
            Err(_) => faults.add("--endpoint", "no region given; pass one or more, or set AWS_REGION"),
        }
    }
    resolved(settings.resolve().await, faults).map(|model| Arc::new(model) as _)
}

/// Parses `eu-west-1`, or `eu-west-1=http://127.0.0.1:8080` for a region at another URL.
#[cfg(feature = "bedrock")]
fn endpoint_of(text: &str) -> ichido_bedrock::EndpointSettings {
    let (region, url) = match text.split_once('=') {
        Some((region, url)) => (region, Some(url.to_owned())),
        None => (text, None),
    };
    ichido_bedrock::EndpointSettings { url, ..ichido_bedrock::EndpointSettings::region(region) }
}

#[cfg(not(feature = "bedrock"))]
#[expect(clippy::unused_async, reason = "with the feature it asks for credentials")]
async fn bedrock(_: &Args, _: Option<&str>, faults: &mut ConfigErrors) -> Option<Arc<dyn Model>> {
    let command = "cargo install --locked --path crates/ichido-cli --features bedrock";
    faults.add("--llm", format!("this ichido was built without Bedrock; build it with `{command}`"));
    None
}
