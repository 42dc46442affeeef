//! Dead letters, and a person's retry.
// SPEC A11, A12, E4.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use ichido::lifecycle::StateName;
use ichido::store::message::{DeadLetterState, MessageFilter};
use ichido::time::Timestamp;
use serde_json::{Value, json};

use super::fixture::{ApiFixture, ApiRequest, RunningService, look_again};
use super::pages::{PageGate, Pages, http_response, story};
use crate::both_databases;

impl RunningService {
    fn reprocess(&self, id: &str) -> ApiRequest {
        self.ask(Method::POST, &format!("/v1/bookmarks/{id}/reprocess"))
    }

    /// Returns the total number of jobs.
    async fn jobs(&self) -> usize {
        self.store().messages().list(&MessageFilter::default(), 100).await.unwrap().len()
    }

    /// Skips the backoff between attempts until a bookmark has failed permanently.
    async fn until_failed(&self, id: &str) -> Value {
        let mut skipped_after = Value::Null;
        loop {
            let bookmark = self.bookmark(id).await;
            match bookmark["state"].as_str().unwrap() {
                "failed" => return bookmark,
                // Once per attempt: a second jump could end the lease of the next one.
                "retrying" if skipped_after != bookmark["attempt"] => {
                    skipped_after = bookmark["attempt"].clone();
                    self.pass(Duration::from_mins(5));
                }
                _ => (),
            }
            look_again().await;
        }
    }
}

both_databases! {
    /// The view has a row for each dead letter, with all that it keeps.
    // SPEC A11.
    #[test]
    async fn a_dead_letter_is_a_row_of_failed_jobs(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| if path == "/gone" { http_response("410 Gone", "", b"") } else { http_response("502 Oh", "", b"") }).await;
        let gone = service.saved("k1", &pages.url("/gone")).await;
        service.until(&gone, "failed").await;
        let columns = "SELECT CAST(bookmark_id AS text), job_type, error_message, CAST(retryable AS text), CAST(payload AS text), CAST(failed_at AS text), CAST(id AS text) FROM failed_jobs";
        let row = service.row(columns).await;
        let text = |column: usize| row[column].clone().unwrap();
        assert_eq!((text(0), text(1)), (gone, "extraction".to_owned()));
        assert_eq!(text(2), "page_not_found: the site returned 410");
        assert!(["0", "false"].contains(&text(3).as_str()), "{row:?}");
        let payload: Value = serde_json::from_str(&text(4)).unwrap();
        assert_eq!(payload["original_request"], json!({ "url": pages.url("/gone"), "idempotency_key": "k1" }));
        assert_eq!((&payload["attempt"], &payload["max_attempts"]), (&json!(1), &json!(3)));
        let letter = service.store().dead_letters().list(DeadLetterState::Dead, None, None, 1).await.unwrap().remove(0);
        assert_eq!(text(6), letter.message.id.to_string(), "the id is the one that the engine's tools show");
        let failed_at = Timestamp::parse(&text(5).replace(' ', "T").replace("+00", "Z")).unwrap();
        assert!(failed_at.as_micros().abs_diff(letter.since.as_micros()) <= 1_000, "{row:?}, {letter:?}");

        let failing = service.saved("k2", &pages.url("/failing")).await;
        assert_eq!(service.until_failed(&failing).await["can_retry"], true);
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs").await, 2);
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs WHERE retryable").await, 1);
    }

    /// The payload is JSON to the database, and its attempt is the one that failed. The stored message keeps its bytes.
    // SPEC A11.
    #[test]
    async fn the_payload_of_a_failed_job_has_the_true_attempt(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|_, _| http_response("502 Oh", "", b"")).await;
        let id = service.saved("k1", &pages.url("/")).await;
        service.until_failed(&id).await;
        let attempt = if service.store().is_sqlite() {
            "SELECT json_extract(payload, '$.attempt') FROM failed_jobs WHERE json_valid(payload)"
        } else {
            "SELECT (payload -> 'attempt')::bigint FROM failed_jobs WHERE pg_typeof(payload) = 'jsonb'::regtype"
        };
        assert_eq!(service.number(attempt).await, 3);
        let stored = service.store().messages().list(&MessageFilter::default(), 1).await.unwrap().remove(0);
        let stored: Value = serde_json::from_slice(&stored.request).unwrap();
        assert_eq!(stored["attempt"], 1);
    }

    /// A failure is listed once, and only while nobody has acted on it: not while its replacement waits either.
    // SPEC A11.
    #[test]
    async fn a_replaced_failure_is_not_listed(fixture: ApiFixture) {
        let service = fixture.work().await;
        let (release, gate) = PageGate::shut();
        let pages = Pages::start(move |_, count| {
            if 1 < count {
                gate.pass();
            }
            http_response("404 Not Found", "", b"")
        })
        .await;
        let id = service.saved("k1", &pages.url("/")).await;
        service.until(&id, "failed").await;
        let first = service.row("SELECT CAST(id AS text) FROM failed_jobs").await;
        assert_eq!(service.reprocess(&id).send().await.status, StatusCode::ACCEPTED);
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs").await, 0, "it is being retried");
        release.send(()).unwrap();
        service.until(&id, "failed").await;
        let second = service.row("SELECT CAST(id AS text) FROM failed_jobs").await;
        assert_ne!(first, second, "the new failure is listed, and the old one is not");
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs").await, 1);
    }

    /// A bookmark fails with a reason, a person retries it, and it is done.
    // SPEC A12.
    #[test]
    async fn a_retry_by_a_person_starts_over_and_succeeds(fixture: ApiFixture) {
        let service = fixture.work().await;
        let fixed = Arc::new(AtomicBool::new(false));
        let is_fixed = Arc::clone(&fixed);
        let pages = Pages::start(move |_, _| if is_fixed.load(Ordering::SeqCst) { story() } else { http_response("500 Oh", "", b"") }).await;
        let id = service.saved("k1", &pages.url("/")).await;
        let failed = service.until_failed(&id).await;
        assert_eq!((&failed["errorMessage"], &failed["canRetry"], &failed["attempt"]), (&json!("The site has a problem at the moment"), &json!(true), &json!(3)));
        fixed.store(true, Ordering::SeqCst);
        let answer = service.reprocess(&id).send().await;
        assert_eq!((answer.status, answer.text("/state")), (StatusCode::ACCEPTED, "processing".to_owned()));
        let done = service.until(&id, "done").await;
        assert_eq!((&done["title"], &done["errorMessage"], &done["canRetry"]), (&json!("The fox"), &Value::Null, &json!(false)));
        let open = service.store().dead_letters().list(DeadLetterState::Dead, None, None, 10).await.unwrap();
        assert!(open.is_empty(), "the dead letter is closed");
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs").await, 0);
        let messages = service.store().messages().list(&MessageFilter::default(), 10).await.unwrap();
        let dead = messages.iter().find(|message| message.status == StateName::Dead).unwrap();
        assert!(messages.iter().any(|message| message.replacement_of == Some(dead.id)), "the new message names the one it replaced");
    }

    /// Without a key there is at most one open job; with a key, the same response again.
    // SPEC A12.
    #[test]
    async fn repeated_retries_leave_one_open_job(fixture: ApiFixture) {
        let service = fixture.start().await;
        let id = service.saved("k1", "https://example.com/").await;
        let presses: Vec<_> = (0..8).map(|_| tokio::spawn(service.reprocess(&id).send_while_busy())).collect();
        for press in presses {
            assert_eq!(press.await.unwrap().status, StatusCode::ACCEPTED);
        }
        assert_eq!(service.jobs().await, 1, "the first job is open");

        let message = service.store().messages().list(&MessageFilter::default(), 1).await.unwrap().remove(0);
        let note = ichido::store::message::Note::default();
        let cancelled = service.store().messages().cancel(message.id, &note).await.unwrap();
        assert_eq!(cancelled, ichido::store::message::CancelOutcome::Cancelled);
        let cancelled = service.bookmark(&id).await;
        assert_eq!((&cancelled["state"], &cancelled["errorCode"], &cancelled["canRetry"]), (&json!("failed"), &json!("job_cancelled"), &json!(true)));
        let presses: Vec<_> = (0..8).map(|_| tokio::spawn(service.reprocess(&id).send_while_busy())).collect();
        for press in presses {
            assert_eq!(press.await.unwrap().status, StatusCode::ACCEPTED);
        }
        assert_eq!(service.jobs().await, 2, "all eight retries make one job");

        let first = service.reprocess(&id).header("idempotency-key", "again").send().await;
        let second = service.reprocess(&id).header("idempotency-key", "again").send().await;
        assert_eq!((first.status, &first.body), (second.status, &second.body));
        assert_eq!(second.header("idempotency-replayed"), Some("true"));
        assert_eq!(service.jobs().await, 2);
    }

    /// A job that waits for its next attempt runs at once when a person asks, as one job that replaces the other.
    // SPEC A12.
    #[test]
    async fn a_retry_by_a_person_does_not_wait_for_the_schedule(fixture: ApiFixture) {
        let service = fixture.work().await;
        let (release, gate) = PageGate::shut();
        let pages = Pages::start(move |_, count| {
            if count == 1 {
                return http_response("500 Oh", "", b"");
            }
            gate.pass();
            story()
        })
        .await;
        let id = service.saved("k1", &pages.url("/")).await;
        service.until(&id, "retrying").await;
        let presses: Vec<_> = (0..8).map(|press| {
            let reprocess = service.reprocess(&id);
            // In the layer's transaction and in its own.
            let reprocess = if press % 2 == 0 { reprocess } else { reprocess.header("idempotency-key", "again") };
            tokio::spawn(reprocess.send_while_busy())
        }).collect();
        for press in presses {
            assert_eq!(press.await.unwrap().status, StatusCode::ACCEPTED);
        }
        release.send(()).unwrap();
        assert_eq!(service.until(&id, "done").await["title"], "The fox");
        assert_eq!(pages.requests("/"), 2);
        let messages = service.store().messages().list(&MessageFilter::default(), 10).await.unwrap();
        let reading = messages.iter().filter(|message| message.queue.as_str() == "extraction");
        let mut stages: Vec<StateName> = reading.map(|message| message.status).collect();
        stages.sort_by_key(|stage| *stage == StateName::Sent);
        assert_eq!(stages, [StateName::Cancelled, StateName::Sent]);
    }

    #[test]
    async fn deleting_a_bookmark_cancels_its_waiting_job(fixture: ApiFixture) {
        let service = fixture.start().await;
        let id = service.saved("k1", "https://example.com/").await;
        service.ask(Method::DELETE, &format!("/v1/bookmarks/{id}")).send().await;
        let messages = service.store().messages().list(&MessageFilter::default(), 10).await.unwrap();
        assert_eq!(messages.iter().map(|message| message.status).collect::<Vec<_>>(), [StateName::Cancelled]);
    }

    #[test]
    async fn deleting_a_bookmark_closes_its_dead_letter(fixture: ApiFixture) {
        let service = fixture.work_as(|settings| settings.may_reach = |_| false).await;
        let id = service.saved("k1", "http://127.0.0.1/").await;
        service.until(&id, "failed").await;
        service.ask(Method::DELETE, &format!("/v1/bookmarks/{id}")).send().await;
        let open = service.store().dead_letters().list(DeadLetterState::Dead, None, None, 10).await.unwrap();
        assert!(open.is_empty());
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs").await, 0);
    }

    /// The page arrives after the bookmark was deleted: nothing is written, and nothing fails.
    #[test]
    async fn a_running_job_of_a_deleted_bookmark_does_nothing(fixture: ApiFixture) {
        let service = fixture.work().await;
        let (deleted, gate) = PageGate::shut();
        let pages = Pages::start(move |_, _| {
            gate.pass();
            story()
        })
        .await;
        let id = service.saved("k1", &pages.url("/")).await;
        while pages.requests("/") == 0 {
            look_again().await;
        }
        let answer = service.ask(Method::DELETE, &format!("/v1/bookmarks/{id}")).send().await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        deleted.send(()).unwrap();
        loop {
            let messages = service.store().messages().list(&MessageFilter::default(), 10).await.unwrap();
            if let [only] = &messages[..] && only.status == StateName::Sent {
                break;
            }
            look_again().await;
        }
        assert_eq!(service.count().await, 0);
    }
}
