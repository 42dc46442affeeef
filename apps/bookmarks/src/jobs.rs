//! Background jobs: read a page, then summarise it.
//!
//! Each job is a message in the engine's outbox, in a queue with the job's name. The worker claims, retries and gives
//! up by the engine's rules; this module does one attempt. Both jobs are repeatable, because each writes the same to
//! the same bookmark, and only while it is the bookmark's current job.
// SPEC A10, A11.

mod extraction;
mod llm_processing;

use std::sync::Arc;
use std::time::Duration;

use ichido::dead_letters::{Resolution, record_resolution};
use ichido::destination::{Handler, Job};
use ichido::worker::{
    AlertReceiver, AlertSettings, DestinationConfig, QueueConfig, Worker, WorkerConfigErrors, WorkerHandle,
};
use ichido_core::alert::{AlertRule, RuleChange};
use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use ichido_store::Store;
use ichido_store::dead_letter::DeadLetterStep;
use ichido_store::error::StoreError;
use ichido_store::message::{NewMessage, Note, QueueName, RequestBody};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::llm_processing::Summariser;
use crate::alert_webhook::AlertWebhook;
use crate::app::App;
use crate::database::DbConnection;
use crate::fetch::Fetcher;
use crate::people::Person;
use crate::settings::limits;

pub(crate) const EXTRACTION: &str = "extraction";
const LLM_PROCESSING: &str = "llm_processing";
/// The receiver of alerts, and its destination.
const ALERTS: &str = "webhook";
/// What an attempt takes in addition to the call: reading the page, and the database.
const BESIDES: Duration = Duration::from_secs(20);
/// How much longer than an attempt its lease is, so the messages of a dead process come back soon.
const LEASE_BESIDES: Duration = Duration::from_secs(10);

/// The payload of a job's message.
// SPEC A10.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct JobPayload {
    pub(crate) bookmark_id: Uuid,
    /// The number of the attempt. A stored message never changes, so it has the first; [`counted`] and the view
    /// `failed_jobs` replace it.
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    pub(crate) original_request: OriginalRequest,
    /// The dead message that it replaces, after a person's retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<Uuid>,
}

/// The request that started the job.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct OriginalRequest {
    pub(crate) url: String,
    pub(crate) idempotency_key: String,
}

impl JobPayload {
    pub(crate) fn first(bookmark_id: Uuid, url: &str, idempotency_key: &str, retry: &Retry) -> Self {
        let original_request =
            OriginalRequest { url: url.to_owned(), idempotency_key: idempotency_key.to_owned() };
        let max_attempts = retry.max_attempts.get();
        Self { bookmark_id, attempt: 1, max_attempts, original_request, replaces: None }
    }
}

/// Returns the job with the number of this attempt in its payload.
fn counted(mut job: Job<JobPayload>) -> Job<JobPayload> {
    job.payload.attempt = job.attempt;
    job
}

pub(crate) fn extraction_queue() -> QueueName {
    QueueName::parse(EXTRACTION).expect("the name has only letters")
}

fn llm_processing_queue() -> QueueName {
    QueueName::parse(LLM_PROCESSING).expect("the name has only letters and _")
}

/// Returns both queues, in the order in which a bookmark passes through them.
pub(crate) fn queues() -> [QueueName; 2] {
    [extraction_queue(), llm_processing_queue()]
}

/// Builds the message that has a page read: the `number`th of its bookmark.
pub(crate) fn read_page(person: &Person, task: &JobPayload, number: i64, retry: &Retry) -> NewMessage {
    message(
        extraction_queue(),
        &person.id.to_string(),
        &format!("{}-{number}", task.bookmark_id),
        task,
        retry,
    )
}

fn message(queue: QueueName, identity: &str, key: &str, task: &JobPayload, retry: &Retry) -> NewMessage {
    let key = IdempotencyKey::parse(key).expect("a UUID and a number are visible ASCII");
    let body = serde_json::to_vec(task).expect("text and numbers are JSON");
    let body = RequestBody::new("application/json", body, CanonicalForm::default());
    let body = body.expect("what was just written as JSON can be read");
    NewMessage {
        max_attempts: retry.max_attempts,
        replacement_of: task.replaces,
        // A dead letter, its log line and its notification name the page. The query may hold secrets.
        item: task.original_request.url.split(['?', '#']).next().map(str::to_owned),
        ..NewMessage::new(queue, identity, key, body)
    }
}

/// Enqueues a message in the open transaction and returns its id.
pub(crate) async fn enqueue(
    connection: &mut DbConnection<'_>,
    store: &Store,
    message: NewMessage,
) -> Result<Uuid, StoreError> {
    // A key belongs to one job of one bookmark, so any message under it is that job.
    match connection.enqueue(store, message).await {
        Ok(enqueued) => Ok(enqueued.id()),
        Err(StoreError::KeyConflict { id }) => Ok(id),
        Err(error) => Err(error),
    }
}

/// Closes the dead letter of a job that needs no more attention. The letter is kept; without one, this does nothing.
pub(crate) async fn close_letter(store: &Store, job: Uuid, note: &Note) -> Result<(), StoreError> {
    let letters = store.dead_letters().find(&[job]).await?;
    let closed = store.dead_letters().discard(&[job], note).await?;
    if let ([letter], [DeadLetterStep::Now(_)]) = (&letters[..], &closed[..]) {
        record_resolution(&letter.queue, Resolution::Replaced, letter.since, store.now().await?);
    }
    Ok(())
}

/// Starts the worker on both queues. It sweeps expired keys, rescues the messages of dead processes, and watches for
/// alerts.
// SPEC A5, A15.
pub(crate) fn start(app: &Arc<App>) -> Result<WorkerHandle, WorkerConfigErrors> {
    let fetcher = Arc::new(Fetcher::new(&app.settings));
    let page_within = app.settings.page_within + BESIDES;
    let model_within = app.settings.model.as_ref().map_or(Duration::ZERO, |model| model.timeout()) + BESIDES;
    let reading = Arc::clone(app);
    let extraction = Handler::json(move |job| {
        let (app, fetcher) = (Arc::clone(&reading), Arc::clone(&fetcher));
        async move { extraction::run(&app, &fetcher, counted(job)).await }
    });
    let summarising = Arc::clone(app);
    let summariser = app.settings.model.as_ref().map(|model| Arc::new(Summariser::new(model)));
    let llm_processing = Handler::json(move |job| {
        let (app, summariser) = (Arc::clone(&summarising), summariser.clone());
        async move { llm_processing::run(&app, summariser.as_deref(), counted(job)).await }
    });
    let worker = Worker::new(app.store.clone())
        .name("bookmarks")
        .keep_finished(app.settings.keep_finished)
        .destination(DestinationConfig::new(EXTRACTION, extraction.idempotent().timeout(page_within)))
        .queue(queue(EXTRACTION, page_within, &app.settings.retry))
        .destination(DestinationConfig::new(
            LLM_PROCESSING,
            llm_processing.idempotent().timeout(model_within),
        ))
        .queue(queue(LLM_PROCESSING, model_within, &app.settings.retry))
        .alerts(alerts(app.settings.alert_webhook.as_ref()));
    let worker = match &app.settings.alert_webhook {
        Some(webhook) => worker.destination(DestinationConfig::new(ALERTS, webhook.destination.clone())),
        None => worker,
    };
    worker.start()
}

/// One page that is missing or may not be read is not an incident: this is expected, and the person who saved it sees
/// it. Many in an hour are one. A failed summary is always one, because the operator must fix it. Each is logged in any
/// case.
// SPEC A15, E5.
fn alerts(webhook: Option<&AlertWebhook>) -> AlertSettings {
    let receiver = webhook.map(|webhook| AlertReceiver {
        name: ALERTS.to_owned(),
        destination: ALERTS.to_owned(),
        format: webhook.format,
    });
    let mut alerts = AlertSettings { receivers: receiver.into_iter().collect(), ..AlertSettings::default() };
    alerts.rules.change_for(AlertRule::DeadLetter, EXTRACTION, RuleChange::Off);
    alerts
}

/// An operator may requeue its dead letters, because the work is repeatable.
// SPEC D17.
fn queue(name: &str, within: Duration, retry: &Retry) -> QueueConfig {
    QueueConfig {
        parallelism: limits::PARALLEL.try_into().expect("the limit is above 0"),
        retry: retry.clone(),
        requeue: Some(true),
        lease: within + LEASE_BESIDES,
        ..QueueConfig::new(name, name)
    }
}

#[cfg(test)]
mod tests {
    use ichido::destination::JobError;
    use ichido_core::retry::Schedule;
    use ichido_store::testing::sqlite;
    use tokio::sync::mpsc;

    use super::*;

    /// A stored message has the number of the first attempt. A handler receives the number of its own.
    // SPEC A10.
    #[tokio::test]
    async fn the_attempt_in_a_payload_counts_up() {
        let file = sqlite::fresh_file();
        let store = Store::open(&file.url, limits::MAX_CONNECTIONS).await.unwrap();
        let retry = Retry { schedule: Schedule::List(vec![Duration::from_millis(1); 2]), ..Retry::JOB };
        let (seen, mut attempts) = mpsc::unbounded_channel();
        let handler = Handler::json(move |job| {
            seen.send(counted(job).payload.attempt).unwrap();
            async { Err::<(), _>(JobError::retry("not yet")) }
        });
        let worker = Worker::new(store.clone())
            .destination(DestinationConfig::new(EXTRACTION, handler.idempotent().timeout(BESIDES)))
            .queue(queue(EXTRACTION, BESIDES, &retry))
            .start()
            .unwrap();
        let task = JobPayload::first(Uuid::nil(), "https://example.com/", "k1", &retry);
        let message = message(extraction_queue(), "ann", "job-1", &task, &retry);
        store.messages().enqueue(message).await.unwrap();
        for attempt in 1..=retry.max_attempts.get() {
            assert_eq!(attempts.recv().await, Some(attempt));
        }
        worker.stop();
        worker.ended().await;
    }
}
