//! A fake provider, and models of both APIs that call it.

use std::sync::Arc;
use std::time::Duration;

use fake_llm::action::ScriptedAction;
use fake_llm::script::{Script, ScriptRule};
use fake_llm::{Fake, start};
use ichido_llm::models::{
    AnswerForm, AnthropicSettings, CallError, CallReport, Model, OpenAiSettings, Prompt, Reply,
    ServiceSettings,
};
use serde_json::json;

/// The API key of the calls.
pub(crate) const KEY: &str = "sk-not-to-be-shown-0123456789";

/// The APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
}

pub(crate) const BOTH: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

/// Starts a provider that does this with every call.
pub(crate) fn doing(action: ScriptedAction) -> Fake {
    playing(ScriptRule::new(action))
}

pub(crate) fn playing(rule: ScriptRule) -> Fake {
    start(Script { rules: vec![rule], ..Script::default() })
}

impl Dialect {
    /// Returns a model at these endpoints of a provider.
    pub(crate) fn at(self, fake: &Fake, endpoints: &[&str]) -> Arc<dyn Model> {
        self.model(self.service(fake, endpoints))
    }

    pub(crate) fn service(self, fake: &Fake, endpoints: &[&str]) -> ServiceSettings {
        let under = match self {
            Self::OpenAi => "/v1",
            Self::Anthropic => "",
        };
        let base_urls = endpoints.iter().map(|endpoint| format!("{}{endpoint}{under}", fake.url())).collect();
        let service = ServiceSettings::new("a-model", "http://nowhere.example");
        ServiceSettings {
            base_urls,
            api_key: Some(KEY.to_owned()),
            timeout: Duration::from_secs(30),
            ..service
        }
    }

    pub(crate) fn model(self, service: ServiceSettings) -> Arc<dyn Model> {
        match self {
            Self::OpenAi => Arc::new(OpenAiSettings::new(service).resolve().expect("settings")),
            Self::Anthropic => Arc::new(AnthropicSettings::new(service).resolve().expect("settings")),
        }
    }

    /// Makes one call to a provider.
    pub(crate) async fn ask(self, fake: &Fake) -> CallReport {
        self.at(fake, &[""]).ask(0, &prompt()).await
    }

    pub(crate) async fn reply(self, fake: &Fake) -> Reply {
        self.ask(fake).await.outcome.unwrap_or_else(|call_error| panic!("{self:?}: {}", call_error.why))
    }

    pub(crate) async fn call_error(self, fake: &Fake) -> CallError {
        self.ask(fake).await.outcome.map_or_else(|call_error| call_error, |_| panic!("{self:?}: it answered"))
    }
}

pub(crate) fn form() -> Arc<AnswerForm> {
    let schema = json!({
        "type": "object",
        "properties": {
            "label": {"type": "string"},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "reason": {"type": "string"},
        },
        "required": ["label", "confidence", "reason"],
        "additionalProperties": false,
    });
    Arc::new(AnswerForm::new("judgement", schema).expect("a schema"))
}

pub(crate) fn prompt() -> Prompt {
    Prompt {
        system: Some("You judge articles.".to_owned()),
        user: "Judge item-one, which is about a secret knee.".to_owned(),
        max_tokens: 200,
        form: Some(form()),
    }
}

/// Asserts that the provider understood every request.
pub(crate) fn assert_understood(fake: &Fake) {
    assert_eq!(fake.seen().format_faults, []);
}
