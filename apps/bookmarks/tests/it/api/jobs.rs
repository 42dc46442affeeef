//! Background jobs: pages are read, and errors are reported in plain words.
// SPEC A10, A12.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::fixture::{ApiFixture, look_again};
use super::pages::{Pages, SILENCE, html, http_response, story};
use crate::both_databases;

/// Timeout for a page that never comes. Other pages of the case have the same, on a slow machine too.
const PAGE_WITHIN: Duration = Duration::from_secs(5);

/// The error of a bookmark, as a person sees it.
fn error_of(bookmark: &Value) -> (String, bool) {
    assert!(bookmark["errorMessage"].as_str().is_some_and(|words| words.contains(' ')), "{bookmark}");
    (bookmark["errorCode"].as_str().unwrap().to_owned(), bookmark["canRetry"].as_bool().unwrap())
}

both_databases! {
    /// A page from save to summary.
    // SPEC A10, A12.
    #[test]
    async fn a_page_is_read_and_summarised(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|_, _| story()).await;
        let id = service.saved("k1", &pages.url("/fox")).await;
        let bookmark = service.until(&id, "done").await;
        assert_eq!(bookmark["title"], "The fox");
        let summary = bookmark["summary"].as_str().unwrap();
        assert!(summary.starts_with("The quick brown fox") && !summary.contains("Home"), "{summary}");
        assert_eq!((&bookmark["summaryBy"], &bookmark["jobType"]), (&json!("extract"), &json!("llm_processing")));
        assert_eq!((&bookmark["errorCode"], &bookmark["canRetry"]), (&Value::Null, &json!(false)));
        assert_eq!(pages.requests("/fox"), 1);
        let found = service.get("/v1/bookmarks?q=LAZY%20dog").send().await;
        assert_eq!(found.json()["bookmarks"][0]["id"], json!(id));
    }

    /// Failure n waits 2^n × 60 s, and the last failure is final.
    // SPEC A10.
    #[test]
    async fn a_failing_page_is_retried_on_schedule(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, count| match (path, count) {
            ("/recovers", 1) | ("/never", _) => http_response("500 Oh", "", b""),
            _ => story(),
        })
        .await;
        let recovers = service.saved("k1", &pages.url("/recovers")).await;
        let never = service.saved("k2", &pages.url("/never")).await;
        let waiting = service.until(&recovers, "retrying").await;
        assert_eq!(error_of(&waiting), ("page_failing".to_owned(), true), "it is retried automatically, or at once");
        assert_eq!((&waiting["attempt"], &waiting["maxAttempts"]), (&json!(1), &json!(3)));
        for (failure, secs) in [(1_i64, 120_u64), (2, 240)] {
            let waiting = loop {
                let bookmark = service.bookmark(&never).await;
                if bookmark["state"] == "retrying" && bookmark["attempt"] == failure {
                    break bookmark;
                }
                look_again().await;
            };
            let due = ichido_core::time::Timestamp::parse(waiting["retryAt"].as_str().unwrap()).unwrap();
            let left = due.since(service.store().now().await.unwrap());
            // The worker's clock and the store's differ slightly.
            let (least, most) = (Duration::from_secs(secs - 60), Duration::from_secs(secs + 5));
            assert!(least < left && left < most, "{failure}: {left:?}");
            if failure == 2 {
                // Its second attempt must have ended: the jump of the clock below would end its lease.
                assert_eq!(service.until(&recovers, "done").await["title"], "The fox");
            }
            service.pass(Duration::from_secs(secs));
        }
        assert_eq!(error_of(&service.until(&never, "failed").await), ("page_failing".to_owned(), true));
        assert_eq!((pages.requests("/recovers"), pages.requests("/never")), (2, 3));
    }

    #[test]
    async fn permanent_errors_fail_at_once(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| match path {
            "/gone" => http_response("404 Not Found", "", b""),
            "/private" => http_response("403 Forbidden", "", b""),
            "/image" => http_response("200 OK", "Content-Type: image/png\r\n", b"\x89PNG"),
            "/coded" => http_response("200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", b"\x1f\x8b"),
            "/large" => http_response("200 OK", "Content-Type: text/html\r\n", &vec![b'a'; (2 << 20) + 1]),
            // The response has no Content-Length.
            "/endless" => [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &vec![b'a'; 3 << 20]].concat(),
            "/inside" => http_response("302 Found", "Location: http://127.0.0.2:1/\r\n", b""),
            "/by-name" => http_response("302 Found", "Location: http://[::1]:1/\r\n", b""),
            "/file" => http_response("302 Found", "Location: file:///etc/passwd\r\n", b""),
            _ => SILENCE,
        })
        .await;
        for (path, code) in [
            ("/gone", "page_not_found"),
            ("/private", "page_refused"),
            ("/image", "page_not_text"),
            ("/coded", "page_not_text"),
            ("/large", "page_too_large"),
            ("/endless", "page_too_large"),
            ("/inside", "address_refused"),
            ("/by-name", "address_refused"),
            ("/file", "address_refused"),
        ] {
            let id = service.saved(path, &pages.url(path)).await;
            let bookmark = service.until(&id, "failed").await;
            assert_eq!(error_of(&bookmark), (code.to_owned(), false), "{path}");
            assert_eq!((&bookmark["attempt"], pages.requests(path)), (&json!(1), 1), "{path}");
        }
    }

    /// No connection is made to a private address, neither by address nor by name.
    #[test]
    async fn pages_on_private_addresses_are_not_fetched_by_default(fixture: ApiFixture) {
        let service = fixture.work_as(|settings| settings.may_reach = bookmarks::is_public).await;
        let pages = Pages::start(|_, _| story()).await;
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"] {
            let id = service.saved(host, &format!("http://{host}:{}/{}", pages.address.port(), host.len())).await;
            assert_eq!(error_of(&service.until(&id, "failed").await), ("address_refused".to_owned(), false), "{host}");
        }
        assert_eq!((pages.requests("/9"), pages.requests("/10")), (0, 0));
    }

    #[test]
    async fn temporary_errors_are_retried(fixture: ApiFixture) {
        let service = fixture.work_as(|settings| settings.page_within = PAGE_WITHIN).await;
        let pages = Pages::start(|path, _| match path {
            "/busy" => http_response("429 Too Many", "Retry-After: 1800\r\n", b""),
            "/cut" => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec(),
            "/nonsense" => b"hello\r\n\r\n".to_vec(),
            "/round" => http_response("301 Moved", "Location: /round\r\n", b""),
            _ => SILENCE,
        })
        .await;
        for (path, code) in [
            ("/busy", "page_busy"),
            ("/cut", "page_unreachable"),
            ("/nonsense", "page_unreachable"),
            ("/round", "page_failing"),
            ("/silent", "page_too_slow"),
        ] {
            let id = service.saved(path, &pages.url(path)).await;
            let bookmark = service.until(&id, "retrying").await;
            assert_eq!(error_of(&bookmark), (code.to_owned(), true), "{path}");
            let due = ichido_core::time::Timestamp::parse(bookmark["retryAt"].as_str().unwrap()).unwrap();
            let left = due.since(service.store().now().await.unwrap());
            assert_eq!(Duration::from_mins(20) < left, path == "/busy", "{path}: {left:?}");
        }
        assert_eq!(pages.requests("/round"), 6, "the first request and five redirects");
        let nobody = service.saved("nobody", "http://127.0.0.1:1/").await;
        assert_eq!(error_of(&service.until(&nobody, "retrying").await).0, "page_unreachable");
    }

    #[test]
    async fn redirects_are_followed(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| match path {
            "/old" => http_response("301 Moved", "Location: new?a=1\r\n", b""),
            "/new?a=1" => story(),
            _ => SILENCE,
        })
        .await;
        let id = service.saved("k1", &pages.url("/old")).await;
        let bookmark = service.until(&id, "done").await;
        assert_eq!((&bookmark["title"], &bookmark["url"]), (&json!("The fox"), &json!(pages.url("/old"))));
    }

    #[test]
    async fn japanese_pages_are_read_in_their_own_encoding(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| {
            let (encoding, media) = match path {
                "/sjis" => (encoding_rs::SHIFT_JIS, "Content-Type: text/html; charset=Shift_JIS\r\n"),
                _ => (encoding_rs::EUC_JP, "Content-Type: text/html\r\n"),
            };
            let page = format!("<meta charset={}><title>猫の話</title><p>名前はまだ無いのである、と猫は言った。</p>", encoding.name());
            http_response("200 OK", media, &encoding.encode(&page).0)
        })
        .await;
        for path in ["/sjis", "/euc"] {
            let id = service.saved(path, &pages.url(path)).await;
            let bookmark = service.until(&id, "done").await;
            assert_eq!(bookmark["title"], "猫の話", "{path}");
            assert_eq!(bookmark["summary"], "名前はまだ無いのである、と猫は言った。", "{path}");
        }
        let found = service.get("/v1/bookmarks?q=%E7%8C%AB").send().await;
        assert_eq!(found.json()["bookmarks"].as_array().unwrap().len(), 2);
    }

    #[test]
    async fn markup_in_a_title_stays_text(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|_, _| html("<title><script>alert('\"')</script></title><p>It is a page.")).await;
        let id = service.saved("k1", &pages.url("/")).await;
        assert_eq!(service.until(&id, "done").await["title"], "<script>alert('\"')</script>");
        let answer = service.get(&format!("/v1/bookmarks/{id}")).send().await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, Some("application/json")));
    }

    /// An empty page has a title and no summary.
    #[test]
    async fn a_page_without_text_is_done_without_a_summary(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|_, _| html("<title>App</title><script>start()</script>")).await;
        let id = service.saved("k1", &pages.url("/")).await;
        let bookmark = service.until(&id, "done").await;
        assert_eq!((&bookmark["title"], &bookmark["summary"], &bookmark["summaryBy"]), (&json!("App"), &Value::Null, &Value::Null));
    }
}
