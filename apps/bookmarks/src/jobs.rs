//! Background jobs: read a page, then summarise it.
//!
//! Each job is a message in the engine's outbox, in a queue with the job's name. The worker claims, retries and gives
//! up by the engine's rules; this module does one attempt. Both jobs are repeatable, because each writes the same to
//! the same bookmark, and only while it is the bookmark's current job.
// SPEC A10, A11.

mod extraction;
mod llm_processing;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido::alert::{AlertRule, RuleChange};
use ichido::dead_letters::{Resolution, record_resolution};
use ichido::prelude::*;
use ichido::store::dead_letter::DeadLetterStep;
use ichido::store::message::{Note, PRIORITY_DEFAULT, QueueName};
use ichido::worker::{AlertReceiver, AlertSettings, DestinationConfig, WorkerConfigErrors};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::llm_processing::Summariser;
use crate::alert_webhook::AlertWebhook;
use crate::app::App;
use crate::bookmarks;
use crate::database::{DbConnection, OwnTransaction, on};
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

/// Reads a page.
#[derive(Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct ReadPage(pub(crate) JobPayload);

/// Summarises a page that was read.
#[derive(Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Summarise(pub(crate) JobPayload);

impl Message for ReadPage {
    const QUEUE: &str = EXTRACTION;

    fn item(&self) -> Option<String> {
        self.0.page()
    }
}

impl Message for Summarise {
    const QUEUE: &str = LLM_PROCESSING;

    fn item(&self) -> Option<String> {
        self.0.page()
    }
}

/// The payload of a job's message.
// SPEC A10.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct JobPayload {
    pub(crate) bookmark_id: Uuid,
    /// The number of the attempt. A stored message never changes, so it has the first; [`JobPayload::counted`] and
    /// the view `failed_jobs` replace it.
    pub(crate) attempt: u32,
    pub(crate) max_attempts: NonZeroU32,
    pub(crate) original_request: OriginalRequest,
    /// When it is its turn: 0 is first.
    #[serde(default = "first_turn", skip_serializing_if = "is_first_turn")]
    pub(crate) priority: u8,
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
        let max_attempts = retry.max_attempts;
        Self {
            bookmark_id,
            attempt: 1,
            max_attempts,
            original_request,
            priority: first_turn(),
            replaces: None,
        }
    }

    /// Returns it with its turn.
    pub(crate) fn at(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// Returns it with the number of this attempt.
    fn counted(self, attempt: u32) -> Self {
        Self { attempt, ..self }
    }

    /// Returns the page that a dead letter, its log line and its notification name. The query may hold secrets.
    fn page(&self) -> Option<String> {
        self.original_request.url.split(['?', '#']).next().map(str::to_owned)
    }
}

const fn first_turn() -> u8 {
    PRIORITY_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_turn(priority: &u8) -> bool {
    *priority == first_turn()
}

/// Returns the turn of a person's save or retry: after one of each other person for each of their own that still waits.
///
/// So somebody who saves or retries a thousand slow pages holds up the own pages, and nobody else's.
pub(crate) async fn turn(connection: &mut DbConnection<'_>, person: &Person) -> Result<u8, sqlx::Error> {
    Ok(first_turn() + bookmarks::waiting(connection, person.id, limits::MAX_TURNS).await?)
}

/// Returns the turn of an imported link by its number in the file: after every save.
pub(crate) fn import_turn(number: usize) -> u8 {
    const FIRST: u8 = first_turn() + limits::MAX_TURNS + 1;
    FIRST.saturating_add(u8::try_from(number / limits::IMPORTS_PER_TURN).unwrap_or(u8::MAX))
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

/// Drafts the message that has a page read: the `number`th of its bookmark.
pub(crate) fn read_page(person: &Person, task: &JobPayload, number: i64) -> Draft {
    let key = format!("{}-{number}", task.bookmark_id);
    let draft = Draft::new(&ReadPage(task.clone())).identity(person.id.to_string()).key(&key);
    let draft = draft.max_attempts(task.max_attempts).priority(task.priority);
    match task.replaces {
        Some(dead) => draft.replaces(dead),
        None => draft,
    }
}

/// Enqueues a message in the open transaction and returns its id.
pub(crate) async fn enqueue(
    connection: &mut DbConnection<'_>,
    app: &App,
    draft: Draft,
) -> Result<Uuid, EnqueueError> {
    let enqueued =
        on!(&app.database, ichido => on!(connection, c => ichido.enqueue_in(&mut **c, draft).await));
    // A key belongs to one job of one bookmark, so any message under it is that job.
    match enqueued {
        Ok(enqueued) => Ok(enqueued.id()),
        Err(EnqueueError::KeyConflict { id }) => Ok(id),
        Err(error) => Err(error),
    }
}

/// Enqueues messages in the open transaction and returns their ids, in the same order.
pub(crate) async fn enqueue_many(
    open: &mut OwnTransaction,
    drafts: Vec<Draft>,
) -> Result<Vec<Uuid>, EnqueueError> {
    let enqueued = on!(open, transaction => transaction.enqueue_many(drafts).await)?;
    Ok(enqueued.into_iter().map(Enqueued::id).collect())
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
    let extraction = Handler::message(move |job| {
        let (app, fetcher) = (Arc::clone(&reading), Arc::clone(&fetcher));
        async move { extraction::run(&app, &fetcher, job).await }
    });
    let summarising = Arc::clone(app);
    let summariser = app.settings.model.as_ref().map(|model| Arc::new(Summariser::new(model)));
    let llm_processing = Handler::message(move |job| {
        let (app, summariser) = (Arc::clone(&summarising), summariser.clone());
        async move { llm_processing::run(&app, summariser.as_deref(), job).await }
    });
    let worker = on!(&app.database, ichido => ichido.worker())
        .name("bookmarks")
        .keep_finished(app.settings.keep_finished)
        .handler(EXTRACTION, extraction.idempotent().timeout(page_within))
        .tune(EXTRACTION, tuned(page_within, &app.settings.retry))
        .handler(LLM_PROCESSING, llm_processing.idempotent().timeout(model_within))
        .tune(LLM_PROCESSING, tuned(model_within, &app.settings.retry))
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
fn tuned(within: Duration, retry: &Retry) -> impl FnOnce(&mut QueueConfig) {
    move |queue| {
        queue.parallelism = limits::PARALLEL.try_into().expect("the limit is above 0");
        queue.retry = retry.clone();
        queue.requeue = Some(true);
        queue.lease = within + LEASE_BESIDES;
    }
}

#[cfg(test)]
mod tests {
    use ichido::retry::Schedule;
    use ichido_store::testing::sqlite;
    use tokio::sync::mpsc;

    use super::*;

    /// A stored message has the number of the first attempt. A handler receives the number of its own.
    // SPEC A10.
    #[tokio::test]
    async fn the_attempt_in_a_payload_counts_up() {
        let file = sqlite::fresh_file();
        let ichido = Ichido::<Sqlite>::connect(&file.url).await.unwrap();
        let retry = Retry { schedule: Schedule::List(vec![Duration::from_millis(1); 2]), ..Retry::JOB };
        let (seen, mut attempts) = mpsc::unbounded_channel();
        let count = move |job: Job<ReadPage>| {
            seen.send(job.payload.0.counted(job.attempt).attempt).unwrap();
            async { Err::<(), _>(JobError::retry("not yet")) }
        };
        let worker = ichido.worker().handle_idempotent(count).tune(EXTRACTION, tuned(BESIDES, &retry));
        let worker = worker.start().unwrap();
        let task = JobPayload::first(Uuid::nil(), "https://example.com/", "k1", &retry);
        ichido.enqueue(Draft::new(&ReadPage(task)).max_attempts(retry.max_attempts)).await.unwrap();
        for attempt in 1..=retry.max_attempts.get() {
            assert_eq!(attempts.recv().await, Some(attempt));
        }
        worker.stop();
        worker.ended().await;
    }
}
