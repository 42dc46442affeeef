//! The dashboard among the routes of another app, and what its pages cost the database. Counted at sqlx, without a clock.

// Spec: H9.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use http::header::{COOKIE, HOST, LOCATION, SET_COOKIE};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use ichido_core::key::IdempotencyKey;
use ichido_server::dashboard;
use ichido_store::Store;
use ichido_store::message::{NewMessage, QueueName};
use ichido_store::testing::{postgres, sqlite};
use ichido_store::token::TokenRole;
use tower_service::Service as _;
use uuid::Uuid;

use crate::mounting::{config, token_of};
use process_for_tests::own_process;
use process_for_tests::statement_log::{Logged, for_each_statement};

/// Enough for several pages of messages.
const MANY: u32 = 130;
/// Maximum statements of the sample that all viewers share.
const SAMPLE: u64 = 14;
/// Maximum statements of an overview that finds nothing sampled.
const ONE_OVERVIEW: u64 = 4 + SAMPLE;
/// Maximum statements beside those of a page: the session with its time, the settings of a new connection, and those of other tasks,
/// such as the tokens.
const MAX_OTHERS: u64 = 4;

static STATEMENTS: AtomicU64 = AtomicU64::new(0);
static ROWS: AtomicU64 = AtomicU64::new(0);

fn add(statement: &Logged) {
    STATEMENTS.fetch_add(1, Ordering::SeqCst);
    ROWS.fetch_add(statement.rows, Ordering::SeqCst);
}

pub(crate) struct Browser {
    pages: Router,
    cookie: Option<HeaderValue>,
}

impl Browser {
    pub(crate) async fn send(
        &mut self,
        method: Method,
        target: &str,
        form: String,
    ) -> (StatusCode, http::HeaderMap, String) {
        let mut request = Request::new(Body::from(form));
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().unwrap();
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        request.headers_mut().insert("sec-fetch-site", HeaderValue::from_static("same-origin"));
        request.headers_mut().extend(self.cookie.clone().map(|cookie| (COOKIE, cookie)));
        let (head, body) = self.pages.call(request).await.unwrap().into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap();
        (head.status, head.headers, text)
    }

    pub(crate) async fn signed_in(store: &Store, path: &str) -> Self {
        let pages = dashboard::router(store.clone(), &config(), path).await;
        let token = token_of(store, TokenRole::Operator).await;
        let mut browser = Self { pages, cookie: None };
        let form = format!("token={token}");
        let (status, headers, text) = browser.send(Method::POST, &format!("{path}/sign-in"), form).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{text}");
        let cookie = headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap();
        browser.cookie = Some(HeaderValue::try_from(cookie).unwrap());
        browser
    }
}

async fn enqueue(store: &Store, count: u32) -> Uuid {
    let mut last = Uuid::nil();
    for number in 0..count {
        let (queue, key) = (
            QueueName::parse("orders").unwrap(),
            IdempotencyKey::parse(&format!("k{count}-{number}")).unwrap(),
        );
        last = store
            .messages()
            .enqueue(NewMessage::new(queue, "alice", key, b"{}".to_vec()))
            .await
            .unwrap()
            .id();
    }
    last
}

/// Asserts that a page costs the same with few and with many messages.
async fn case(store: Store) {
    let mut browser = Browser::signed_in(&store, "").await;
    let mut id = enqueue(&store, 1).await;
    for count in [1, MANY] {
        if 1 < count {
            id = enqueue(&store, count).await;
        }
        let pages = [
            // Counts, pauses, parallelisms, the oldest of all queues, facts, keys, nodes, alerts, dead letters, failure groups, the time
            // four times; and three series: of the charts, of the last minutes, and the rates of all queues with the time.
            ("/".to_owned(), ONE_OVERVIEW),
            ("/?range=24h".to_owned(), ONE_OVERVIEW),
            // From the same sample as the overview.
            ("/queues".to_owned(), 2 + SAMPLE),
            ("/queues/orders".to_owned(), 3 + SAMPLE),
            // The paces of all destinations, the time, and the rates with the time.
            ("/destinations".to_owned(), 4),
            ("/destinations/shop".to_owned(), 3),
            ("/models".to_owned(), 3),
            ("/nodes".to_owned(), SAMPLE),
            // Parts of 32 messages and the groups; and for the suggestions, the sample of the overview.
            ("/messages".to_owned(), 5 + SAMPLE),
            ("/messages?q=state:dead".to_owned(), 5 + SAMPLE),
            // The message and its events are read by three routes of the API. It waits: the pauses, the paces, and the time.
            (format!("/messages/{id}"), 9),
            // Without groups it says whether letters wait to be grouped, from the sample.
            ("/dead-letters".to_owned(), 1 + SAMPLE),
            ("/dead-letters?state=dead".to_owned(), 4),
            // The time, the claims, and the entries.
            ("/operations".to_owned(), 3),
            ("/alerts".to_owned(), 2),
            ("/help".to_owned(), 0),
        ];
        for (target, max) in pages {
            let before = STATEMENTS.load(Ordering::SeqCst);
            ROWS.store(0, Ordering::SeqCst);
            let (status, _, text) = browser.send(Method::GET, &target, String::new()).await;
            let statements = STATEMENTS.load(Ordering::SeqCst) - before;
            assert_eq!(status, StatusCode::OK, "{target}: {text}");
            assert!(
                statements <= max + MAX_OTHERS,
                "{target} made {statements} statements with {count} messages"
            );
            let rows = ROWS.load(Ordering::SeqCst);
            assert!(rows <= 200, "{target} read {rows} rows with {count} messages");
        }
    }
}

/// Asserts that many who look at once cost what one costs.
async fn many_viewers(store: Store) {
    let mut browser = Browser::signed_in(&store, "").await;
    // Reads the session; the store is asked about each one seldom.
    browser.send(Method::GET, "/help", String::new()).await;
    let view = || {
        let mut viewer = Browser { pages: browser.pages.clone(), cookie: browser.cookie.clone() };
        tokio::spawn(async move { viewer.send(Method::GET, "/", String::new()).await.0 })
    };
    let before = STATEMENTS.load(Ordering::SeqCst);
    let viewers: Vec<_> = (0..50).map(|_| view()).collect();
    for viewer in viewers {
        assert_eq!(viewer.await.unwrap(), StatusCode::OK);
    }
    let statements = STATEMENTS.load(Ordering::SeqCst) - before;
    // Those who come after a read began, and find its sample too old, share the next one.
    assert!(statements <= 2 * ONE_OVERVIEW + MAX_OTHERS, "50 viewers made {statements} statements");
}

#[test]
fn fifty_viewers_cost_the_store_no_more_than_one() {
    own_process::assert_passes("dashboard::viewers");
}

/// Not a test on its own: it changes the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above in its own process"]
async fn viewers() {
    if !own_process::is_own() {
        return;
    }
    for_each_statement(add);
    let file = sqlite::fresh_file();
    many_viewers(Store::open(&file.url, 2).await.unwrap()).await;
    let database = postgres::fresh_database().await;
    many_viewers(Store::open(&database.url, 2).await.unwrap()).await;
}

#[test]
fn each_page_costs_a_fixed_number_of_statements() {
    own_process::assert_passes("dashboard::child");
}

/// Not a test on its own: it changes the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above in its own process"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    for_each_statement(add);
    // One after the other: the counts belong to the process.
    let file = sqlite::fresh_file();
    case(Store::open(&file.url, 2).await.unwrap()).await;
    let database = postgres::fresh_database().await;
    case(Store::open(&database.url, 2).await.unwrap()).await;
}

#[tokio::test]
async fn the_dashboard_works_below_a_path_of_a_foreign_app() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let mut stranger =
        Browser { pages: dashboard::router(store.clone(), &config(), "/ops/").await, cookie: None };
    let (status, headers, _) = stranger.send(Method::GET, "/ops", String::new()).await;
    assert_eq!(
        (status, headers[LOCATION].to_str().unwrap()),
        (StatusCode::SEE_OTHER, "/ops/sign-in?next=%2F")
    );

    let mut browser = Browser::signed_in(&store, "/ops").await;
    let (status, _, text) = browser.send(Method::GET, "/ops", String::new()).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(
        text.contains("href=\"/ops/messages\"") && text.contains("src=\"/ops/assets/dashboard-"),
        "{text}"
    );
    let own = ["/ops", "/openapi.json", "/errors", "#"];
    let links: Vec<&str> = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for link in links {
        assert!(own.iter().any(|start| link.starts_with(start)), "{link}");
    }
    let asset = text
        .split("href=\"")
        .find_map(|rest| rest.split('"').next().filter(|link| link.contains("/dashboard-")))
        .unwrap();
    let (status, headers, _) = browser.send(Method::GET, asset, String::new()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(headers["cache-control"].to_str().unwrap().contains("immutable"));
}
