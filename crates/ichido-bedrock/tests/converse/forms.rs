//! How a model learns the form of its answer.

use std::sync::Arc;

use fake_llm::Script;
use fake_llm::seen::AskedJson;
use ichido_bedrock::{BedrockSettings, Forms};
use ichido_llm::models::{AnswerForm, Model as _, Prompt};
use serde_json::{Value, json};

use crate::fixture::{assert_requests, prompt, settings};

fn judgement() -> Value {
    json!({
        "type": "object",
        "properties": {
            "label": {"enum": ["ACT_NOW", "THINK", "FYI", "IGNORE"]},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "reason": {"type": "string", "minLength": 1},
        },
        "required": ["label", "confidence", "reason"],
    })
}

async fn asked(forms: Forms, schema: Value) -> Option<AskedJson> {
    let form = Arc::new(AnswerForm::new("judgement", schema).unwrap());
    let fake = fake_llm::start(Script::default());
    let model = BedrockSettings { forms, ..settings(fake.url()) }.resolve().await.unwrap();
    let reply = model.ask(0, &Prompt { form: Some(Arc::clone(&form)), ..prompt() }).await.outcome.unwrap();
    form.read(&reply.text).unwrap();
    assert_requests(&fake, 1);
    fake.seen().last_request.unwrap().asked_json
}

#[tokio::test]
async fn form_is_sent_as_schema_subset_of_bedrock() {
    let asked = asked(Forms::Schema, judgement()).await.unwrap();
    let schema = asked.schema.unwrap();
    assert_eq!(asked.by, "outputConfig");
    assert_eq!(schema["properties"]["confidence"], json!({"type": "number"}));
    assert_eq!(schema["additionalProperties"], false);
}

#[tokio::test]
async fn form_stays_in_prompt_if_configured_or_unsupported() {
    assert_eq!(asked(Forms::Prompt, judgement()).await, None);
    assert_eq!(asked(Forms::Schema, json!({"type": "object"})).await, None);
}
