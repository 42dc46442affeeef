//! The whole chain as processes: a fake browser, bff, gateway, adapter and a counting service.
//!
//! Responses are lost after the effect, requests arrive several times at once, handlers are slow, and the adapter is
//! killed and restarted. A service that deduplicates by key counts one effect per action. One that does not never
//! counts two, and unknown outcomes are held, listed and decided.
// Spec: C2, C4, C6, F2.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;

use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::client::{HUNG, ProxyClient, ProxyRequest};
use super::program::{ProxyProcess, run};
use super::service::{Effects, FakeService, ReleaseGate, ServiceAction, answer};
use crate::folder::{self, TempFolder};
use crate::http_message::HttpMessage;

/// What happens to an action on its first arrival at the service. Its name starts with the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing, but it is sent several times at once.
    Plain,
    /// It takes effect, and the response is lost.
    Lost,
    /// It does not take effect, and the connection is cut: to the adapter the same as lost.
    CutBefore,
    /// It takes effect, and the response waits for the test.
    Slow,
    /// It takes effect, and the adapter is killed before the response.
    Killed,
}

impl Fate {
    const ALL: [(&'static str, Self); 5] = [
        ("plain", Self::Plain),
        ("lost", Self::Lost),
        ("cut", Self::CutBefore),
        ("slow", Self::Slow),
        ("killed", Self::Killed),
    ];

    fn for_order(order: &str) -> Self {
        let found = Self::ALL.into_iter().find(|(word, _)| order.starts_with(word));
        found.unwrap_or_else(|| panic!("no fate for {order}")).1
    }
}

/// How many actions of each kind.
const OF_EACH: usize = 4;
/// How long a crash blocks its keys: short for the test, and long enough to be renewed on a busy machine.
const LEASE: &str = "8s";
/// How many clients send each action at once.
const AT_ONCE: usize = 3;

fn orders() -> Vec<String> {
    Fate::ALL.iter().flat_map(|(word, _)| (0..OF_EACH).map(move |index| format!("{word}-{index}"))).collect()
}

fn orders_of(fate: Fate) -> Vec<String> {
    orders().into_iter().filter(|order| Fate::for_order(order) == fate).collect()
}

/// A service that counts its effects by the order named in the body.
struct CountingService {
    service: FakeService,
    effects: Effects,
    /// Releases the responses of the slow actions.
    slow: ReleaseGate,
}

/// Starts a counting service.
///
/// With `deduplicates`, a known key gets its first response and no second effect.
async fn counting(deduplicates: bool) -> CountingService {
    let effects = Effects::default();
    let (slow, never) = (ReleaseGate::default(), ReleaseGate::default());
    let known: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::default();
    let arrived: Mutex<HashSet<String>> = Mutex::default();
    let (counted, opened) = (effects.clone(), slow.clone());
    let service = FakeService::start(move |request, _| {
        let key = request.one("idempotency-key").expect("the adapter passes one").to_owned();
        let order = request.text().to_owned();
        let mut known = known.lock().expect("no test panics inside");
        if let Some(first) = known.get(&key).filter(|_| deduplicates) {
            return ServiceAction::Answer(first.clone());
        }
        let is_first = arrived.lock().expect("no test panics inside").insert(order.clone());
        if is_first && Fate::for_order(&order) == Fate::CutBefore {
            return ServiceAction::Cut(Vec::new());
        }
        let count = counted.apply(&order);
        let made = answer("201 Created", &[("x-effects", &count.to_string())], &format!("made {order}"));
        known.insert(key, made.clone());
        match Fate::for_order(&order) {
            _ if !is_first => ServiceAction::Answer(made),
            Fate::Plain | Fate::CutBefore => ServiceAction::Answer(made),
            Fate::Lost => ServiceAction::Cut(Vec::new()),
            Fate::Slow => ServiceAction::AnswerWhen(opened.clone(), made),
            Fate::Killed => ServiceAction::AnswerWhen(never.clone(), made),
        }
    })
    .await;
    CountingService { service, effects, slow }
}

/// The processes in front of a service.
struct Chain {
    bff: ProxyProcess,
    _gateway: ProxyProcess,
    adapter: Option<ProxyProcess>,
    address: SocketAddr,
    service: SocketAddr,
    flags: Vec<String>,
    _files: TempFolder,
}

/// Writes the starting set with timeouts that nest from the bottom up. No timeout ends a call unless the machine
/// stalls.
fn files(folder: &TempFolder, effect: &str) -> [String; 4] {
    let times =
        |try_ms: u32, in_all_ms: u32| json!({"upstream_timeout_ms": try_ms, "client_timeout_ms": in_all_ms});
    let to_bff = json!({"http": {"timeouts": times(220_000, 680_000)}});
    let to_gateway = json!({"http": {"retry": {"backoff_ms": 20}, "timeouts": times(100_000, 202_000)}});
    let retry = json!({
        "mode": "enabled",
        "apply_to_methods": ["POST"],
        "max_attempts": 3,
        "retry_on_status": [502, 503, 504],
        "retry_on_network_error": true,
        "backoff_ms": [20, 40],
        "retry_gate": {"require_idempotency_key_when_state_changing": true},
    });
    let enabled = json!({"response_replay": {"on_duplicate_while_inflight": {"wait_up_to_ms": 200}}});
    let to_adapter = json!({
        "http": {"idempotency": {"enabled": enabled}, "retry": retry, "timeouts": times(32_000, 98_000)},
    });
    let keeps = if effect == "keyed" { json!({"days": 7}) } else { Value::Null };
    let own = json!({
        "identity": {"source": "single", "name": "shop"},
        "operations": {
            "orders.create": {"guarantee": effect, "keeps_keys_for": keeps},
            "profiles.update": null,
        },
        "http": {"timeouts": {"upstream_timeout_ms": 30_000}},
    });
    [
        folder.boundary("browser_to_bff.json", &to_bff),
        folder.boundary("bff_to_gateway.json", &to_gateway),
        folder.boundary("gateway_to_adapter.json", &to_adapter),
        folder.boundary("adapter.json", &own),
    ]
}

impl Chain {
    fn start(service: SocketAddr, store: &str, effect: &str) -> Self {
        let folder = folder::fresh();
        let [to_bff, to_gateway, to_adapter, own] = files(&folder, effect);
        let flags = ["--boundary", &to_adapter, "--boundary", &own, "--store", store, "--lease", LEASE];
        let flags: Vec<String> = flags.map(str::to_owned).to_vec();
        let adapter = ProxyProcess::start("adapter", service, &borrowed(&flags));
        let address = adapter.address;
        let gateway =
            ProxyProcess::start("gateway", address, &["--boundary", &to_gateway, "--boundary", &to_adapter]);
        let bff =
            ProxyProcess::start("bff", gateway.address, &["--boundary", &to_bff, "--boundary", &to_gateway]);
        Self { bff, _gateway: gateway, adapter: Some(adapter), address, service, flags, _files: folder }
    }

    /// Kills the adapter as in a crash, and restarts it at the same address.
    async fn crash(&mut self) {
        self.adapter.take().expect("it runs").kill().await;
        self.adapter =
            Some(ProxyProcess::start_on(self.address, "adapter", self.service, &borrowed(&self.flags)));
    }
}

fn borrowed(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// Sends an order once, as a page would; `None` without a complete response.
async fn send_once(bff: SocketAddr, order: &str) -> Option<HttpMessage> {
    let request = ProxyRequest::post("/v1/orders")
        .key(&format!("key-of-{order}"))
        .field("X-User-Id", "root")
        .body(order);
    let mut client = ProxyClient::connect(bff).await;
    client.write(request.bytes()).await;
    client.try_answer().await
}

/// Sends an order repeatedly under one key, until the response is definite.
///
/// `processing` counts how often it was told to come back.
// Spec: A8.
async fn retry_until_definite(bff: SocketAddr, order: String, processing: Effects) -> (String, HttpMessage) {
    loop {
        let Some(answer) = send_once(bff, &order).await else { continue };
        if answer.status() == 202 && answer.one("idempotency-status") == Some("processing") {
            processing.apply(&order);
        } else if !matches!(answer.status(), 408 | 429 | 500..=599) {
            return (order, answer);
        }
    }
}

/// Returns the definite response to an order.
async fn definite_response(chain: &Chain, order: &str) -> HttpMessage {
    retry_until_definite(chain.bff.address, order.to_owned(), Effects::default()).await.1
}

type ResponsesByOrder = BTreeMap<String, Vec<HttpMessage>>;

/// Sends orders, each several times at once.
fn send_all(
    chain: &Chain,
    orders: Vec<String>,
    processing: &Effects,
) -> Vec<JoinHandle<(String, HttpMessage)>> {
    let bff = chain.bff.address;
    let each = orders.into_iter().flat_map(|order| vec![order; AT_ONCE]);
    each.map(|order| tokio::spawn(retry_until_definite(bff, order, processing.clone()))).collect()
}

async fn collect_responses(calls: Vec<JoinHandle<(String, HttpMessage)>>, answers: &mut ResponsesByOrder) {
    for call in calls {
        let (order, answer) =
            tokio::time::timeout(HUNG, call).await.expect("it ends").expect("it does not panic");
        answers.entry(order).or_default().push(answer);
    }
}

/// Sends every order and lets all fates happen; returns the responses by order.
async fn run_all_fates(chain: &mut Chain, counting: &CountingService) -> ResponsesByOrder {
    let (mut answers, processing) = (ResponsesByOrder::new(), Effects::default());
    let calm = orders().into_iter().filter(|order| Fate::for_order(order) != Fate::Killed).collect();
    let calls = send_all(chain, calm, &processing);
    for order in orders_of(Fate::Slow) {
        processing.until(&order).await;
    }
    counting.slow.open();
    collect_responses(calls, &mut answers).await;
    let calls = send_all(chain, orders_of(Fate::Killed), &processing);
    for order in orders_of(Fate::Killed) {
        counting.effects.until(&order).await;
    }
    chain.crash().await;
    collect_responses(calls, &mut answers).await;
    answers
}

/// Polls until a condition holds.
async fn until(is_so: impl Fn() -> bool) {
    let polling = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HUNG, polling).await.expect("it comes to be so");
}

async fn keyed_service_counts_one_effect(store: &str) {
    let counting = counting(true).await;
    let mut chain = Chain::start(counting.service.address, store, "keyed");
    let answers = run_all_fates(&mut chain, &counting).await;
    for order in orders() {
        assert_eq!(counting.effects.count(&order), 1, "{order}");
        for answer in &answers[&order] {
            assert_eq!((answer.status(), answer.text()), (201, format!("made {order}").as_str()), "{order}");
            assert_eq!(
                answer.one("idempotency-key"),
                Some(format!("key-of-{order}").as_str()),
                "echoed at every hop"
            );
        }
        let firsts =
            answers[&order].iter().filter(|answer| answer.one("idempotency-replayed").is_none()).count();
        assert!(firsts <= 1, "{order}: {firsts} of its answers claim to be the first");
        let later = definite_response(&chain, &order).await;
        assert_eq!(later.one("idempotency-replayed"), Some("true"), "{order}");
        assert_eq!(counting.effects.count(&order), 1, "{order}");
    }
    assert_eq!(unknown(store), BTreeMap::new(), "nothing is left in doubt");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_effect_per_key_through_the_whole_chain_on_sqlite() {
    let file = fresh_file();
    keyed_service_counts_one_effect(&file.url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_effect_per_key_through_the_whole_chain_on_postgres() {
    let database = fresh_database().await;
    keyed_service_counts_one_effect(&database.url).await;
}

async fn service_without_keys_never_counts_two_effects(store: &str) {
    let counting = counting(false).await;
    let mut chain = Chain::start(counting.service.address, store, "none");
    let answers = run_all_fates(&mut chain, &counting).await;
    let mut held = Vec::new();
    for order in orders() {
        let effects = counting.effects.count(&order);
        let said: HashSet<(u16, bool)> = answers[&order]
            .iter()
            .map(|answer| (answer.status(), answer.text() == format!("made {order}")))
            .collect();
        assert!(effects <= 1, "{order} took effect {effects} times");
        // All senders get the same response: that it was made, or that its outcome is unknown.
        match said.iter().collect::<Vec<_>>()[..] {
            [(201, true)] => assert_eq!(effects, 1, "{order}"),
            [(409, false)] => {
                assert!(answers[&order].iter().all(|answer| answer.code() == "outcome_unknown"), "{order}");
                held.push(order);
            }
            _ => panic!("{order}: {said:?}"),
        }
    }
    for fate in [Fate::Lost, Fate::CutBefore, Fate::Killed] {
        let count = held.iter().filter(|order| Fate::for_order(order) == fate).count();
        assert_eq!(count, OF_EACH, "what is {fate:?} is held: {held:?}");
    }
    assert_eq!(held.len(), 3 * OF_EACH, "and nothing else: {held:?}");
    let listed = unknown(store);
    let expected: Vec<String> = held.iter().map(|order| format!("key-of-{order}")).collect();
    assert_eq!(listed.keys().cloned().collect::<Vec<_>>(), sorted(expected), "every one of them is listed");
    assert_eq!(hops_of(&listed["key-of-lost-0"]), ["bff", "gateway", "adapter"]);
    decide_all(&chain, &counting, store, &held).await;
    assert_eq!(unknown(store), BTreeMap::new(), "all are decided");
}

/// A person looks at the service, and decides each unknown outcome.
async fn decide_all(chain: &Chain, counting: &CountingService, store: &str, held: &[String]) {
    for order in held {
        let was_done = counting.effects.count(order) == 1;
        if was_done {
            assert_eq!(decide(store, order, &["done"]).0, Some(0), "{order}");
            let output = definite_response(chain, order).await;
            assert_eq!((output.status(), output.json()["status"].as_str()), (200, Some("done")), "{order}");
            let (code, said) = decide(store, order, &["done"]);
            assert_eq!(code, Some(4), "{said}");
        } else {
            let (code, said) = decide(store, order, &["not-done"]);
            assert_eq!(code, Some(4), "{said}");
            assert!(said.contains("may still take effect"), "{said}");
            let settled = ["not-done", "--settle-grace", "1s"];
            until(|| decide(store, order, &settled).0 == Some(0)).await;
            let made = definite_response(chain, order).await;
            assert_eq!((made.status(), made.text()), (201, format!("made {order}").as_str()));
        }
        assert_eq!(counting.effects.count(order), 1, "{order}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_outcomes_are_decided_without_duplicates_on_sqlite() {
    let file = fresh_file();
    service_without_keys_never_counts_two_effects(&file.url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_outcomes_are_decided_without_duplicates_on_postgres() {
    let database = fresh_database().await;
    service_without_keys_never_counts_two_effects(&database.url).await;
}

/// The hops do not repeat a request whose key is held: the caller would get 409 instead of the service's response.
#[tokio::test(flavor = "multi_thread")]
async fn plain_5xx_reaches_the_caller_through_the_chain() {
    let file = fresh_file();
    let service =
        FakeService::start(|_, _| ServiceAction::Answer(answer("503 Service Unavailable", &[], "down")))
            .await;
    let chain = Chain::start(service.address, &file.url, "none");
    let first = send_once(chain.bff.address, "plain-0").await.expect("a response");
    assert_eq!((first.status(), first.text()), (503, "down"));
    assert_eq!(first.one("idempotency-status"), Some("unknown"));
    let again = send_once(chain.bff.address, "plain-0").await.expect("a response");
    assert_eq!((again.status(), again.code().as_str()), (409, "outcome_unknown"));
    assert_eq!(again.one("idempotency-status"), Some("unknown"));
    assert_eq!(service.seen().len(), 1);
}

/// Returns what the command lists, by key.
fn unknown(store: &str) -> BTreeMap<String, Value> {
    let (code, out, err) = run(&["keys", "unknown", "--json", "--store", store]);
    assert_eq!(code, Some(0), "{err}");
    let rows = out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    rows.map(|row| (row["idempotency_key"].as_str().expect("a key").to_owned(), row)).collect()
}

fn decide(store: &str, order: &str, finding: &[&str]) -> (Option<i32>, String) {
    let key = format!("key-of-{order}");
    let named = ["--operation", "orders.create", "--identity", "shop", "--key", &key, "--store", store];
    let (code, out, err) = run(&[&["keys", "decide"], finding, &named].concat());
    (code, format!("{out}{err}"))
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

fn hops_of(row: &Value) -> Vec<String> {
    let hops = ichido_core::hops::Hops::read(row["hops"].as_str());
    hops.iter().map(|hop| hop.name.as_str().to_owned()).collect()
}
