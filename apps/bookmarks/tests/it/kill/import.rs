//! An import that is killed in the middle and sent again makes each link one bookmark.

use std::net::SocketAddr;

use bookmarks::{App, Settings};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ichido::store::message::QueueName;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::service::KilledService;
use super::{postgres, sqlite};

/// How many links the file has: in CI enough for several transactions.
const LINKS: usize = 2_000;
/// How many in `cargo xtask soak`.
const MANY_LINKS: usize = 5_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_killed_in_the_middle_and_repeated_makes_each_link_once_on_sqlite() {
    let file = sqlite::fresh_file();
    imported_once(&file.url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_killed_in_the_middle_and_repeated_makes_each_link_once_on_postgres() {
    let database = postgres::durable_database().await;
    imported_once(&database.url).await;
}

async fn imported_once(store: &str) {
    let count = if super::is_soak() { MANY_LINKS } else { LINKS };
    let token = super::add_person(store, "ann").await;
    // The links are only saved, and no page is read.
    let app = App::open(Settings::new(store, "127.0.0.1:0".parse().unwrap())).await.unwrap();
    app.store().queues().pause(&QueueName::parse("extraction").unwrap(), true, Some("a case")).await.unwrap();
    app.close().await;
    let links: Vec<String> = (0..count)
        .map(|number| {
            format!("<DT><A HREF=\"https://example.com/{number}\" ADD_DATE=\"{number}\">Link {number}</A>\n")
        })
        .collect();
    let links = links.concat();
    let service = KilledService::start_at(store, "127.0.0.1:0".parse().unwrap()).await;
    let address = service.address();
    let sending = tokio::spawn(send(address, token.clone(), links.clone()));
    while total(address, &token).await == 0 {
        tokio::task::yield_now().await;
    }
    service.killed().await;
    assert!(sending.await.unwrap().is_none(), "the kill was too late");

    let service = KilledService::start_at(store, address).await;
    let before = total(address, &token).await;
    assert!(0 < before && before < count as u64, "{before} of {count} links were saved");
    for created in [count as u64 - before, 0] {
        let imported = send(address, token.clone(), links.clone()).await.unwrap();
        assert_eq!(
            imported,
            json!({ "found": count, "created": created, "existing": count as u64 - created, "skipped": 0 })
        );
        assert_eq!(total(address, &token).await, count as u64);
    }
    println!("killed after {before} of {count} links");
    service.killed().await;
}

/// Sends the file, and returns the response if one comes.
async fn send(address: SocketAddr, token: String, file: String) -> Option<Value> {
    let request = Request::post("/v1/import").header("content-type", "text/html");
    answer(address, &token, request.body(Full::new(Bytes::from(file))).unwrap()).await
}

async fn total(address: SocketAddr, token: &str) -> u64 {
    let request = Request::get("/v1/bookmarks?limit=1").body(Full::default()).unwrap();
    answer(address, token, request).await.unwrap()["total"].as_u64().unwrap()
}

async fn answer(address: SocketAddr, token: &str, mut request: Request<Full<Bytes>>) -> Option<Value> {
    request.headers_mut().insert("host", address.to_string().parse().unwrap());
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut line, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let body = line.send_request(request).await.ok()?.into_body().collect().await.ok()?.to_bytes();
    Some(serde_json::from_slice(&body).unwrap())
}
