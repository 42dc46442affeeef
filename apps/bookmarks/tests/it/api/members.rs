//! The members of requests and answers: their names, and their values.
// SPEC A7, A12.

use http::{Method, StatusCode};
use serde_json::json;

use super::fixture::{ApiFixture, RunningService};
use super::pages::{Pages, http_response, story};
use crate::both_databases;

impl RunningService {
    /// Undoes the end of every request, as if the process that runs it had not settled it yet.
    pub(crate) async fn leave_in_flight(&self) {
        let postgres = "UPDATE ichido.ledger SET state = 'claimed', lease_until = claimed_at + interval '1 minute', status = NULL, headers = NULL, \
                        body = NULL, result_digest = NULL, message_id = NULL, completed_at = NULL, expires_at = NULL";
        let sqlite = "UPDATE ichido_ledger SET state = 'claimed', lease_until = claimed_at + 60000000, status = NULL, headers = NULL, \
                      body = NULL, result_digest = NULL, message_id = NULL, completed_at = NULL, expires_at = NULL";
        self.tamper(postgres, sqlite).await;
    }
}

both_databases! {
    /// Each name of before beside the new one, in every answer.
    // SPEC A12.
    #[test]
    async fn answers_have_snake_case_and_camel_case_names(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|_, _| http_response("500 Oh", "", b"")).await;
        let saved = service.save("k1", &pages.url("/")).send().await;
        let id = saved.text("/id");
        let one = service.until(&id, "retrying").await;
        let listed = service.get("/v1/bookmarks").send().await.json()["bookmarks"][0].clone();
        let retried = service.ask(Method::POST, &format!("/v1/bookmarks/{id}/reprocess")).send().await.json();
        for bookmark in [saved.json(), one.clone(), listed, retried] {
            for (name, other) in [
                ("status", "state"),
                ("summary_by", "summaryBy"),
                ("error_code", "errorCode"),
                ("error_message", "errorMessage"),
                ("can_retry", "canRetry"),
                ("job_type", "jobType"),
                ("max_attempts", "maxAttempts"),
                ("retry_at", "retryAt"),
                ("source_hint", "sourceHint"),
                ("created_from", "createdFrom"),
                ("created_at", "createdAt"),
            ] {
                let value = bookmark.get(name);
                assert!(value.is_some() && value == bookmark.get(other), "{name}: {bookmark}");
            }
        }
        assert_eq!((&one["status"], &one["llm_status"], &one["can_retry"]), (&json!("retrying"), &json!("waiting"), &json!(true)));
        assert_eq!(one["error_message"], "The site has a problem at the moment");
        // Requests have one form of names.
        let camel = json!({ "url": "https://example.com/", "createdFrom": "web" });
        assert_eq!(service.save("k2", "").json(&camel).send().await.refusal(), (400, "body_invalid".to_owned()));
    }

    /// The kind of page is the client's, or detected. How it was saved is another thing.
    // SPEC A7.
    #[test]
    async fn the_kind_of_page_is_detected_where_it_is_missing(fixture: ApiFixture) {
        let service = fixture.start().await;
        for (key, members, expected) in [
            ("k1", json!({ "url": "https://youtu.be/1" }), (json!("video"), json!(null))),
            ("k2", json!({ "url": "https://github.com/ann/fox", "created_from": "bookmarklet" }), (json!("code"), json!("bookmarklet"))),
            ("k3", json!({ "url": "https://youtu.be/2", "source_hint": "article", "created_from": "share" }), (json!("article"), json!("share"))),
        ] {
            let saved = service.save(key, "").json(&members).send().await.json();
            assert_eq!((saved["source_hint"].clone(), saved["created_from"].clone()), expected, "{members}");
        }
    }

    // SPEC A7.
    #[test]
    async fn unknown_kinds_and_clients_are_refused_with_the_known_ones(fixture: ApiFixture) {
        let service = fixture.start().await;
        for (member, expected) in [
            ("source_hint", "`source_hint` must be one of article, video, audio, image, code, paper, social"),
            ("created_from", "`created_from` must be one of web, bookmarklet, share, ios, api, import"),
        ] {
            let answer = service.save(member, "").json(&json!({ "url": "https://example.com/", member: "page" })).send().await;
            assert_eq!(answer.refusal(), (400, "body_invalid".to_owned()));
            assert_eq!(answer.text("/detail"), expected);
        }
        assert_eq!(service.count().await, 0);
    }

    /// The client's title is shown and found until the page is read, and after that if the page has none.
    // SPEC A7.
    #[test]
    async fn the_title_of_a_client_stays_until_the_page_has_one(fixture: ApiFixture) {
        let service = fixture.start().await;
        let pages = Pages::start(|path, _| if path == "/fox" { story() } else { http_response("200 OK", "Content-Type: text/plain\r\n", b"A fox.") }).await;
        let mut ids = Vec::new();
        for path in ["/fox", "/plain"] {
            let members = json!({ "url": pages.url(path), "title": "A shared name" });
            ids.push(service.save(path, "").json(&members).send().await.text("/id"));
            assert_eq!(service.bookmark(ids.last().unwrap()).await["title"], "A shared name");
        }
        let found = service.get("/v1/bookmarks?q=shared").send().await;
        assert_eq!(found.json()["bookmarks"].as_array().unwrap().len(), 2);
        service.go_on().await;
        assert_eq!(service.until(&ids[0], "done").await["title"], "The fox");
        assert_eq!(service.until(&ids[1], "done").await["title"], "A shared name");
        let found = service.get("/v1/bookmarks?q=shared").send().await;
        assert_eq!(found.json()["bookmarks"][0]["id"], json!(ids[1]));
    }

    /// The page does not replace what a person wrote.
    // SPEC A7.
    #[test]
    async fn an_edited_title_stays(fixture: ApiFixture) {
        let service = fixture.start().await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/")).await;
        let edited = service.edit(&id, json!({ "title": " My\u{202e}\n title ", "tags": ["ｂ", "A"] })).await;
        assert_eq!((&edited["title"], &edited["tags"]), (&json!("My title"), &json!(["a", "b"])));
        service.go_on().await;
        assert_eq!(service.until(&id, "done").await["title"], "My title");
        let tagged = service.edit(&id, json!({ "tags": [] })).await;
        assert_eq!((&tagged["title"], &tagged["tags"]), (&json!("My title"), &json!([])));
        // An empty title goes back to the page's.
        assert_eq!(service.edit(&id, json!({ "title": " " })).await["title"], "The fox");
        for (members, code) in [
            (json!({ "tags": [""] }), 400),
            (json!({ "tags": ["a,b"] }), 400),
            (json!({ "tags": vec!["a".repeat(41)] }), 400),
            (json!({ "tags": (0..21).map(|number| number.to_string()).collect::<Vec<_>>() }), 400),
            (json!({ "url": "https://example.com/" }), 400),
        ] {
            let refused = service.ask(Method::PATCH, &format!("/v1/bookmarks/{id}")).json(&members).send().await;
            assert_eq!(refused.refusal(), (code, "body_invalid".to_owned()), "{members}");
        }
        let unknown = service.ask(Method::PATCH, "/v1/bookmarks/x").json(&json!({})).send().await;
        assert_eq!(unknown.refusal(), (404, "bookmark_unknown".to_owned()));
    }

    /// While the first request is in flight, a duplicate waits, and then gets a bookmark that is being saved.
    // SPEC A12, C6.
    #[test]
    async fn a_save_in_flight_is_shown_as_saving(fixture: ApiFixture) {
        let service = fixture.start().await;
        service.saved("k1", "https://example.com/").await;
        service.leave_in_flight().await;
        let answer = service.save("k1", "https://example.com/").send().await;
        assert_eq!((answer.status, answer.header("idempotency-status")), (StatusCode::ACCEPTED, Some("processing")));
        assert_eq!((answer.header("content-type"), answer.header("retry-after")), (Some("application/json"), Some("1")));
        let saving = answer.json();
        assert_eq!((&saving["status"], &saving["state"], &saving["llm_status"]), (&json!("saving"), &json!("saving"), &json!("waiting")));
        assert_eq!((&saving["can_retry"], &saving["error_message"], saving.get("id")), (&json!(false), &json!(null), None));
        assert_eq!(saving["code"], "key_in_flight");
    }
}
