//! `ichido worker` with a language model as destination: a question goes in, and its answer is delivered like any
//! message.

use std::time::Duration;

use fake_llm::action::{ProviderFault, ScriptedAction};
use fake_llm::script::{Script, ScriptRule};
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::series::SeriesSubject;

use super::database::{OutboxDatabase, POLL_EVERY, both_databases};
use super::program::{WorkerProcess, ichido, run};
use crate::folder;
use crate::mock_broker::broker::MockBroker;
use ichido::worker::OutboundKey;
use ichido_store::message::{MessageFilter, QueueName};

const KEY: &str = "sk-not-to-be-shown-0123456789";

fn config(database: &OutboxDatabase, mock: &MockBroker, fake: &fake_llm::Fake) -> String {
    format!(
        "[store]\nurl = \"{}\"\n[worker]\nidle_sleep = \"20ms\"\n\
         [queues.articles]\ndestination = \"model\"\nretry = {{ waits = [\"1ms\"] }}\n\
         [queues.summaries]\ndestination = \"broker\"\nmax_retries = 3\n\
         [destinations.broker]\nkind = \"mock\"\nurl = \"http://{}/orders\"\n\
         [destinations.model]\nkind = \"openai\"\nmodel = \"a-model\"\nbase_urls = [\"{}/v1\"]\n\
         api_key = \"file:model.key\"\nsystem = \"You write for {{/reader}}.\"\n\
         prompt = \"Summarise item-{{/id}}: {{/title}}\"\nschema = \"summary.schema.json\"\n\
         answers_to = \"summaries\"\n",
        database.url,
        mock.address,
        fake.url(),
    )
}

both_databases! {
    /// Throttled once, lost once, then answered; a question that cannot be asked is dead, with the reason.
    // Spec: A10, B1, B8.
    #[test]
    async fn model_response_is_delivered_once(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&[]));
        let once = |action| ScriptRule { first: Some(1), ..ScriptRule::new(action) };
        let rules = vec![once(ScriptedAction::Fail(ProviderFault::Throttle)), once(ScriptedAction::DropCompleted)];
        let fake = fake_llm::start(Script { rules, ..Script::default() });
        folder.write("ichido.toml", &config(&database, &mock, &fake));
        folder.write("model.key", KEY);
        let schema = r#"{"type":"object","required":["label"],"properties":{"label":{"type":"string"}}}"#;
        folder.write("summary.schema.json", schema);
        let mut worker = WorkerProcess::start(folder.path(), &["--log", "info"]);
        let article = r#"{"reader":"Ann","id":"seven","title":"A secret knee"}"#;
        for (key, body) in [("k-1", article), ("k-2", r#"{"reader":"Ann","id":"8"}"#)] {
            let sent = run(folder.path(), &["send", "articles", "--key", key, "--identity", "ann"], body);
            assert_eq!(sent.code, Some(0), "{sent:?}");
        }
        while database.count(&[StateName::Sent]).await != 2 || database.count(&[StateName::Dead]).await != 1 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        // The answer's key derives from the question's outbound key, and the broker saw it once.
        let queue = |name: &str| QueueName::parse(name).unwrap();
        let asked = OutboundKey::Derived.key_for(&queue("articles"), "ann", &IdempotencyKey::parse("k-1").unwrap());
        let answer = IdempotencyKey::derived("llm-answer", &[asked.as_str().as_bytes()]);
        let outbound = OutboundKey::Derived.key_for(&queue("summaries"), "ann", &answer);
        assert_eq!(mock.counts(outbound.as_str()).await, (1, 1));
        let rows = database.store.messages().list(&MessageFilter::default(), 9).await.unwrap();
        let summary = rows.iter().find(|row| row.queue == "summaries").expect("an answer");
        assert_eq!((summary.max_attempts, summary.identity.as_str()), (4, "ann"), "as its queue says");
        let body: serde_json::Value = serde_json::from_slice(&summary.request).unwrap();
        assert!(body["answer"]["label"].is_string(), "{body}");
        let dead = rows.iter().find(|row| row.status == StateName::Dead).expect("a dead letter");
        assert!(format!("{dead:?}").contains("nothing at /title"), "{dead:?}");
        assert_eq!(fake.seen().format_faults, []);
        assert_eq!(fake.seen().all.requests, 3);
        let billed = worker.metric("ichido_llm_possibly_billed_twice_total", &[("model", "a-model")]).await;
        assert_eq!(billed, Some(1.0));
        worker.signal("TERM");
        let (code, log) = worker.wait().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains(KEY) && !log.contains("knee"), "{log}");
        let counted = database.store.series().by_model(Duration::from_hours(1)).await.unwrap();
        let counts = &counted[&SeriesSubject::Model("a-model".to_owned())];
        assert_eq!((counted.len(), counts.executed, counts.billed_twice), (1, 3, 1), "{counts:?}");
        assert!(0 < counts.tokens_in && 0 < counts.tokens_out, "{counts:?}");
    }

    /// Errors are found before a worker starts, and show no secret.
    #[test]
    async fn a_configuration_with_a_model_is_checked_and_shown(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&[]));
        let fake = fake_llm::start(Script::default());
        folder.write("ichido.toml", &config(&database, &mock, &fake));
        folder.write("model.key", KEY);
        folder.write("summary.schema.json", "{\"type\": 7}");
        let refused = run(folder.path(), &["config", "check"], "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("destinations.model.schema") && refused.err.contains("not a JSON Schema"), "{refused:?}");
        folder.write("summary.schema.json", "{\"type\": \"object\"}");
        let checked = ichido(folder.path()).args(["config", "check"]).output().unwrap();
        let text = String::from_utf8(checked.stdout).unwrap();
        assert!(checked.status.success() && text.contains("may be repeated"), "{text}");
        assert!(!text.contains(KEY), "{text}");
    }
}
