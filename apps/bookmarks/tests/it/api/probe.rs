//! The service against the rules of `ichido probe`.
// SPEC F3, A1 to A7.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use http_for_tests::CommandServer;
use ichido::ledger::Profile;
use ichido_http::clock;
use ichido_http::url::HttpUrl;
use ichido_probe::{Bounds, Command, Counter, Target, Verdict};
use ichido_store::Store;
use ichido_store::testing::stoppable::StoppableDatabase;
use serde_json::json;
use tokio::sync::Mutex;

use crate::api::fixture::{ApiRequest, extraction, in_time};
use crate::kill::add_person;
use crate::kill::service::KilledService;

const BOUNDS: Bounds = Bounds {
    max_requests: 2_000,
    max_duration: Duration::from_mins(3),
    timeout: Duration::from_mins(1),
    may_leave: false,
};
/// How often the service is probed; a soak run probes more often.
const RUNS: &str = "ICHIDO_PROBE_RUNS";

/// A rule that does not apply, and why not.
type NotApplicable = (&'static str, &'static str);

/// The rules that depend on the machine.
const RARE: [NotApplicable; 2] = [
    ("P09", "a save takes milliseconds, so a duplicate rarely meets one in flight"),
    ("P25", "a save takes milliseconds, so a kill rarely meets one in flight"),
];

/// The rules that do not apply.
const NOT_APPLICABLE: [NotApplicable; 10] = [
    RARE[0],
    ("P11", "a save fetches nothing, so no request makes it slow"),
    ("P14", "a save has no numbers, and refuses unknown members"),
    ("P15", "two saves of one URL are one bookmark, whatever their keys"),
    ("P23", "a save and its response are one transaction, and nothing comes after"),
    ("P24", "saves are not limited"),
    RARE[1],
    ("P26", "no request makes a save outlast a lease"),
    ("P28", "two saves of one URL are one bookmark, so nothing shows that a key expired"),
    ("P29", "a response is a few hundred bytes"),
];

/// Signs a person in and returns the cookie that their browser then sends.
async fn cookie(address: SocketAddr, token: &str) -> (String, String) {
    let sign_in = ApiRequest::to(address, "/session").method(Method::POST).json(&json!({ "token": token }));
    let answer = sign_in.send().await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    let set = answer.header("set-cookie").unwrap();
    ("Cookie".to_owned(), set.split(';').next().unwrap().to_owned())
}

/// Saves a bookmark and returns the path that processes it again: an operation that takes any body.
async fn reprocess(address: SocketAddr, token: &str) -> String {
    let save = ApiRequest::to(address, "/v1/bookmarks").method(Method::POST);
    let save = save.header("authorization", &format!("Bearer {token}")).header("idempotency-key", "before");
    let saved = save.json(&json!({ "url": "https://example.org/" })).send().await;
    assert_eq!(saved.status, StatusCode::CREATED, "{saved:?}");
    format!("/v1/bookmarks/{}/reprocess", saved.text("/id"))
}

async fn bookmarks_pass(database: StoppableDatabase) {
    let database = Arc::new(database);
    let url = &database.url;
    let (ann, bob) = (add_person(url, "ann").await, add_person(url, "bob").await);
    // No page is fetched.
    let store = Store::open(url, 1).await.unwrap();
    store.queues().pause(&extraction(), true, Some("a case")).await.unwrap();
    drop(store);
    let service = KilledService::start_at(url, "127.0.0.1:0".parse().unwrap()).await;
    let address = service.address();
    let service = Arc::new(Mutex::new(Some(service)));
    let acting = Arc::clone(&database);
    let commands = CommandServer::start(move |word| {
        let (service, database) = (Arc::clone(&service), Arc::clone(&acting));
        async move {
            match Command::parse(&word).expect("a command") {
                Command::Crash => {
                    let mut service = service.lock().await;
                    let address = service.take().unwrap().killed().await;
                    *service = Some(KilledService::start_at(&database.url, address).await);
                }
                Command::Outage => database.stop().await,
                Command::Recover => database.start_again().await,
                Command::Expire => panic!("it was not passed"),
            }
            String::new()
        }
    })
    .await;
    // Signed in twice: both sessions are valid, and both are ann.
    let (first, second) = (cookie(address, &ann).await, cookie(address, &ann).await);
    let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let target = Target {
        url: HttpUrl::parse(&format!("http://{address}/")).unwrap(),
        is_http2: false,
        profile: Profile::Ichido,
        method: "POST".to_owned(),
        path: "/v1/bookmarks".to_owned(),
        headers: vec![line("Content-Type", "application/json"), line("Sec-Fetch-Site", "same-origin"), first],
        body: r#"{"title":"{marker}","url":"https://example.org/{unique}"}"#.to_owned(),
        vary: None,
        counter: Some(Counter::Get {
            path: "/v1/bookmarks?limit=100&q={marker}".to_owned(),
            pointer: "/bookmarks".to_owned(),
        }),
        second_identity: Some(cookie(address, &bob).await),
        fresh_credential: Some(second),
        other_operation: Some(("POST".to_owned(), reprocess(address, &ann).await)),
        provoke: Vec::new(),
        commands: [Command::Crash, Command::Outage, Command::Recover]
            .map(|command| (command, commands.command(command.as_str())))
            .to_vec(),
        webhook: None,
    };
    let runs: u32 = std::env::var(RUNS).map_or(1, |count| count.parse().expect("a number"));
    for round in 0..runs {
        in_time(bookmarks_pass_once(&target, round)).await;
    }
}

async fn bookmarks_pass_once(target: &Target, round: u32) {
    let report = ichido_probe::run(target, BOUNDS, round.to_be_bytes(), clock::now, |_| ()).await.unwrap();
    let mut skipped = Vec::new();
    for finding in &report.findings {
        match &finding.verdict {
            Verdict::NotApplicable(_) => skipped.push(&finding.rule.id[4..]),
            verdict => assert!(matches!(verdict, Verdict::Pass(_)), "run {round}: {finding:?}"),
        }
    }
    let mut expected: Vec<&str> = NOT_APPLICABLE.iter().map(|(rule, _)| *rule).collect();
    expected.retain(|rule| skipped.contains(rule) || !RARE.iter().any(|(rare, _)| rare == rule));
    assert_eq!(skipped, expected, "run {round}: {NOT_APPLICABLE:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bookmarks_pass_the_probe_on_postgres() {
    bookmarks_pass(StoppableDatabase::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bookmarks_pass_the_probe_on_sqlite() {
    bookmarks_pass(StoppableDatabase::sqlite()).await;
}
