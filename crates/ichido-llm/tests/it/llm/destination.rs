//! Messages as questions to a model, on a real store and over real sockets.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_llm::Fake;
use fake_llm::action::{AnswerShape, ProviderFault, ScriptedAction};
use fake_llm::pace::RetryAfter;
use fake_llm::script::{Script, ScriptRule};
use ichido::destination::{DeliveryAttempt, DeliveryOutcome, Handler, Job};
use ichido::worker::{DestinationConfig, QueueConfig, Worker, WorkerHandle};
use ichido_core::fence::Fence;
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::retry::{Guarantee, Jitter, Retry, Schedule};
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};
use ichido_llm::destination::{Llm, LlmSettings};
use ichido_store::Store;
use ichido_store::message::{Enqueued, MessageFilter, MessageRow, NewMessage, Note, QueueName};
use ichido_store::testing::{postgres, sqlite};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{BOTH, Dialect, assert_understood, form, playing};

pub(crate) const ARTICLES: &str = "articles";
const SUMMARIES: &str = "summaries";
/// How often a condition is checked.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A store, a provider, and the destination between them.
pub(crate) struct DestinationFixture {
    store: Store,
    fake: Fake,
    dialect: Dialect,
    endpoints: &'static [&'static str],
    settings: LlmSettings,
    _file: Option<sqlite::SqliteTestFile>,
}

impl DestinationFixture {
    pub(crate) async fn new(dialect: Dialect, fake: Fake) -> Self {
        let file = sqlite::fresh_file();
        let store = Store::open(&file.url, 4).await.expect("the store opens");
        Self { _file: Some(file), ..Self::on(store, dialect, fake) }
    }

    fn on(store: Store, dialect: Dialect, fake: Fake) -> Self {
        let settings = LlmSettings {
            system: Some("You write for {/reader}.".to_owned()),
            ..LlmSettings::new("Summarise item-{/id}: {/title}", SUMMARIES)
        };
        Self { store, fake, dialect, endpoints: &[""], settings, _file: None }
    }

    pub(crate) fn llm(&self) -> Llm {
        let model = self.dialect.at(&self.fake, self.endpoints);
        self.settings.resolve(model).expect("settings").on(self.store.clone())
    }

    /// Starts a worker that asks the questions and takes the answers.
    fn work(&self, answers: &ReceivedAnswers) -> WorkerHandle {
        let retry = Retry {
            schedule: Schedule::List(vec![Duration::from_millis(1)]),
            jitter: Jitter::None,
            ..Retry::ORDER
        };
        Worker::new(self.store.clone())
            .idle_sleep(Duration::from_millis(10))
            .destination(DestinationConfig::new("model", self.llm()))
            .queue(QueueConfig { retry, ..QueueConfig::new(ARTICLES, "model") })
            .handler(SUMMARIES, answers.handler())
            .start()
            .expect("a worker")
    }

    async fn put(&self) -> Uuid {
        let key = IdempotencyKey::parse("k-1").expect("a key");
        let body = article().to_string().into_bytes();
        let message = NewMessage::new(queue(ARTICLES), "alice", key, body);
        match self.store.messages().enqueue(message).await.expect("it is enqueued") {
            Enqueued::New { id } => id,
            other => panic!("not new: {other:?}"),
        }
    }

    async fn until(&self, id: Uuid, stage: StateName) -> MessageRow {
        loop {
            let row = self.store.messages().get(id).await.expect("a response").expect("it is there");
            if row.status == stage {
                return row;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the messages in the queue for answers.
    async fn answers(&self) -> Vec<MessageRow> {
        let filter = MessageFilter { queue: Some(queue(SUMMARIES)), ..MessageFilter::default() };
        self.store.messages().list(&filter, 10).await.expect("a response")
    }

    pub(crate) fn requests(&self) -> u64 {
        self.fake.seen().all.requests
    }
}

/// Collects what the queue for answers delivers.
#[derive(Clone, Default)]
struct ReceivedAnswers(Arc<Mutex<Vec<Value>>>);

impl ReceivedAnswers {
    fn handler(&self) -> Handler {
        let answers = Arc::clone(&self.0);
        Handler::json(move |job: Job<Value>| {
            answers.lock().expect("no panic while locked").push(job.payload);
            async { Ok(()) }
        })
    }

    async fn first(&self) -> Value {
        loop {
            if let Some(answer) = self.0.lock().expect("no panic while locked").first() {
                return answer.clone();
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

pub(crate) fn article() -> Value {
    json!({"reader": "Ann", "id": "seven", "title": "A \"secret\" knee"})
}

fn queue(name: &str) -> QueueName {
    QueueName::parse(name).expect("a name")
}

/// An attempt at a message of this queue with this body.
pub(crate) fn call(queue_name: &str, body: &Value) -> DeliveryAttempt {
    DeliveryAttempt {
        message: Uuid::from_u128(7),
        queue: queue(queue_name),
        identity: "alice".to_owned(),
        key: IdempotencyKey::parse("out-1").expect("a key"),
        fence: Fence::new(1).expect("a fence"),
        attempt: 1,
        hops: Hops::default(),
        trace: None,
        content_type: "application/json".to_owned(),
        body: body.to_string().into(),
    }
}

fn judged(outcome: DeliveryOutcome) -> (Verdict, Note) {
    match outcome {
        DeliveryOutcome::Judged { verdict, note } => (verdict, note),
        DeliveryOutcome::Snoozed { wait } => panic!("put off for {wait:?}"),
    }
}

fn saying(text: &str) -> Fake {
    playing(ScriptRule::new(ScriptedAction::Say(text.to_owned())))
}

async fn an_answer_is_handed_on(fixture: DestinationFixture) {
    let answers = ReceivedAnswers::default();
    let id = fixture.put().await;
    let worker = fixture.work(&answers);
    fixture.until(id, StateName::Sent).await;
    let answer = answers.first().await;
    worker.stop();
    worker.ended().await;
    assert_eq!((&answer["answer"], &answer["model"]), (&json!("All in a line."), &json!("a-model")));
    assert_eq!(answer["message_id"], json!(id.to_string()));
    assert!(answer["key"].is_string() && answer["usage"]["input"].is_u64(), "{answer}");
    let steps = fixture.store.messages().transitions(id).await.expect("a response");
    let sent = steps.last().expect("it was sent");
    assert!(sent.receipt.is_some() && sent.result_digest.is_some(), "{sent:?}");
    let shown = format!("{steps:?}");
    assert!(!shown.contains("knee") && !shown.contains("in a line"), "no word of either: {shown}");
    assert_understood(&fixture.fake);
    assert_eq!(fixture.requests(), 1);
}

#[tokio::test]
async fn on_sqlite_answer_is_enqueued() {
    for dialect in BOTH {
        an_answer_is_handed_on(DestinationFixture::new(dialect, saying("All in a line.")).await).await;
    }
}

#[tokio::test]
async fn on_postgres_answer_is_enqueued() {
    let database = postgres::fresh_database().await;
    let store = Store::open(&database.url, 4).await.expect("the store opens");
    an_answer_is_handed_on(DestinationFixture::on(store, Dialect::OpenAi, saying("All in a line."))).await;
}

#[tokio::test]
async fn repeated_call_enqueues_one_answer() {
    for dialect in BOTH {
        let fixture = DestinationFixture::new(dialect, saying("One.")).await;
        let (llm, asks) = (fixture.llm(), call(ARTICLES, &article()));
        let (verdict, note) = judged(llm.call(&asks).await);
        assert_eq!((verdict.advice, verdict.code), (Advice::Accept, None));
        // As after a crash before the settle: first the same answer, then a different one.
        let (again, same) = judged(llm.call(&asks).await);
        assert_eq!((again.advice, same.result_digest), (Advice::Accept, note.result_digest), "{dialect:?}");
        fixture.fake.script(Script { answer: Some("Two.".to_owned()), ..Script::default() });
        let (other, dropped) = judged(llm.call(&asks).await);
        assert_eq!((other.advice, other.effect), (Advice::AcceptAsProcessed, Effect::Done), "{dialect:?}");
        assert_eq!(dropped.result_digest, None, "the first answer is the one enqueued");
        assert_eq!((fixture.answers().await.len(), fixture.requests()), (1, 3), "{dialect:?}");
    }
}

#[tokio::test]
async fn answer_has_requested_form() {
    let fake = playing(ScriptRule {
        first: Some(1),
        ..ScriptRule::new(ScriptedAction::Answer(AnswerShape::SchemaMiss))
    });
    let mut fixture = DestinationFixture::new(Dialect::OpenAi, fake).await;
    fixture.settings.form = Some(form());
    let answers = ReceivedAnswers::default();
    let id = fixture.put().await;
    let worker = fixture.work(&answers);
    let row = fixture.until(id, StateName::Sent).await;
    let answer = answers.first().await;
    worker.stop();
    worker.ended().await;
    assert!(answer["answer"]["label"].is_string(), "{answer}");
    assert_eq!((row.attempts, fixture.requests()), (2, 2), "the first was not of the form");
    let steps = fixture.store.messages().transitions(id).await.expect("a response");
    assert!(steps.iter().any(|step| step.code.as_deref() == Some("ANSWER_UNUSABLE")), "{steps:?}");
}

#[tokio::test]
async fn unusable_answer_is_retried_unless_declined() {
    for dialect in BOTH {
        for (shape, advice) in
            [(AnswerShape::CutOff, Advice::RetryAnswer), (AnswerShape::Filtered, Advice::GiveUp)]
        {
            let fixture =
                DestinationFixture::new(dialect, playing(ScriptRule::new(ScriptedAction::Answer(shape))))
                    .await;
            let (verdict, note) = judged(fixture.llm().call(&call(ARTICLES, &article())).await);
            let seen = (verdict.code, verdict.effect, verdict.advice);
            assert_eq!(
                seen,
                (Some(ErrorCode::AnswerUnusable), Effect::Done, advice),
                "{dialect:?} {shape:?}"
            );
            assert!(note.excerpt.is_some() && note.receipt.is_some());
            assert!(fixture.answers().await.is_empty());
        }
    }
}

#[tokio::test]
async fn message_unfit_for_prompt_is_dead_without_a_call() {
    let fixture = DestinationFixture::new(Dialect::OpenAi, saying("Never.")).await;
    let llm = fixture.llm();
    let text = DeliveryAttempt { body: "A secret knee".into(), ..call(ARTICLES, &article()) };
    for (asks, expected) in [
        (call(ARTICLES, &json!({"reader": "Ann", "id": "1"})), "nothing at /title"),
        (call(ARTICLES, &json!({"id": "1", "title": "T"})), "nothing at /reader"),
        (text, "not JSON"),
        (call(SUMMARIES, &article()), "own queue"),
    ] {
        let (verdict, note) = judged(llm.call(&asks).await);
        assert_eq!((verdict.advice, verdict.effect), (Advice::GiveUp, Effect::NotDone));
        let why = note.excerpt.expect("a reason");
        assert!(why.contains(expected) && !why.contains("knee"), "{why}");
    }
    assert_eq!(fixture.requests(), 0);
}

#[tokio::test]
async fn lost_call_is_retried() {
    for dialect in BOTH {
        let lost = ScriptRule { first: Some(1), ..ScriptRule::new(ScriptedAction::DropCompleted) };
        let fixture = DestinationFixture::new(dialect, playing(lost)).await;
        assert_eq!(fixture.llm().promise().guarantee, Guarantee::Idempotent);
        let answers = ReceivedAnswers::default();
        let id = fixture.put().await;
        let worker = fixture.work(&answers);
        let row = fixture.until(id, StateName::Sent).await;
        answers.first().await;
        worker.stop();
        worker.ended().await;
        assert_eq!((row.attempts, fixture.fake.seen().all.completed), (2, 2), "billed twice: {dialect:?}");
        assert_eq!(fixture.answers().await.len(), 1);
    }
}

#[tokio::test]
async fn throttling_endpoint_rests_and_other_takes_over() {
    let throttle = ScriptRule {
        endpoint: Some("/east".to_owned()),
        retry_after: Some(RetryAfter::Seconds(300)),
        ..ScriptRule::new(ScriptedAction::Fail(ProviderFault::Throttle))
    };
    for dialect in BOTH {
        let fixture = DestinationFixture::new(dialect, playing(throttle.clone())).await;
        let fixture = DestinationFixture { endpoints: &["/east", "/west"], ..fixture };
        let (llm, asks) = (fixture.llm(), call(ARTICLES, &article()));
        // Either endpoint is called by chance; the one that throttles is called until it does, and never again.
        let throttled = loop {
            let (verdict, _) = judged(llm.call(&asks).await);
            if verdict.code == Some(ErrorCode::RateLimited) {
                break verdict;
            }
        };
        assert_eq!((throttled.hint, throttled.pace_report()), (None, None), "the other one is free");
        for _ in 0..5 {
            let (verdict, _) = judged(llm.call(&asks).await);
            assert_eq!(verdict.effect, Effect::Done, "{dialect:?}");
        }
        assert_eq!(fixture.fake.seen().endpoints["/east"].requests, 1, "{dialect:?}");
    }
}

#[tokio::test]
async fn single_endpoint_drives_pace_of_destination() {
    let throttle = ScriptRule {
        retry_after: Some(RetryAfter::Seconds(7)),
        ..ScriptRule::new(ScriptedAction::Fail(ProviderFault::Throttle))
    };
    let fixture = DestinationFixture::new(Dialect::Anthropic, playing(throttle)).await;
    let (verdict, note) = judged(fixture.llm().call(&call(ARTICLES, &article())).await);
    assert_eq!(verdict.hint, Some(Duration::from_secs(7)));
    assert_eq!(verdict.pace_report(), Some(PaceReport::Throttled));
    assert_eq!((note.code, note.status), (Some(ErrorCode::RateLimited), Some(429)));
}

#[test]
fn all_settings_errors_are_reported_together() {
    let fake = saying("Never.");
    let wrong = LlmSettings {
        system: Some("For {/reader".to_owned()),
        max_tokens: 0,
        ..LlmSettings::new("The same for all", "")
    };
    let problems = wrong.resolve(Dialect::OpenAi.at(&fake, &[""])).expect_err("much is wrong");
    let places: Vec<&str> = problems.0.iter().map(|problem| problem.place.as_str()).collect();
    assert_eq!(places, ["prompt", "system", "max_tokens", "answers_to"]);
    let right = LlmSettings { answer_attempts: NonZeroU32::MIN, ..LlmSettings::new("{/a}", "b") };
    assert!(right.resolve(Dialect::OpenAi.at(&fake, &[""])).is_ok());
}
