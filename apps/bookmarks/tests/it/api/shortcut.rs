//! The shortcut for an iPhone: the requests of its recipe in the README, and what it reads from the responses.
//!
//! A shortcut sees a body and nothing else: no status, no header.
// SPEC A7, A8, G.

use http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::fixture::{ApiFixture, ApiRequest, ApiResponse, RunningService, look_again};
use crate::both_databases;

const README: &str = include_str!("../../../README.md");
const PAGE: &str = "https://example.com/shared?utm_source=app";

/// Returns the lines of the recipe's request and its body, with the values of one run.
fn recipe(token: &str, key: &str) -> (Vec<String>, String) {
    let (_, request) = README.split_once("```http\n").unwrap();
    let (request, _) = request.split_once("\n```").unwrap();
    let (head, body) = request.split_once("\n\n").unwrap();
    let head = head.replace("TOKEN", token).replace("KEY", key);
    (head.lines().map(str::to_owned).collect(), body.replace("URL", PAGE))
}

/// One repetition of the shortcut's loop.
fn step(service: &RunningService, token: &str, key: &str) -> ApiRequest {
    let (head, body) = recipe(token, key);
    assert_eq!(head[0], "POST /v1/bookmarks HTTP/1.1");
    let request = service.bare(Method::POST, "/v1/bookmarks").body(body);
    head[1..].iter().fold(request, |request, line| {
        let (name, value) = line.split_once(": ").unwrap();
        request.header(&name.to_lowercase(), value)
    })
}

/// What the shortcut does with a response.
#[derive(Debug, PartialEq)]
enum Outcome {
    Saved(String),
    Repeat,
    Show(String),
}

fn outcome(response: &ApiResponse) -> Outcome {
    let body = response.json();
    if let Some(id) = body["id"].as_str() {
        return Outcome::Saved(id.to_owned());
    }
    match &body["status"] {
        Value::String(status) if status == "saving" => Outcome::Repeat,
        Value::Number(status)
            if status.as_u64().is_some_and(|status| matches!(status, 408 | 429 | 500..)) =>
        {
            Outcome::Repeat
        }
        _ => Outcome::Show(body["detail"].as_str().unwrap().to_owned()),
    }
}

both_databases! {
    /// The first response is lost on the way, and the second request has the same key.
    #[test]
    async fn a_shortcut_that_repeats_its_request_saves_once(fixture: ApiFixture) {
        let service = fixture.start().await;
        let (head, body) = recipe(&service.token, "ios-1");
        let (address, length) = (service.address, body.len());
        let lost = format!("{}\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}", head.join("\r\n"));
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(lost.as_bytes()).await.unwrap();
        while service.count().await == 0 {
            look_again().await;
        }
        drop(connection);

        let again = step(&service, &service.token, "ios-1").send().await;
        let Outcome::Saved(id) = outcome(&again) else { panic!("{again:?}") };
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        let saved = service.bookmark(&id).await;
        assert_eq!((&saved["created_from"], &saved["url"]), (&json!("ios"), &json!("https://example.com/shared")));

        // The person shares the page again: another key, and the first bookmark.
        let later = step(&service, &service.token, "ios-2").send().await;
        assert_eq!(outcome(&later), Outcome::Saved(id));
        assert_eq!(service.count().await, 1);
    }

    /// The body alone says whether to repeat.
    #[test]
    async fn a_shortcut_reads_what_to_do_from_the_body(fixture: ApiFixture) {
        let service = fixture.start().await;
        let refused = step(&service, "bm_wrong", "ios-1").send().await;
        assert!(matches!(outcome(&refused), Outcome::Show(_)), "{refused:?}");
        service
            .tamper(
                "ALTER TABLE bookmarks ADD CONSTRAINT poison CHECK (url NOT LIKE '%shared%')",
                "CREATE TRIGGER poison BEFORE INSERT ON bookmarks WHEN NEW.url LIKE '%shared%' BEGIN SELECT RAISE(ABORT, 'poison'); END",
            )
            .await;
        let failed = step(&service, &service.token, "ios-1").send().await;
        assert_eq!((failed.status.as_u16(), outcome(&failed)), (503, Outcome::Repeat));
        service.tamper("ALTER TABLE bookmarks DROP CONSTRAINT poison", "DROP TRIGGER poison").await;
        let saved = step(&service, &service.token, "ios-1").send().await;
        assert!(matches!(outcome(&saved), Outcome::Saved(_)), "{saved:?}");
        service.leave_in_flight().await;
        let in_flight = step(&service, &service.token, "ios-1").send().await;
        assert_eq!((in_flight.status.as_u16(), outcome(&in_flight)), (202, Outcome::Repeat));
    }
}
