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
    async fn search_words_are_matched_literally(fixture: ApiFixture) {
        let service = fixture.start().await;
        for (number, url) in ["https://example.com/Foxes", "https://example.com/100%25_sure", "https://example.com/other"].iter().enumerate() {
            service.saved(&format!("k{number}"), url).await;
        }
        for (query, expected) in [
            ("?q=foxes", vec!["https://example.com/Foxes"]),
            ("?q=FOX", vec!["https://example.com/Foxes"]),
            ("?q=%25", vec!["https://example.com/100%25_sure"]),
            ("?q=_", vec!["https://example.com/100%25_sure"]),
            ("?q=%5C", vec![]),
            ("?q=f%25s", vec![]),
            ("?q=nothing", vec![]),
            ("?q=foxes+example.com", vec!["https://example.com/Foxes"]),
            ("?q=foxes+other", vec![]),
            ("?q=+%E3%80%80fox%E3%80%80", vec!["https://example.com/Foxes"]),
            ("?q='", vec![]),
        ] {
            assert_eq!(service.listed(query).await.0, expected, "{query}");
        }
        assert_eq!(service.listed("?q=").await.0.len(), 3);
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
