//! Saving takes effect once, whatever is sent.
// SPEC A1 to A6, C6, D4, D11.

use std::time::Duration;

use http::{Method, StatusCode};
use ichido::retry::Schedule;
use ichido::store::message::MessageFilter;
use serde_json::json;

use super::fixture::{ApiFixture, look_again};
use super::pages::{Pages, story};
use crate::both_databases;

/// Longer than keys are kept.
const AFTER_KEYS: Duration = Duration::from_hours(73);

both_databases! {
    // SPEC A1.
    #[test]
    async fn a_save_without_a_key_is_refused_and_does_nothing(fixture: ApiFixture) {
        let service = fixture.start().await;
        let payload = json!({ "url": "https://example.com/" });
        let answer = service.ask(Method::POST, "/v1/bookmarks").json(&payload).send().await;
        assert_eq!(answer.refusal(), (400, "key_missing".to_owned()));
        assert_eq!(service.count().await, 0);
        let bad = service.save("two words", "https://example.com/").send().await;
        assert_eq!(bad.refusal(), (400, "key_invalid".to_owned()));
    }

    /// The bookmark, the message and the response are stored together.
    // SPEC A6, D4.
    #[test]
    async fn a_save_stores_bookmark_message_and_response(fixture: ApiFixture) {
        let service = fixture.start().await;
        let payload = json!({ "url": "https://example.com/a#part", "title": " A\tpage ", "source_hint": "paper", "created_from": "ios" });
        let answer = service.save("k1", "").json(&payload).send().await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        let bookmark = answer.json();
        assert_eq!(bookmark["url"], "https://example.com/a");
        assert_eq!(bookmark["title"], "A page");
        assert_eq!((&bookmark["source_hint"], &bookmark["created_from"]), (&json!("paper"), &json!("ios")));
        assert_eq!((&bookmark["status"], &bookmark["llm_status"], &bookmark["job_type"]), (&json!("processing"), &json!("waiting"), &json!("extraction")));
        assert_eq!((&bookmark["can_retry"], &bookmark["max_attempts"], &bookmark["error_message"]), (&json!(false), &json!(3), &json!(null)));
        assert_eq!(answer.header("location"), Some(format!("/v1/bookmarks/{}", bookmark["id"].as_str().unwrap()).as_str()));
        let messages = service.store().messages().list(&MessageFilter::default(), 10).await.unwrap();
        let first = messages.last().unwrap();
        let body: serde_json::Value = serde_json::from_slice(&first.request).unwrap();
        let expected = json!({
            "bookmark_id": bookmark["id"],
            "attempt": 1,
            "max_attempts": 3,
            "original_request": { "url": "https://example.com/a", "idempotency_key": "k1" },
        });
        assert_eq!((first.queue.as_str(), body), ("extraction", expected));
    }

    // SPEC A3, C5.
    #[test]
    async fn the_same_key_replays_the_same_bytes(fixture: ApiFixture) {
        let service = fixture.start().await;
        let first = service.save("k1", "https://example.com/").send().await;
        let second = service.save("k1", "https://example.com/").send().await;
        assert_eq!((first.status, &first.body), (second.status, &second.body));
        assert_eq!(first.header("location"), second.header("location"));
        assert_eq!((first.header("idempotency-replayed"), second.header("idempotency-replayed")), (None, Some("true")));
        assert_eq!(service.count().await, 1);
    }

    // SPEC A4.
    #[test]
    async fn the_same_key_with_another_body_is_refused(fixture: ApiFixture) {
        let service = fixture.start().await;
        service.saved("k1", "https://example.com/a").await;
        let answer = service.save("k1", "https://example.com/b").send().await;
        assert_eq!(answer.refusal(), (409, "key_conflict".to_owned()));
        assert_eq!(service.count().await, 1);
    }

    /// An impatient finger.
    // SPEC A3, C6.
    #[test]
    async fn ten_concurrent_saves_make_one_bookmark(fixture: ApiFixture) {
        let service = fixture.start().await;
        let presses: Vec<_> =
            (0..10).map(|_| tokio::spawn(service.save("k1", "https://example.com/").send_while_busy())).collect();
        let mut bodies = Vec::new();
        for press in presses {
            let answer = press.await.unwrap();
            assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
            bodies.push(answer.body);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]));
        assert_eq!(service.number("SELECT count(*) FROM bookmarks").await, 1);
    }

    /// An expired key counts as new: it can be used for another request.
    // SPEC A2, A5.
    #[test]
    async fn an_expired_key_counts_as_new(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|_, _| story()).await;
        let first = service.saved("k1", &pages.url("/")).await;
        service.until(&first, "done").await;
        service.pass(Duration::from_hours(71));
        let kept = service.save("k1", &pages.url("/")).send().await;
        assert_eq!(kept.text("/id"), first);
        let other = service.save("k1", &pages.url("/other")).send().await;
        assert_eq!(other.refusal(), (409, "key_conflict".to_owned()));
        service.pass(Duration::from_hours(2));
        let second = service.saved("k1", &pages.url("/other")).await;
        assert_ne!(first, second);
    }

    /// Longer than the default: the key is still known, so another body is refused.
    #[test]
    async fn a_response_is_kept_as_long_as_configured(fixture: ApiFixture) {
        let service = fixture.work_as(|settings| settings.keep_responses = Duration::from_hours(100)).await;
        let pages = Pages::start(|_, _| story()).await;
        let first = service.saved("k1", &pages.url("/")).await;
        service.until(&first, "done").await;
        service.pass(AFTER_KEYS);
        assert_eq!(service.save("k1", &pages.url("/")).send().await.text("/id"), first);
        let other = service.save("k1", &pages.url("/other")).send().await;
        assert_eq!(other.refusal(), (409, "key_conflict".to_owned()));
    }

    /// The bookmark stays when the messages of its jobs are deleted.
    #[test]
    async fn finished_jobs_are_kept_as_long_as_configured(fixture: ApiFixture) {
        let service = fixture.work_as(|settings| settings.keep_finished = Duration::from_hours(1)).await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/")).await;
        let done = service.until(&id, "done").await;
        service.pass(Duration::from_hours(2));
        while !service.store().messages().list(&MessageFilter::default(), 9).await.unwrap().is_empty() {
            look_again().await;
        }
        let kept = service.bookmark(&id).await;
        assert_eq!((&kept["state"], &kept["summary"]), (&json!("done"), &done["summary"]));
    }

    /// Whatever fails on the way, nothing is stored, and the key is free.
    // SPEC D4.
    #[test]
    async fn a_failed_save_stores_nothing(fixture: ApiFixture) {
        let service = fixture.start().await;
        service
            .tamper(
                "ALTER TABLE bookmarks ADD CONSTRAINT poison CHECK (url NOT LIKE '%poison%')",
                "CREATE TRIGGER poison BEFORE INSERT ON bookmarks WHEN NEW.url LIKE '%poison%' BEGIN SELECT RAISE(ABORT, 'poison'); END",
            )
            .await;
        let answer = service.save("k1", "https://example.com/poison").send().await;
        assert_eq!(answer.refusal(), (503, "store_unavailable".to_owned()));
        assert_eq!(service.number("SELECT count(*) FROM bookmarks").await, 0);
        assert_eq!(service.number("SELECT count(*) FROM saved_urls").await, 0);
        assert!(service.store().messages().list(&MessageFilter::default(), 10).await.unwrap().is_empty());
        service.tamper("ALTER TABLE bookmarks DROP CONSTRAINT poison", "DROP TRIGGER poison").await;
        service.saved("k1", "https://example.com/poison").await;
    }

    // SPEC D11.
    #[test]
    async fn a_body_that_names_another_key_is_refused(fixture: ApiFixture) {
        let service = fixture.start().await;
        let payload = json!({ "url": "https://example.com/", "idempotency_key": "k2" });
        let answer = service.save("k1", "").json(&payload).send().await;
        assert_eq!(answer.refusal(), (422, "key_mismatch".to_owned()));
        let payload = json!({ "url": "https://example.com/", "idempotency_key": "k1" });
        assert_eq!(service.save("k1", "").json(&payload).send().await.status, StatusCode::CREATED);
    }

    #[test]
    async fn invalid_saves_are_refused_with_a_code(fixture: ApiFixture) {
        let service = fixture.start().await;
        for (number, (body, expected)) in [
            ("{".to_owned(), (400, "body_invalid")),
            ("[]".to_owned(), (400, "body_invalid")),
            (json!({}).to_string(), (400, "body_invalid")),
            (json!({ "url": 1 }).to_string(), (400, "body_invalid")),
            (json!({ "url": "https://example.com/", "uri": 1 }).to_string(), (400, "body_invalid")),
            (json!({ "url": "https://example.com/", "source_hint": "" }).to_string(), (400, "body_invalid")),
            (json!({ "url": "https://example.com/", "title": 1 }).to_string(), (400, "body_invalid")),
            (json!({ "url": "https://example.com/", "created_from": "a\0" }).to_string(), (400, "body_invalid")),
            (json!({ "url": "javascript:alert(1)" }).to_string(), (400, "url_refused")),
            (json!({ "url": "https://ann:secret@example.com/" }).to_string(), (400, "url_refused")),
            (json!({ "url": format!("https://example.com/{}", "a".repeat(3_000)) }).to_string(), (400, "url_refused")),
            (json!({ "url": "a".repeat(20_000) }).to_string(), (413, "body_too_large")),
        ].into_iter().enumerate() {
            let ask = service.save(&format!("k{number}"), "").body(body.clone());
            let refusal = ask.send().await.refusal();
            assert_eq!(refusal, (expected.0, expected.1.to_owned()), "{body:.80}");
        }
        let form = service.save("form", "").header("content-type", "text/plain").body("url=a");
        assert_eq!(form.send().await.refusal(), (415, "media_type_unsupported".to_owned()));
        assert_eq!(service.count().await, 0);
    }

    /// The key of a message that may still be sent is kept.
    // SPEC A5.
    #[test]
    async fn a_key_is_kept_while_its_message_waits(fixture: ApiFixture) {
        let late = Schedule::List(vec![Duration::from_hours(200)]);
        let service = fixture.work_as(|settings| settings.retry.schedule = late).await;
        // Nothing listens there.
        let first = service.saved("k1", "http://127.0.0.1:1/").await;
        service.until(&first, "retrying").await;
        service.pass(AFTER_KEYS);
        let kept = service.save("k1", "http://127.0.0.1:1/").send().await;
        assert_eq!((kept.status, kept.text("/id")), (StatusCode::CREATED, first));
    }
}
