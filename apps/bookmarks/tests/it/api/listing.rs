//! The list, the search, and the public pages.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fixture::{ApiFixture, RunningService};
use crate::both_databases;

impl RunningService {
    async fn listed(&self, query: &str) -> (Vec<String>, Value) {
        let answer = self.get(&format!("/v1/bookmarks{query}")).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let json = answer.json();
        let urls = json["bookmarks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["url"].as_str().unwrap().to_owned());
        (urls.collect(), json["next"].clone())
    }

    async fn listed_ids(&self, query: &str) -> Vec<String> {
        let json = self.get(&format!("/v1/bookmarks{query}")).send().await.json();
        json["bookmarks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Edits a bookmark of ann.
    pub(crate) async fn edit(&self, id: &str, members: Value) -> Value {
        let answer = self.ask(Method::PATCH, &format!("/v1/bookmarks/{id}")).json(&members).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    }
}

both_databases! {
    #[test]
    async fn the_list_is_paged_newest_first(fixture: ApiFixture) {
        let service = fixture.start().await;
        for number in 1..=5 {
            service.saved(&format!("k{number}"), &format!("https://example.com/{number}")).await;
        }
        let (first, next) = service.listed("?limit=2").await;
        assert_eq!(first, ["https://example.com/5", "https://example.com/4"]);
        let (second, next) = service.listed(&format!("?limit=3&before={}", next.as_str().unwrap())).await;
        assert_eq!(second, ["https://example.com/3", "https://example.com/2", "https://example.com/1"]);
        assert_eq!(next, Value::Null);
        for wrong in ["?limit=0", "?limit=101", "?limit=x", "?before=x", "?page=2", &format!("?q={}", "a".repeat(201))] {
            let answer = service.get(&format!("/v1/bookmarks{wrong}")).send().await;
            assert_eq!(answer.refusal(), (400, "parameter_invalid".to_owned()), "{wrong}");
        }
    }

    #[test]
    async fn an_unchanged_list_returns_304(fixture: ApiFixture) {
        let service = fixture.start().await;
        let id = service.saved("k1", "https://example.com/").await;
        let first = service.get("/v1/bookmarks").send().await;
        let tag = first.header("etag").unwrap();
        let second = service.get("/v1/bookmarks").header("if-none-match", tag).send().await;
        assert_eq!((second.status, second.body.len()), (StatusCode::NOT_MODIFIED, 0));
        service.ask(Method::DELETE, &format!("/v1/bookmarks/{id}")).send().await;
        let third = service.get("/v1/bookmarks").header("if-none-match", tag).send().await;
        assert_eq!((third.status, third.json()["bookmarks"].clone()), (StatusCode::OK, json!([])));
    }

    #[test]
    async fn search_is_paged_by_relevance(fixture: ApiFixture) {
        let service = fixture.start().await;
        for (number, url) in ["https://fox.example/1", "https://example.com/2", "https://example.com/fox/3", "https://example.com/4"].iter().enumerate() {
            service.saved(&format!("k{number}"), url).await;
        }
        let id = service.listed_ids("?q=2").await.remove(0);
        service.edit(&id, json!({ "title": "The fox", "tags": ["Wild", "animal"] })).await;
        let (first, next) = service.listed("?q=FOX&limit=2").await;
        assert_eq!(first, ["https://example.com/2", "https://example.com/fox/3"]);
        let next = next.as_str().unwrap().to_owned();
        let (second, end) = service.listed(&format!("?q=FOX&limit=2&before={next}")).await;
        assert_eq!((second, end), (vec!["https://fox.example/1".to_owned()], Value::Null));
        assert_eq!(service.listed("?q=%23wild").await.0, ["https://example.com/2"]);
        for (query, found) in [("?q=", 4), ("?q=%25", 4), ("?q=nothing", 0), ("?q='", 4), ("?q=foxes+other", 0)] {
            assert_eq!(service.listed(query).await.0.len(), found, "{query}");
        }
        // The next page of a search is not one of the list.
        let answer = service.get(&format!("/v1/bookmarks?before={next}")).send().await;
        assert_eq!(answer.refusal(), (400, "parameter_invalid".to_owned()));
        let total = async |query: &str| service.get(&format!("/v1/bookmarks{query}")).send().await.json()["total"].clone();
        assert_eq!((total("?limit=1").await, total("?q=fox").await), (json!(4), Value::Null));
    }

    #[test]
    async fn pages_are_public_and_run_only_our_scripts(fixture: ApiFixture) {
        let service = fixture.start().await;
        for (path, media) in [
            ("/", "text/html; charset=utf-8"),
            ("/save?url=https://example.com/", "text/html; charset=utf-8"),
            ("/sign-in", "text/html; charset=utf-8"),
            ("/app.js", "text/javascript; charset=utf-8"),
            ("/app.css", "text/css; charset=utf-8"),
            ("/manifest.webmanifest", "application/manifest+json"),
            ("/icon-192.png", "image/png"),
        ] {
            let answer = service.bare(Method::GET, path).send().await;
            assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, Some(media)), "{path}");
            let again = service.bare(Method::GET, path).header("if-none-match", answer.header("etag").unwrap());
            assert_eq!(again.send().await.status, StatusCode::NOT_MODIFIED);
        }
        for path in ["/", "/v1/me", "/nowhere", "/livez"] {
            let answer = service.bare(Method::GET, path).send().await;
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{path}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
            assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
            assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"), "{path}");
        }
        let nowhere = service.bare(Method::GET, "/nowhere");
        assert_eq!(nowhere.clone().send().await.refusal(), (404, "path_unknown".to_owned()));
        let page = nowhere.header("accept", "text/html,*/*;q=0.8").send().await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (404, Some("text/html; charset=utf-8")));
        assert_eq!(service.ask(Method::PUT, "/v1/bookmarks").send().await.refusal().0, 405);
    }
}
