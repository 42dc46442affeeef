//! The layer against the rules of `ichido probe`.
// Spec: F3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, Response, StatusCode};
use axum::routing::{get, post};
use ichido::once::{Class, Guarantee, Once};
use ichido_core::ledger::Profile;
use ichido_http::clock;
use ichido_http::url::HttpUrl;
use ichido_probe::{Bounds, Command, Condition, Counter, Report, Target, Verdict};
use tokio::net::TcpListener;

use super::fixture::{HandlerRun, Mode, OnceFixture, SHORT_LEASE};

const BOUNDS: Bounds = Bounds {
    max_requests: 2_000,
    max_duration: Duration::from_mins(3),
    timeout: Duration::from_mins(1),
    may_leave: false,
};
/// How often each is probed; a soak run probes more often.
const RUNS: &str = "ICHIDO_PROBE_RUNS";
/// Longer than any key is kept.
const AFTER_KEYS: Duration = Duration::from_hours(100);
const MAX_STORED_BYTES: usize = 1_000;

/// Runs a handler that behaves as the header `x-test` says.
async fn handle(run: HandlerRun) -> Response<Body> {
    let condition = run.request.headers().get("x-test").map(|value| value.to_str().unwrap().to_owned());
    if condition.as_deref() == Some("limit") {
        return answer(StatusCode::TOO_MANY_REQUESTS, "limited".to_owned());
    }
    if condition.as_deref() == Some("outlast") {
        // Before it writes: SQLite's only writer must not wait as long.
        tokio::time::sleep(SHORT_LEASE + Duration::from_secs(1)).await;
    }
    run.order().await;
    match condition.as_deref() {
        // The probe counts on a handler that takes its time.
        Some("slow") => tokio::time::sleep(Duration::from_secs(1)).await,
        Some("fail") => return answer(StatusCode::INTERNAL_SERVER_ERROR, "failed".to_owned()),
        Some("large") => return answer(StatusCode::CREATED, "x".repeat(2 * MAX_STORED_BYTES)),
        _ => (),
    }
    let number = run.number;
    let mut response = answer(StatusCode::CREATED, format!("{{\"id\":\"order-{number:08}\"}}"));
    let location = format!("/orders/{number}").parse().unwrap();
    response.headers_mut().insert("location", location);
    response
}

fn answer(status: StatusCode, body: String) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body)).unwrap()
}

/// The nodes of one database, one for each guarantee.
///
/// Time passes for all of them, as it does where they share the database's clock. The maintenance of a node that is ahead would
/// delete the keys of the others.
#[derive(Clone)]
struct ProbedNodes(Arc<[OnceFixture]>);

impl ProbedNodes {
    async fn start<const N: usize>(fixture: OnceFixture, guarantees: [Mode; N]) -> [(Self, usize, Mode); N] {
        let mut nodes = Vec::new();
        for _ in 1..N {
            nodes.push(fixture.another_node().await);
        }
        nodes.push(fixture);
        let nodes = Self(nodes.into());
        std::array::from_fn(|index| (nodes.clone(), index, guarantees[index]))
    }

    fn pass(&self, time: Duration) {
        self.0.iter().for_each(|node| node.pass(time));
    }
}

/// Serves two operations behind the layer, a count of effects, and a way to let time pass.
async fn serve(nodes: &ProbedNodes, index: usize, mode: Mode, profile: Profile) -> SocketAddr {
    let fixture = &nodes.0[index];
    let guarantee = match mode {
        Mode::Transactional | Mode::Claimed => Guarantee::Transactional(fixture.business.clone()),
        Mode::Keyed => Guarantee::Keyed,
        Mode::Opaque => Guarantee::None,
    };
    let once = |operation: &str| {
        let once = Once::operation(operation)
            .class(Class::Mutate)
            .guarantee(guarantee.clone())
            .identity_header(HeaderName::from_static("x-user"))
            .lease(SHORT_LEASE)
            .max_response_bytes(MAX_STORED_BYTES)
            .profile(profile);
        if mode == Mode::Claimed { once.claim_first() } else { once }
    };
    let endpoint = |operation: &str| fixture.serve(once(operation), fixture.handler(handle));
    let (counting, passing) = (nodes.clone(), nodes.clone());
    let count = move || {
        let nodes = counting.clone();
        async move { format!("{{\"total\":{}}}", nodes.0[index].effects().await) }
    };
    let expire = move || {
        let nodes = passing.clone();
        async move { nodes.pass(AFTER_KEYS) }
    };
    let router = Router::new()
        .route_service("/orders", endpoint("orders.create"))
        .route_service("/refunds", endpoint("refunds.create"))
        .route("/count", get(count))
        .route("/expire", post(expire));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

fn line(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn target(address: SocketAddr, profile: Profile) -> Target {
    let url = format!("http://{address}/");
    let conditions =
        [Condition::Slow, Condition::Fail, Condition::Limit, Condition::Large, Condition::Outlast];
    Target {
        url: HttpUrl::parse(&url).unwrap(),
        is_http2: false,
        profile,
        method: "POST".to_owned(),
        path: "/orders".to_owned(),
        headers: vec![
            line("Content-Type", "application/json"),
            line("X-User", "alice"),
            line("Authorization", "Bearer of-this-morning"),
        ],
        body: r#"{"note":"first","qty":1}"#.to_owned(),
        vary: None,
        counter: Some(Counter::Get { path: "/count".to_owned(), pointer: "/total".to_owned() }),
        second_identity: Some(line("X-User", "bob")),
        fresh_credential: Some(line("Authorization", "Bearer of-this-evening")),
        other_operation: Some(line("POST", "/refunds")),
        provoke: conditions.map(|condition| (condition, line("X-Test", condition.as_str()))).to_vec(),
        commands: vec![(Command::Expire, format!("curl -sS -f -X POST {url}expire"))],
        webhook: None,
    }
}

/// The rules that are not kept, and those that do not apply.
fn exceptions(report: &Report) -> (Vec<(&'static str, &Verdict)>, Vec<&'static str>) {
    let mut broken = Vec::new();
    let mut skipped = Vec::new();
    for finding in &report.findings {
        match &finding.verdict {
            Verdict::Pass(_) => (),
            Verdict::NotApplicable(_) => skipped.push(finding.rule.id),
            verdict => broken.push((finding.rule.id, verdict)),
        }
    }
    (broken, skipped)
}

async fn assert_passes(
    (nodes, index, mode): (ProbedNodes, usize, Mode),
    profile: Profile,
    not_applicable: &[&str],
) {
    let address = serve(&nodes, index, mode, profile).await;
    let runs: u8 = std::env::var(RUNS).map_or(1, |count| count.parse().expect("a number"));
    for round in 0..runs {
        // Keys of their own: the guarantees share a database.
        let random = [mode as u8, profile as u8, 0, round];
        let report = ichido_probe::run(&target(address, profile), BOUNDS, random, clock::now, |_| ()).await;
        let report = report.unwrap();
        let (broken, skipped) = exceptions(&report);
        assert_eq!(broken, [], "{mode:?} as {profile}, run {round}");
        assert_eq!(skipped, not_applicable, "{mode:?} as {profile}, run {round}");
    }
}

/// What the test gives no occasion for: commands that stop the process or its store. The bookmarks service and the proxy, which
/// contain the layer, are probed with both.
const OF_ICHIDO: [&str; 2] = ["ICH-P25", "ICH-P27"];
/// The same, and what the protocol does not say.
const OF_ACP: [&str; 4] = ["ICH-P03", "ICH-P05", "ICH-P25", "ICH-P27"];

async fn passes_with_each_guarantee(fixture: OnceFixture) {
    for node in ProbedNodes::start(fixture, [Mode::Claimed, Mode::Opaque, Mode::Transactional]).await {
        assert_passes(node, Profile::Ichido, &OF_ICHIDO).await;
    }
}

/// A 5xx must run afresh, so only an effect that was rolled back can be safe.
async fn passes_as_acp(fixture: OnceFixture) {
    for node in ProbedNodes::start(fixture, [Mode::Claimed, Mode::Transactional]).await {
        assert_passes(node, Profile::Acp, &OF_ACP).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layer_passes_the_probe_on_postgres() {
    passes_with_each_guarantee(OnceFixture::postgres().await).await;
    passes_as_acp(OnceFixture::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layer_passes_the_probe_on_sqlite() {
    passes_with_each_guarantee(OnceFixture::sqlite().await).await;
    passes_as_acp(OnceFixture::sqlite().await).await;
}
