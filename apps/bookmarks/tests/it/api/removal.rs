//! Removing a person: nothing of theirs is left, and nothing of anybody else's is touched.

use std::sync::Arc;

use bookmarks::PersonError;
use http::{Method, StatusCode};
use serde_json::json;

use super::fixture::{ApiFixture, ApiRequest, RunningService, look_again};
use super::pages::{PageGate, Pages, http_response, story};
use crate::both_databases;

const NAME: &str = "zebulon";

/// Another person beside ann.
struct Other<'a> {
    service: &'a RunningService,
    token: String,
    /// A text that is only theirs and would be found wherever it was stored.
    traces: Vec<String>,
}

impl<'a> Other<'a> {
    async fn come(service: &'a RunningService) -> Self {
        let token = service.app.add_person(NAME).await.unwrap().to_text();
        let people = service.app.people().await.unwrap();
        let id = people.iter().find(|person| person.name == NAME).unwrap().id;
        let page = format!("of-{NAME}");
        let page_hex: Vec<String> = page.bytes().map(|byte| format!("{byte:02x}")).collect();
        let traces = vec![id.simple().to_string(), id.to_string(), page, page_hex.concat(), NAME.to_owned()];
        Self { service, token, traces }
    }

    fn ask(&self, method: Method, path: &str) -> ApiRequest {
        self.service.bare(method, path).header("authorization", &format!("Bearer {}", self.token))
    }

    /// Saves a page of theirs and returns its id.
    async fn save(&self, key: &str, url: &str) -> String {
        let save = self.ask(Method::POST, "/v1/bookmarks").header("idempotency-key", key);
        let answer = save.json(&json!({ "url": url })).send().await;
        assert!(answer.status.is_success(), "{answer:?}");
        answer.text("/id")
    }

    async fn until(&self, id: &str, state: &str) {
        while self.ask(Method::GET, &format!("/v1/bookmarks/{id}")).send().await.text("/state") != state {
            look_again().await;
        }
    }

    async fn assert_gone(&self) {
        let all = self.service.everything().await;
        for trace in &self.traces {
            let found: Vec<&str> = all.lines().filter(|line| line.contains(trace.as_str())).collect();
            assert!(found.is_empty(), "{trace}: {found:#?}");
        }
        assert_eq!(self.ask(Method::GET, "/v1/me").send().await.status, StatusCode::UNAUTHORIZED);
        let unknown = self.service.app.remove_person(NAME).await;
        assert!(matches!(unknown, Err(PersonError::Unknown { .. })), "{unknown:?}");
    }
}

fn page_of(pages: &Pages, path: &str) -> String {
    pages.url(&format!("/of-{NAME}/{path}"))
}

both_databases! {
    /// A summarised page, a missing one, a failing one, a deleted one, one that was saved again, and a session.
    #[test]
    async fn removing_a_person_deletes_all_their_data(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| match path.rsplit('/').next() {
            Some("gone") => http_response("404 Not Found", "", b""),
            Some("failing") => http_response("500 Oh", "", b""),
            _ => story(),
        })
        .await;
        let anns = service.saved("k1", &pages.url("/anns")).await;
        let anns_gone = service.saved("k2", &pages.url("/gone")).await;
        service.until(&anns, "done").await;
        service.until(&anns_gone, "failed").await;
        let other = Other::come(&service).await;
        let ids = [other.save("k1", &page_of(&pages, "story")).await, other.save("k2", &page_of(&pages, "gone")).await];
        for (id, state) in ids.iter().zip(["done", "failed"]) {
            other.until(id, state).await;
        }
        other.until(&other.save("k3", &page_of(&pages, "failing")).await, "retrying").await;
        assert_eq!(other.save("k4", &page_of(&pages, "story")).await, ids[0], "a key without a message");
        let again = other.ask(Method::POST, &format!("/v1/bookmarks/{}/reprocess", ids[1])).header("idempotency-key", "k5");
        assert_eq!(again.send().await.status, StatusCode::ACCEPTED);
        other.until(&ids[1], "failed").await;
        let deleted = other.save("k6", &page_of(&pages, "deleted")).await;
        other.ask(Method::DELETE, &format!("/v1/bookmarks/{deleted}")).send().await;
        let signed_in = service.bare(Method::POST, "/session").json(&json!({ "token": other.token })).send().await;
        assert_eq!(signed_in.status, StatusCode::NO_CONTENT);
        let before = service.everything().await;
        // PostgreSQL shows no id as bare bytes.
        for trace in &other.traces[1..] {
            assert!(before.contains(trace.as_str()), "the search would find {trace}");
        }

        service.app.remove_person(NAME).await.unwrap();
        other.assert_gone().await;
        assert_eq!(service.bookmark(&anns).await["title"], "The fox");
        assert_eq!(service.bookmark(&anns_gone).await["state"], "failed");
        assert_eq!(service.number("SELECT count(*) FROM failed_jobs").await, 1, "ann's dead letter is kept");
        let replayed = service.save("k1", &pages.url("/anns")).send().await;
        assert_eq!(replayed.header("idempotency-replayed"), Some("true"), "and so are ann's keys");
    }

    /// The running job ends, finds nothing to write to, and only then is it deleted.
    #[test]
    async fn removing_a_person_waits_for_a_running_job(fixture: ApiFixture) {
        let service = fixture.work().await;
        let (release, gate) = PageGate::shut();
        let pages = Pages::start(move |_, _| {
            gate.pass();
            story()
        })
        .await;
        let other = Other::come(&service).await;
        other.save("k1", &page_of(&pages, "story")).await;
        while pages.requests(&format!("/of-{NAME}/story")) == 0 {
            look_again().await;
        }
        let app = Arc::clone(&service.app);
        let removing = tokio::spawn(async move { app.remove_person(NAME).await });
        while other.ask(Method::GET, "/v1/me").send().await.status != StatusCode::UNAUTHORIZED {
            look_again().await;
        }
        assert!(!removing.is_finished(), "the job has not ended");
        release.send(()).unwrap();
        removing.await.unwrap().unwrap();
        other.assert_gone().await;
    }

    /// Neither waits for the other in a cycle, so nobody can block it.
    #[test]
    async fn a_person_who_keeps_saving_can_be_removed(fixture: ApiFixture) {
        let service = fixture.start().await;
        let other = Other::come(&service).await;
        let busy: Vec<_> = (0..24).map(|number| {
            let (save, url) = (other.ask(Method::POST, "/v1/bookmarks"), format!("https://example.com/of-{NAME}/{number}"));
            let delete = other.ask(Method::DELETE, "");
            tokio::spawn(async move {
                for round in 0.. {
                    let save = save.clone().header("idempotency-key", &format!("k{number}-{round}"));
                    let saved = save.json(&json!({ "url": url })).send().await;
                    if !saved.status.is_success() {
                        break;
                    }
                    delete.clone().path(&format!("/v1/bookmarks/{}", saved.text("/id"))).send().await;
                }
            })
        }).collect();
        while service.number("SELECT count(*) FROM bookmarks").await == 0 {
            look_again().await;
        }
        service.app.remove_person(NAME).await.unwrap();
        for busy in busy {
            busy.await.unwrap();
        }
        other.assert_gone().await;
    }

    /// Concurrent saves are refused, or deleted with the rest.
    #[test]
    async fn saves_during_a_removal_are_deleted_too(fixture: ApiFixture) {
        let service = fixture.start().await;
        let other = Other::come(&service).await;
        let saving: Vec<_> = (0..24)
            .map(|number| {
                let save = other.ask(Method::POST, "/v1/bookmarks").header("idempotency-key", &format!("k{number}"));
                let url = format!("https://example.com/of-{NAME}/{number}");
                tokio::spawn(save.json(&json!({ "url": url })).send())
            })
            .collect();
        while service.number("SELECT count(*) FROM bookmarks").await == 0 {
            look_again().await;
        }
        service.app.remove_person(NAME).await.unwrap();
        for saving in saving {
            let status = saving.await.unwrap().status.as_u16();
            assert!([201, 401, 503].contains(&status), "{status}");
        }
        other.assert_gone().await;
    }
}
