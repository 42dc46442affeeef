//! The service against the rules of `ichido probe`.
// SPEC F3, A1 to A7.

use std::time::Duration;

use ichido_core::ledger::Profile;
use ichido_http::clock;
use ichido_http::url::HttpUrl;
use ichido_probe::{Bounds, Counter, Target, Verdict};

use crate::api::fixture::{ApiFixture, in_time};

const BOUNDS: Bounds = Bounds {
    max_requests: 2_000,
    max_duration: Duration::from_mins(3),
    timeout: Duration::from_mins(1),
    may_leave: false,
};
/// How often the service is probed; a soak run probes more often.
const RUNS: &str = "ICHIDO_PROBE_RUNS";
/// What the service gives no occasion for: other operations with a key, a way to slow it down or to make it fail. Two saves of
/// one URL are one bookmark, and a body has neither numbers nor unknown members.
const NOT_APPLICABLE: [&str; 12] =
    ["P11", "P12", "P14", "P15", "P17", "P23", "P24", "P25", "P26", "P27", "P28", "P29"];

async fn bookmarks_pass(fixture: ApiFixture) {
    let service = fixture.start().await;
    let other = service.app.add_person("bob").await.unwrap().to_text();
    let bearer = |token: &str| ("Authorization".to_owned(), format!("Bearer {token}"));
    let target = Target {
        url: HttpUrl::parse(&format!("http://{}/", service.address)).unwrap(),
        is_http2: false,
        profile: Profile::Ichido,
        method: "POST".to_owned(),
        path: "/v1/bookmarks".to_owned(),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned()), bearer(&service.token)],
        body: r#"{"title":"{marker}","url":"https://example.org/{unique}"}"#.to_owned(),
        vary: None,
        counter: Some(Counter::Get {
            path: "/v1/bookmarks?limit=100&q={marker}".to_owned(),
            pointer: "/bookmarks".to_owned(),
        }),
        second_identity: Some(bearer(&other)),
        fresh_credential: None,
        other_operation: None,
        provoke: Vec::new(),
        commands: Vec::new(),
        webhook: None,
    };
    let runs: u32 = std::env::var(RUNS).map_or(1, |count| count.parse().expect("a number"));
    for round in 0..runs {
        in_time(bookmarks_pass_once(&target, round)).await;
    }
}

async fn bookmarks_pass_once(target: &Target, round: u32) {
    let report = ichido_probe::run(target, BOUNDS, round.to_be_bytes(), clock::now, |_| ()).await.unwrap();
    for finding in &report.findings {
        let id = &finding.rule.id[4..];
        match &finding.verdict {
            // Whether a duplicate meets the first in flight depends on the machine.
            Verdict::NotApplicable(_) => assert!(id == "P09" || NOT_APPLICABLE.contains(&id), "{finding:?}"),
            verdict => assert!(matches!(verdict, Verdict::Pass(_)), "run {round}: {finding:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bookmarks_pass_the_probe_on_postgres() {
    bookmarks_pass(ApiFixture::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bookmarks_pass_the_probe_on_sqlite() {
    bookmarks_pass(ApiFixture::sqlite()).await;
}
