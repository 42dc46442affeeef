//! Background jobs: pages are read, and errors are reported in plain words.
// SPEC A10, A12.

use std::io::Write as _;
use std::sync::mpsc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fixture::{ApiFixture, RunningService, look_again};
use super::pages::{PageGate, Pages, SILENCE, html, http_response, story, story_html};
use crate::both_databases;

/// Timeout for a page that never comes. Other pages of the case have the same, on a slow machine too.
const PAGE_WITHIN: Duration = Duration::from_secs(5);

/// The page of [`story`], compressed by Node's zlib: there is no encoder among our dependencies.
const BROTLI: &[u8] = b"\x1b\xc1\x00@\x8c\xd4X\xcd\xcc\xd1\xa0\xdc\x96\xea\x85dHb\xea\x83\x0d\x0d\xf2\x1b(bPA\xa9\x07\xac\xcd}\xda&m2\x19\xf8\
    @\x064\x1b\xe9H\xf69o\xdc\xccA\xd4<%\xce\x9d\xad\x11\xae\x7fW`\xc9\xde\xe8r\x06\xce^*\xb2\xacY=\xd4\x8bi\xa7\xd2\x98\xf8\xd7\xea\x8b\xe7\
    \xe4\xf1\xd8M\x8d\x15\xd2\xff\xd9Q\x97\x14&'\x84xh4.(\x85\xfc\x88\xcd\xa9=\x08<\xa5*~R\xff*?\xd9\x1d";

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The error of a bookmark, as a person sees it.
fn error_of(bookmark: &Value) -> (String, bool) {
    assert!(bookmark["errorMessage"].as_str().is_some_and(|words| words.contains(' ')), "{bookmark}");
    (bookmark["errorCode"].as_str().unwrap().to_owned(), bookmark["canRetry"].as_bool().unwrap())
}

/// How many slow pages a person has, more than are read in parallel.
const SLOW: usize = 40;

/// Asserts that another person's page is read before all slow pages are, of which each was requested `before` this.
async fn assert_quick(service: &RunningService, pages: &Pages, open: &mpsc::Sender<()>, before: usize) {
    let bob = service.app.add_person("bob").await.unwrap().to_text();
    let save = service.save("k", &pages.url("/quick")).header("authorization", &format!("Bearer {bob}"));
    assert_eq!(save.send().await.status, StatusCode::CREATED);
    service.go_on().await;
    while pages.requests("/quick") == 0 {
        open.send(()).unwrap();
        look_again().await;
    }
    let read = (0..SLOW).filter(|number| before < pages.requests(&format!("/slow/{number}"))).count();
    assert!(read < SLOW, "all {SLOW} pages came first");
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
            let due = ichido::time::Timestamp::parse(waiting["retryAt"].as_str().unwrap()).unwrap();
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
            "/inside" => http_response("302 Found", "Location: http://127.0.0.2:1/\r\n", b""),
            "/by-name" => http_response("302 Found", "Location: http://[::1]:1/\r\n", b""),
            "/file" => http_response("302 Found", "Location: file:///etc/passwd\r\n", b""),
            _ => SILENCE,
        })
        .await;
        for (path, code, can_retry) in [
            ("/gone", "page_not_found", true),
            ("/private", "page_refused", true),
            ("/image", "page_not_text", true),
            ("/coded", "page_not_text", true),
            ("/inside", "address_refused", false),
            ("/by-name", "address_refused", false),
            ("/file", "address_refused", false),
        ] {
            let id = service.saved(path, &pages.url(path)).await;
            let bookmark = service.until(&id, "failed").await;
            assert_eq!(error_of(&bookmark), (code.to_owned(), can_retry), "{path}");
            assert_eq!((&bookmark["attempt"], pages.requests(path)), (&json!(1), 1), "{path}");
        }
    }

    /// Its title is in the beginning, however long it is and however it is sent.
    #[test]
    async fn the_beginning_of_a_page_is_read(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| {
            let long = [&story_html()[..], &vec![b'a'; 3 << 20]].concat();
            match path {
                "/large" => http_response("200 OK", "Content-Type: text/html\r\n", &long),
                // The response has no Content-Length.
                "/endless" => [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &long].concat(),
                "/gzip" => http_response("200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", &gzipped(&story_html())),
                "/brotli" => http_response("200 OK", "Content-Type: text/html; charset=utf-8\r\nContent-Encoding: br\r\n", BROTLI),
                _ => http_response("200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", &gzipped(&long)),
            }
        })
        .await;
        for path in ["/large", "/endless", "/gzip", "/brotli", "/bomb"] {
            let id = service.saved(path, &pages.url(path)).await;
            assert_eq!(service.until(&id, "done").await["title"], "The fox", "{path}");
        }
    }

    /// What is not a page is saved with its title, or with the name of the file.
    #[test]
    async fn a_file_keeps_a_title(fixture: ApiFixture) {
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| match path {
            "/a.pdf" => http_response("200 OK", "Content-Type: application/pdf\r\n", b"%PDF 1 0 obj << /Title (A thesis) >> endobj /Info 1 0 R"),
            _ => http_response("200 OK", "Content-Type: application/json\r\n", b"{}"),
        })
        .await;
        for (path, known, title) in [("/a.pdf", Some("Mine"), "A thesis"), ("/data.json", None, "data.json"), ("/other.json", Some("Mine"), "Mine")] {
            let members = json!({ "url": pages.url(path), "title": known });
            let id = service.save(path, "").json(&members).send().await.text("/id");
            let bookmark = service.until(&id, "failed").await;
            assert_eq!(error_of(&bookmark), ("page_not_text".to_owned(), true), "{path}");
            assert_eq!(bookmark["title"], title, "{path}");
        }
        let found = service.get("/v1/bookmarks?q=thesis").send().await;
        assert_eq!(found.json()["bookmarks"].as_array().unwrap().len(), 1);
    }

    /// The server fetches the icon of a host once, and each person has their own.
    #[test]
    async fn the_icon_of_a_host_is_fetched_once(fixture: ApiFixture) {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n icon";
        let service = fixture.work().await;
        let pages = Pages::start(|path, _| match path {
            "/icon.png" => http_response("200 OK", "Content-Type: text/html\r\n", PNG),
            _ => html("<title>The fox</title><link rel=icon href=/icon.png><p>Some text."),
        })
        .await;
        let script = Pages::start(|path, _| match path {
            "/icon.png" => http_response("200 OK", "Content-Type: image/png\r\n", b"<svg><script>alert(1)</script></svg>"),
            _ => html("<title>A</title><link rel=icon href=/icon.png><p>Some text."),
        })
        .await;
        let mut icons = Vec::new();
        for path in ["/a", "/b"] {
            let id = service.saved(path, &pages.url(path)).await;
            icons.push(service.until(&id, "done").await["icon"].as_str().map(str::to_owned));
        }
        assert_eq!((pages.requests("/icon.png"), &icons[0]), (1, &icons[1]));
        let icon = icons[0].clone().unwrap();
        let answer = service.get(&icon).send().await;
        assert_eq!((answer.header("content-type"), &answer.body[..]), (Some("image/png"), PNG));
        assert_eq!((answer.header("x-content-type-options"), answer.header("cache-control")), (Some("nosniff"), Some("private, max-age=604800")));
        assert_eq!(service.bare(Method::GET, &icon).send().await.status, StatusCode::UNAUTHORIZED);
        let bob = service.app.add_person("bob").await.unwrap().to_text();
        let foreign = service.get(&icon).header("authorization", &format!("Bearer {bob}")).send().await;
        assert_eq!(foreign.refusal(), (404, "path_unknown".to_owned()));

        let id = service.saved("k3", &script.url("/")).await;
        assert_eq!(service.until(&id, "done").await["icon"], Value::Null, "it is not a bitmap");
        let id = service.saved("k4", &script.url("/again")).await;
        service.until(&id, "done").await;
        assert_eq!(script.requests("/icon.png"), 1);
    }

    /// Somebody's thousand slow pages hold up nobody else.
    #[test]
    async fn another_persons_page_is_read_before_the_rest_of_ones_own(fixture: ApiFixture) {
        let service = fixture.start().await;
        let (open, gate) = PageGate::shut();
        let pages = Pages::start(move |path, _| {
            gate.pass();
            html(&format!("<title>{path}</title><p>Some text."))
        })
        .await;
        for number in 0..SLOW {
            service.saved(&format!("k{number}"), &pages.url(&format!("/slow/{number}"))).await;
        }
        assert_quick(&service, &pages, &open, 0).await;
    }

    /// Nor do they when the person retries them all.
    #[test]
    async fn another_persons_page_is_read_before_the_rest_of_ones_retries(fixture: ApiFixture) {
        let service = fixture.work().await;
        let (open, gate) = PageGate::shut();
        let pages = Pages::start(move |path, count| match (path, count) {
            ("/quick", _) | (_, 2..) => {
                gate.pass();
                html(&format!("<title>{path}</title><p>Some text."))
            }
            _ => http_response("404 Not Found", "", b""),
        })
        .await;
        let mut slow = Vec::new();
        for number in 0..SLOW {
            slow.push(service.saved(&format!("k{number}"), &pages.url(&format!("/slow/{number}"))).await);
        }
        for id in &slow {
            service.until(id, "failed").await;
        }
        service.rest().await;
        for id in &slow {
            let again = service.ask(Method::POST, &format!("/v1/bookmarks/{id}/reprocess")).send().await;
            assert_eq!(again.status, StatusCode::ACCEPTED);
        }
        assert_quick(&service, &pages, &open, 1).await;
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
            let due = ichido::time::Timestamp::parse(bookmark["retryAt"].as_str().unwrap()).unwrap();
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
