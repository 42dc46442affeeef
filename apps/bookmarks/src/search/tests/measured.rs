//! How long a search takes, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use ichido_http::server::Stops;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::*;
use crate::app::App;
use crate::people;
use crate::settings::Settings;

/// How many bookmarks there are, and how many words each page has.
const BOOKMARKS: usize = 5_000;
const WORDS: usize = 600;
/// How many are added in one transaction.
const AT_ONCE: usize = 100;
/// How often each query is sent; the first time is not counted.
const ROUNDS: usize = 25;
/// Rare and frequent words, the beginning of a word, Japanese, phrases, tags, and one that finds all.
const QUERIES: [&str; 8] = [
    "fox",
    "f",
    "word17%20word4",
    "%E6%9D%B1%E4%BA%AC",
    "%E4%BA%AC%E9%83%BD%E3%81%AE%E6%A4%9C%E7%B4%A2",
    "%22word3%20word9%22",
    "%23tag3%20fox",
    "example",
];

impl Library {
    async fn fill(&self) {
        let text = |seed: usize| -> String {
            let words = (0..WORDS).map(|at| format!("word{} ", (seed * 31 + at * at * 7) % 5_000));
            words.collect::<Vec<_>>().concat() + "東京都の検索は京都"
        };
        for first in (0..BOOKMARKS).step_by(AT_ONCE) {
            let rows: Vec<[String; 4]> = (first..first + AT_ONCE)
                .map(|at| {
                    let title = format!("A fox number {at} word{}", at % 97);
                    let url = format!("https://site{}.example/{at}", at % 300);
                    [title, format!("tag{}", at % 7), url, text(at)]
                })
                .collect();
            let rows =
                rows.iter().map(|[title, tags, url, text]| [title.as_str(), tags, url, "A summary.", text]);
            self.add(self.person, &rows.collect::<Vec<Fields>>()).await;
        }
    }
}

/// Sends a search and returns how long its response took, to the last byte.
async fn asked(line: &mut SendRequest<Empty<Bytes>>, token: &str, query: &str) -> Duration {
    let request = Request::get(format!("/v1/bookmarks?q={query}")).header("host", "127.0.0.1");
    let request = request.header("authorization", format!("Bearer {token}")).body(Empty::new()).unwrap();
    line.ready().await.unwrap();
    let began = Instant::now();
    let answer = line.send_request(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.into_body().collect().await.unwrap();
    began.elapsed()
}

fn quantiles(times: &mut [Duration]) -> String {
    times.sort();
    let [p50, p95, p99] = [50, 95, 99].map(|percent| times[times.len() * percent / 100]);
    format!("p50 {p50:?}, p95 {p95:?}, p99 {p99:?}")
}

/// Prints how long a search of 5,000 bookmarks takes: `cargo test --release -p bookmarks -- --ignored --nocapture measured`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, without a verdict"]
async fn search_of_5_000_bookmarks_is_measured_over_http() {
    let (database, file) = (postgres::fresh_database().await, sqlite::fresh_file());
    for (name, url) in [("PostgreSQL", &database.url), ("SQLite", &file.url)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = App::open(Settings::new(url, address)).await.unwrap();
        let token = app.add_person("ann").await.unwrap().to_text();
        let person = people::by_name(&app.database, "ann").await.unwrap().id;
        Library { database: AppDatabase::open(url).await.unwrap(), person }.fill().await;
        let served = Arc::clone(&app);
        let serving = tokio::spawn(async move { served.serve(listener, &Stops::default()).await });
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut line, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut all = Vec::new();
        for query in QUERIES {
            let first = asked(&mut line, &token, query).await;
            let mut took = Vec::new();
            for _ in 1..ROUNDS {
                took.push(asked(&mut line, &token, query).await);
            }
            println!("{name}: {query}: first {first:?}, then {}", quantiles(&mut took));
            all.extend(took);
        }
        serving.abort();
        println!("{name}: {} of {}", quantiles(&mut all), all.len());
    }
}
