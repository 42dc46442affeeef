//! Our own server and proxy keep the rules.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_for_tests::CommandServer;
use ichido_store::testing::stoppable::StoppableDatabase;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::command::probe;
use crate::folder::{self, TempFolder};
use crate::http_message::HttpMessage;
use crate::proxy::identity::{SECRET, seconds_from_now};
use crate::proxy::program::ProxyProcess;
use crate::proxy::service::{FakeService, ServiceAction, answer};
use crate::proxy::token::hs256;
use crate::serve::client::{RawRequest, send};
use crate::serve::program::{ServeProcess, ichido};

/// How often each is probed; a soak run probes more often.
const RUNS: &str = "ICHIDO_PROBE_RUNS";
/// The proxy's lease. The probe waits it out twice.
const LEASE: Duration = Duration::from_secs(3);
/// More than the proxy stores.
const LARGE_BYTES: usize = (1 << 20) + 1;

fn runs() -> u32 {
    std::env::var(RUNS).map_or(1, |count| count.parse().expect("a number"))
}

/// A rule that does not apply to a service, and why not.
type NotApplicable = (&'static str, &'static str);

/// Probes a target, and expects that it keeps every rule, except exactly those that do not apply.
async fn assert_passes(arguments: &[String], not_applicable: &[NotApplicable]) {
    for round in 0..runs() {
        let output = probe(arguments).await;
        let report: Value =
            serde_json::from_str(&output.out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let mut skipped = Vec::new();
        for finding in report["runs"][0]["findings"].as_array().unwrap() {
            match finding["verdict"].as_str() {
                Some("not applicable") => {
                    skipped.push(finding["rule"].as_str().unwrap().strip_prefix("ICH-").unwrap());
                }
                verdict => assert_eq!(verdict, Some("pass"), "run {round}: {finding:#}"),
            }
        }
        let mut expected = not_applicable.iter().map(|(rule, _)| *rule).collect::<Vec<_>>();
        expected.retain(|rule| skipped.contains(rule) || !RARE.iter().any(|(rare, _)| rare == rule));
        assert_eq!(skipped, expected, "run {round}: {not_applicable:?}");
        assert_eq!(output.code, Some(0), "{}", output.err);
    }
}

/// The rules that depend on the machine, where a service cannot be slowed down.
const RARE: [NotApplicable; 2] = [
    ("P09", "it responds in milliseconds, so a duplicate rarely meets a request in flight"),
    ("P25", "it responds in milliseconds, so a kill rarely meets a request in flight"),
];

/// Why the rules that need a slow or failing service do not apply to the server.
const OF_SERVER: [NotApplicable; 8] = [
    RARE[0],
    ("P11", "it stores a message and responds at once: no request of a caller makes that slow"),
    ("P23", "its effect and its response are one transaction, and nothing comes after"),
    ("P24", "no request makes it refuse with 429 first"),
    RARE[1],
    ("P26", "a message is one statement, under no lease"),
    ("P28", "a key lasts as long as its message, and no command ends that early"),
    ("P29", "its responses are a few hundred bytes"),
];

const TWO_QUEUES: &str = "[destinations.broker]\nkind = \"mock\"\n[queues.orders]\ndestination = \"broker\"\n\
                          [queues.refunds]\ndestination = \"broker\"\n";

/// `ichido serve` on a database that can be stopped, as a process that can be killed.
struct ProbedServer {
    folder: TempFolder,
    database: StoppableDatabase,
    process: tokio::sync::Mutex<Option<ServeProcess>>,
}

impl ProbedServer {
    fn start_on(&self, listen: &str) -> ServeProcess {
        let flags = ["--store", &self.database.url, "--listen", listen];
        ServeProcess::start(self.folder.path(), &flags)
    }

    /// Creates a token; returns its text.
    fn token(&self, arguments: &[&str]) -> String {
        let mut command = ichido(self.folder.path());
        command.args(["token", "create"]).args(arguments).args(["--store", &self.database.url]);
        let output = command.output().expect("the binary starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Kills it, and starts it again at the same address.
    async fn crash(self: Arc<Self>) {
        let mut process = self.process.lock().await;
        let mut dying = process.take().unwrap();
        dying.signal("KILL");
        dying.wait().await;
        let (server, listen) = (Arc::clone(&self), dying.address.to_string());
        *process = Some(spawn_blocking(move || server.start_on(&listen)).await.unwrap());
    }
}

async fn server_passes(database: StoppableDatabase) {
    let folder = folder::fresh();
    folder.write("ichido.toml", TWO_QUEUES);
    let server = Arc::new(ProbedServer { folder, database, process: tokio::sync::Mutex::default() });
    let of_shop = |name: &str, shop: &str| {
        server.token(&[
            name,
            "--role",
            "producer",
            "--identity",
            shop,
            "--queue",
            "orders",
            "--queue",
            "refunds",
        ])
    };
    let (till, renewed, other) =
        (of_shop("till", "shop-1"), of_shop("new till", "shop-1"), of_shop("other", "shop-2"));
    let screen = server.token(&["screen", "--role", "viewer"]);
    let process = server.start_on("127.0.0.1:0");
    let address = process.address;
    *server.process.lock().await = Some(process);

    let acting = Arc::clone(&server);
    let commands = CommandServer::start(move |word| {
        let (server, screen) = (Arc::clone(&acting), screen.clone());
        async move {
            match word.split_once('/') {
                Some(("count", marker)) => return count(address, &screen, marker).await,
                _ if word == "crash" => server.crash().await,
                _ if word == "outage" => server.database.stop().await,
                _ => server.database.start_again().await,
            }
            String::new()
        }
    })
    .await;
    let url = format!("http://{address}/v1/queues/orders/messages");
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let arguments = [
        (url, r#"{"note":"first","qty":1,"ref":"{marker}"}"#.to_owned()),
        ("--header".to_owned(), bearer(&till)),
        ("--count-command".to_owned(), commands.command("count/$PROBE_MARKER")),
        ("--other-operation".to_owned(), "POST /v1/queues/refunds/messages".to_owned()),
        ("--second-identity".to_owned(), bearer(&other)),
        ("--fresh-credential".to_owned(), bearer(&renewed)),
        ("--crash".to_owned(), commands.command("crash")),
        ("--outage".to_owned(), commands.command("outage")),
        ("--recover".to_owned(), commands.command("recover")),
    ];
    assert_passes(&flags(arguments), &OF_SERVER).await;
}

/// Returns the arguments of the probe: first URL and body, then flags with their values.
fn flags<const N: usize>(pairs: [(String, String); N]) -> Vec<String> {
    let mut all = vec!["--json".to_owned()];
    for (index, (flag, value)) in pairs.into_iter().enumerate() {
        all.push(flag);
        all.extend((index == 0).then(|| "--body".to_owned()));
        all.push(value);
    }
    all
}

/// Counts the messages with a marker, as the dashboard's user sees them.
async fn count(address: SocketAddr, token: &str, marker: &str) -> String {
    let path = format!("/v1/messages?queue=orders&field=/ref&value={marker}&limit=100");
    let listed = send(address, &RawRequest::get(&path).token(token)).await.json();
    listed["messages"].as_array().unwrap_or_else(|| panic!("{listed}")).len().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_passes_the_probe_on_sqlite() {
    server_passes(StoppableDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_passes_the_probe_on_postgres() {
    server_passes(StoppableDatabase::postgres().await).await;
}

/// What the service behind the proxy does with a key that it has seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeenKeys {
    /// It does each order it gets.
    Run,
    /// It does each order once, as `--guarantee keyed` requires.
    Deduplicate,
}

/// A service that counts its orders, and behaves as the header `x-test` says.
async fn counting(seen: SeenKeys) -> FakeService {
    let (done, orders) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
    let script = move |request: &HttpMessage| {
        if request.first.starts_with("GET ") {
            return ServiceAction::ok(&format!("{{\"total\":{}}}", done.load(Ordering::SeqCst)));
        }
        let condition = request.one("x-test").unwrap_or_default();
        if condition == "limit" {
            return ServiceAction::status("429 Too Many Requests");
        }
        let run = || done.fetch_add(1, Ordering::SeqCst);
        let number = match (seen, request.one("idempotency-key")) {
            (SeenKeys::Deduplicate, Some(key)) => {
                let name = (request.first.clone(), key.to_owned());
                *orders.lock().unwrap().entry(name).or_insert_with(run)
            }
            _ => run(),
        };
        let created = |body: &str| {
            let json = [("content-type", "application/json"), ("location", "/orders/1")];
            answer("201 Created", &json, body)
        };
        let order = created(&format!("{{\"id\":\"order-{number:08}\"}}"));
        match condition {
            "slow" => ServiceAction::AnswerAfter(Duration::from_secs(1), order),
            "outlast" => ServiceAction::AnswerAfter(LEASE + Duration::from_secs(1), order),
            "fail" => ServiceAction::status("500 Internal Server Error"),
            "large" => ServiceAction::Answer(created(&"x".repeat(LARGE_BYTES))),
            _ => ServiceAction::Answer(order),
        }
    };
    FakeService::start(move |request, _| script(request)).await
}

/// `ichido proxy` on a database that can be stopped, as a process that can be killed.
struct ProbedProxy {
    folder: TempFolder,
    database: Arc<StoppableDatabase>,
    service: SocketAddr,
    profile: &'static str,
    guarantee: &'static str,
    process: tokio::sync::Mutex<Option<ProxyProcess>>,
}

impl ProbedProxy {
    fn start_on(&self, listen: SocketAddr) -> ProxyProcess {
        let key = self.folder.write("key", SECRET);
        let lease = format!("{}s", LEASE.as_secs());
        let flags = [
            ["--store", &self.database.url],
            ["--identity", "jwt:sub"],
            ["--jwt-algorithm", "HS256"],
            ["--jwt-key", &key],
            ["--jwt-audience", "orders"],
            ["--profile", self.profile],
            ["--guarantee", self.guarantee],
            ["--lease", &lease],
            ["--operation", "POST /orders"],
            ["--operation", "POST /refunds"],
        ];
        ProxyProcess::start_on(listen, "adapter", self.service, flags.as_flattened())
    }

    /// Kills it, and starts it again at the same address.
    async fn crash(self: Arc<Self>) {
        let mut process = self.process.lock().await;
        let dying = process.take().unwrap();
        let listen = dying.address;
        dying.kill().await;
        let proxy = Arc::clone(&self);
        *process = Some(spawn_blocking(move || proxy.start_on(listen)).await.unwrap());
    }
}

/// Returns a credential that lasts longer than a soak run.
fn bearer(subject: &str, token: &str) -> String {
    let claims = json!({"sub": subject, "aud": "orders", "exp": seconds_from_now(1_000_000), "jti": token});
    format!("Authorization: Bearer {}", hs256(&claims, SECRET))
}

async fn proxy_passes(
    database: &Arc<StoppableDatabase>,
    (profile, guarantee): (&'static str, &'static str),
    seen: SeenKeys,
    not_applicable: &[NotApplicable],
) {
    let service = counting(seen).await;
    let proxy = Arc::new(ProbedProxy {
        folder: folder::fresh(),
        database: Arc::clone(database),
        service: service.address,
        profile,
        guarantee,
        process: tokio::sync::Mutex::default(),
    });
    let process = proxy.start_on(SocketAddr::from(([127, 0, 0, 1], 0)));
    let url = format!("http://{}/orders", process.address);
    *proxy.process.lock().await = Some(process);

    let acting = Arc::clone(&proxy);
    let commands = CommandServer::start(move |word| {
        let proxy = Arc::clone(&acting);
        async move {
            match &*word {
                "crash" => proxy.crash().await,
                "outage" => proxy.database.stop().await,
                "recover" => proxy.database.start_again().await,
                _ => proxy.database.expire_keys().await,
            }
            String::new()
        }
    })
    .await;
    let text = str::to_owned;
    let provoke = |condition: &str| (text("--provoke"), format!("{condition}=X-Test: {condition}"));
    let command = |name: &str| (format!("--{name}"), commands.command(name));
    let arguments = [
        (url, text(r#"{"note":"first","qty":1}"#)),
        (text("--profile"), text(profile)),
        (text("--count"), text("GET /count")),
        (text("--at"), text("/total")),
        (text("--other-operation"), text("POST /refunds")),
        (text("--header"), bearer("shop-1", "of-monday")),
        (text("--fresh-credential"), bearer("shop-1", "of-tuesday")),
        (text("--second-identity"), bearer("shop-2", "of-monday")),
        provoke("slow"),
        provoke("fail"),
        provoke("limit"),
        provoke("outlast"),
        provoke("large"),
        command("crash"),
        command("outage"),
        command("recover"),
        command("expire"),
    ];
    assert_passes(&flags(arguments), not_applicable).await;
}

/// What the protocol does not say.
const OF_ACP: [NotApplicable; 2] = [
    ("P03", "the protocol does not say how keys are quoted"),
    ("P05", "the protocol does not say what a parameter of a key means"),
];

async fn proxy_passes_each_profile(database: StoppableDatabase) {
    let database = Arc::new(database);
    proxy_passes(&database, ("ichido", "none"), SeenKeys::Run, &[]).await;
    // A 5xx must run afresh, which is safe only if the service deduplicates by key.
    proxy_passes(&database, ("acp", "keyed"), SeenKeys::Deduplicate, &OF_ACP).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_passes_the_probe_on_sqlite() {
    proxy_passes_each_profile(StoppableDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_passes_the_probe_on_postgres() {
    proxy_passes_each_profile(StoppableDatabase::postgres().await).await;
}
