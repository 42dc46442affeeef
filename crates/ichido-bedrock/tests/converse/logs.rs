//! No log at any level shows a prompt, an answer or a key.
// SPEC B8.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use aws_sdk_bedrockruntime::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_bedrockruntime::types::{ContentBlock, ConversationRole, Message};
use fake_llm::action::{ProviderFault, ScriptedAction};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fixture::{MODEL, SECRET_KEY, TOKEN, ask, fake, model, prompt};

const ANSWER: &str = "The deal of the century is off.";

/// Captures everything logged on this thread, at every level.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<String>>);

struct LogLine<'a>(&'a mut String);

impl Visit for LogLine<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl CapturedLog {
    fn line(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut LogLine<'_>)) {
        let mut log = self.0.lock().unwrap();
        write!(log, "{} {}", metadata.target(), metadata.name()).unwrap();
        record(&mut LogLine(&mut log));
        log.push('\n');
    }
}

impl Subscriber for CapturedLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(span.metadata(), |text| span.record(text));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.line(event.metadata(), |text| event.record(text));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Makes the same call with the bare SDK, which logs freely.
async fn bare_call(url: String) {
    let http = aws_smithy_http_client::Builder::new().build_http();
    let keys = Credentials::new("AKIAIOSFODNN7EXAMPLE", SECRET_KEY, Some(TOKEN.to_owned()), None, "test");
    let config = aws_sdk_bedrockruntime::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(keys)
        .http_client(http)
        .endpoint_url(url);
    let client = aws_sdk_bedrockruntime::Client::from_conf(config.build());
    let said = ContentBlock::Text(prompt().user);
    let message = Message::builder().role(ConversationRole::User).content(said).build().unwrap();
    client.converse().model_id(MODEL).messages(message).send().await.unwrap();
}

#[tokio::test]
async fn logs_contain_no_prompt_answer_or_key() {
    let everything = CapturedLog::default();
    let _listening = tracing::subscriber::set_default(everything.clone());
    let answering = fake(ScriptedAction::Say(ANSWER.to_owned()));
    ask(&model(answering.url()).await).await.unwrap();
    let failing = fake(ScriptedAction::Fail(ProviderFault::Invalid));
    ask(&model(failing.url()).await).await.unwrap_err();
    let logged = everything.0.lock().unwrap().clone();
    for secret in ["Alpha", "You judge", ANSWER, SECRET_KEY, TOKEN, "authorization"] {
        assert!(!logged.contains(secret), "{secret}: {logged}");
    }

    // The capture works: the bare SDK logs the whole response.
    bare_call(answering.url()).await;
    let logged = everything.0.lock().unwrap().clone();
    assert!(logged.contains(ANSWER), "{logged}");
}
