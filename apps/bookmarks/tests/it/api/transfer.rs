//! Import and export: a file carries all bookmarks, and each link is one bookmark however often it is sent.
// SPEC A7.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fixture::{ApiFixture, ApiRequest, RunningService, look_again};
use super::pages::{Pages, http_response, story};
use crate::both_databases;

const FILE: &str = r#"<!DOCTYPE NETSCAPE-Bookmark-file-1>
<DL><p>
    <DT><H3>Rust &amp; co</H3>
    <DL><p>
        <DT><A HREF="https://example.com/old" ADD_DATE="1000000000" TAGS="Async,web">The old one</A>
        <DT><A HREF="https://EXAMPLE.com/old#top">Again</A>
    </DL><p>
    <DT><A HREF="https://example.com/new" ADD_DATE="1700000000000000">https://example.com/new</A>
    <DT><A HREF="javascript:alert(1)">A bookmarklet</A>
    <DT><A HREF="https://example.com/saved">Another title</A>
</DL><p>"#;

impl RunningService {
    fn import(&self, media: &str, file: &[u8]) -> ApiRequest {
        self.ask(Method::POST, "/v1/import").header("content-type", media).body(file)
    }

    async fn imported(&self, media: &str, file: &[u8]) -> Value {
        let answer = self.import(media, file).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()
    }

    async fn exported(&self, format: &str) -> String {
        let answer = self.get(&format!("/v1/export?format={format}")).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let name = format!("attachment; filename=\"bookmarks.{format}\"");
        assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
        String::from_utf8(answer.body.to_vec()).unwrap()
    }
}

both_databases! {
    #[test]
    async fn each_link_of_a_file_is_one_bookmark(fixture: ApiFixture) {
        let service = fixture.start().await;
        service.saved("k1", "https://example.com/saved").await;
        let first = service.imported("text/html", FILE.as_bytes()).await;
        assert_eq!(first, json!({ "found": 5, "created": 2, "existing": 2, "skipped": 1 }));
        let again = service.imported("text/html; charset=utf-8", FILE.as_bytes()).await;
        assert_eq!(again, json!({ "found": 5, "created": 0, "existing": 4, "skipped": 1 }));
        let listed = service.get("/v1/bookmarks").send().await.json();
        let urls: Vec<&str> = listed["bookmarks"].as_array().unwrap().iter().map(|one| one["url"].as_str().unwrap()).collect();
        assert_eq!(urls, ["https://example.com/saved", "https://example.com/new", "https://example.com/old"], "newest first");
        let old = &listed["bookmarks"][2];
        assert_eq!((&old["title"], &old["tags"]), (&json!("The old one"), &json!(["async", "rust & co", "web"])));
        assert_eq!((&old["created_at"], &old["created_from"]), (&json!("2001-09-09T01:46:40Z"), &json!("import")));
        assert_eq!(listed["bookmarks"][1]["title"], Value::Null, "a URL is not a title");
        assert_eq!(service.number("SELECT count(*) FROM saved_urls").await, 3);
        // A key replays the response.
        let import = || service.import("text/html", FILE.as_bytes()).header("idempotency-key", "file-1").send();
        let (one, two) = (import().await, import().await);
        assert_eq!((one.status, two.header("idempotency-replayed")), (StatusCode::OK, Some("true")));
        assert_eq!(one.body, two.body);
    }

    #[test]
    async fn a_list_is_restored_from_its_own_export(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| match path {
            "/gone" => http_response("404 Not Found", "", b""),
            _ => story(),
        })
        .await;
        let (read, edited, gone) = ("/read", "/edited", "/gone");
        for (path, status) in [(read, "done"), (edited, "done"), (gone, "failed")] {
            let id = service.saved(path, &pages.url(path)).await;
            service.until(&id, status).await;
            if path != read {
                let changes = json!({ "title": "My own", "tags": ["fox", "日本"] });
                service.ask(Method::PATCH, &format!("/v1/bookmarks/{id}")).json(&changes).send().await;
            }
        }
        let file = service.exported("json").await;
        let bob = service.app.add_person("bob").await.unwrap().to_text();
        let as_bob = |request: ApiRequest| request.header("authorization", &format!("Bearer {bob}"));
        let imported = as_bob(service.import("application/json", file.as_bytes())).send().await.json();
        assert_eq!(imported, json!({ "found": 3, "created": 3, "existing": 0, "skipped": 0 }));
        // The page that could not be read is tried again.
        loop {
            let listed = as_bob(service.get("/v1/bookmarks")).send().await.json();
            if listed["bookmarks"][0]["status"] == "failed" {
                break;
            }
            look_again().await;
        }
        let own = as_bob(service.get("/v1/export?format=json")).send().await;
        assert_eq!(String::from_utf8_lossy(&own.body), file);
        assert_eq!([read, edited, gone].map(|path| pages.requests(path)), [1, 1, 2], "what is done is not read again");
        let exported: Value = serde_json::from_str(&file).unwrap();
        let second = &exported["bookmarks"][1];
        assert_eq!((&second["title"], &second["page_title"]), (&json!("My own"), &json!("The fox")));
        assert!(second["summary"].as_str().unwrap().starts_with("The quick brown fox"), "{file}");
        let found = as_bob(service.get("/v1/bookmarks?q=quick%20brown")).send().await.json();
        assert_eq!(found["bookmarks"].as_array().unwrap().len(), 2, "summaries are found");
    }

    #[test]
    async fn an_export_is_imported_without_loss(fixture: ApiFixture) {
        let service = fixture.start().await;
        service.imported("text/html", FILE.as_bytes()).await;
        let html = service.exported("html").await;
        for (person, format, media) in [("bob", "html", "text/html"), ("carol", "json", "application/json")] {
            let token = service.app.add_person(person).await.unwrap().to_text();
            let as_them = |request: ApiRequest| request.header("authorization", &format!("Bearer {token}"));
            let file = service.exported(format).await;
            let answer = as_them(service.import(media, file.as_bytes())).send().await.json();
            assert_eq!((&answer["found"], &answer["created"]), (&json!(3), &json!(3)), "{file}");
            let own = as_them(service.get(&format!("/v1/export?format={format}"))).send().await;
            assert_eq!(String::from_utf8_lossy(&own.body), file);
        }
        assert!(html.contains("<DT><A HREF=\"https://example.com/old\" ADD_DATE=\"1000000000\" TAGS=\"async,rust &amp; co,web\">The old one</A>"), "{html}");
    }

    #[test]
    async fn a_file_that_cannot_be_imported_is_refused(fixture: ApiFixture) {
        let service = fixture.start().await;
        for (media, file, refusal) in [
            ("application/json", &b"{}"[..], (400, "body_invalid")),
            ("text/plain", b"https://example.com/", (415, "media_type_unsupported")),
            ("text/html", &vec![b'a'; (16 << 20) + 1], (413, "body_too_large")),
        ] {
            let answer = service.import(media, file).send().await;
            assert_eq!(answer.refusal(), (refusal.0, refusal.1.to_owned()));
        }
        let stranger = service.bare(Method::POST, "/v1/import").header("content-type", "text/html").body(FILE).send().await;
        assert_eq!(stranger.refusal().0, 401);
        assert_eq!(service.get("/v1/export?format=xml").send().await.refusal(), (400, "parameter_invalid".to_owned()));
        assert_eq!(service.count().await, 0);
    }
}
