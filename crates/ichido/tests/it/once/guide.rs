//! Follows the guide to an idempotent endpoint. Every line of its Rust is in this file.

use axum::Router;
use axum::http::{HeaderName, StatusCode};
use axum::routing::post;
use ichido::prelude::*;

type Failed = Box<dyn std::error::Error + Send + Sync>;

async fn create(tx: Tx<Sqlite>, text: String) -> Result<(StatusCode, String), (StatusCode, String)> {
    let insert = sqlx::query_scalar("INSERT INTO notes (text) VALUES ($1) RETURNING id").bind(text);
    let mut connection = tx.lock().await.map_err(failed)?;
    let id: i64 = insert.fetch_one(&mut *connection).await.map_err(failed)?;
    Ok((StatusCode::CREATED, format!("note {id}\n")))
}

fn failed(error: impl std::error::Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
}

async fn app(url: &str) -> Result<Router, Failed> {
    let ichido = Ichido::<Sqlite>::connect(url).await?; // Your database, with Ichido's tables in it.
    let notes = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)";
    sqlx::query(notes).execute(ichido.pool()).await?;
    let once = Once::operation("notes.create")
        .class(Class::Mutate)
        .guarantee(ichido.transactional())
        .identity_header(HeaderName::from_static("x-user"))
        .build(&ichido)?;
    Ok(Router::new().route("/notes", post(create).layer(once)))
}

/// Compiled alone: it takes a port of its own.
mod program {
    #![expect(dead_code, reason = "the program would listen for ever")]

    use super::{Failed, app};

    #[tokio::main]
    async fn main() -> Result<(), Failed> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
        axum::serve(listener, app("sqlite:notes.db").await?).await?;
        Ok(())
    }
}

mod followed {
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt as _;
    use ichido_store::testing::sqlite;
    use tower::ServiceExt as _;

    use super::app;

    const GUIDE: &str = include_str!("../../../../../docs/guides/idempotent-endpoint.md");

    /// The lines of a text, without indentation.
    fn lines(text: &str) -> String {
        text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_code_line_of_guide_is_compiled() {
        let here = lines(include_str!("guide.rs"));
        let blocks: Vec<&str> =
            GUIDE.split("```rust\n").skip(1).map(|part| part.split("```").next().unwrap()).collect();
        assert_eq!(blocks.len(), 4);
        let code: usize =
            blocks.iter().map(|block| block.lines().filter(|line| !line.is_empty()).count()).sum();
        assert!(code <= 35, "the guide has {code} lines of Rust");
        assert!(
            !GUIDE.contains("ichido-core") && !GUIDE.contains("ichido-store"),
            "one crate of ours is enough"
        );
        for block in blocks {
            assert!(here.contains(&lines(block)), "not compiled:\n{block}");
        }
    }

    /// Sends one of the guide's requests. Returns the response as the guide shows it.
    async fn asked(app: &axum::Router, key: Option<&str>, text: &'static str) -> String {
        let mut request = Request::post("/notes").header("x-user", "ann");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = app.clone().oneshot(request.body(Body::from(text)).unwrap()).await.unwrap();
        let replayed = response.headers().get("idempotency-replayed").map(|value| value.to_str().unwrap());
        let replayed = replayed.map(|value| format!("idempotency-replayed: {value}\n")).unwrap_or_default();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        format!("HTTP/1.1 {status}\n{replayed}\n{}", String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn guide_shows_real_responses() {
        let file = sqlite::fresh_file();
        let app = app(&file.url).await.unwrap();
        let answers: Vec<&str> =
            GUIDE.split("```text\n").skip(1).map(|part| part.split("```").next().unwrap()).collect();
        let [first, again] = answers[..] else { panic!("the guide shows two responses") };
        assert_eq!(asked(&app, Some("press-1"), "buy milk").await, first);
        assert_eq!(asked(&app, Some("press-1"), "buy milk").await, again);
        for (key, text, code) in
            [(Some("press-1"), "buy bread", "key_conflict"), (None, "buy milk", "key_missing")]
        {
            let said = format!("\"code\":\"{code}\"");
            assert!(asked(&app, key, text).await.contains(&said) && GUIDE.contains(&said), "{said}");
        }
    }
}
