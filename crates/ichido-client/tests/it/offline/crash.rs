//! Kills a process that accepts and sends, against a server that drops responses.
//!
//! Each action takes effect once, in order, and nothing acknowledged is lost.
//!
//! A child process accepts and sends. Its parent is the server and kills it with SIGKILL, in the middle of an accept
//! or while the server holds one of its requests. The server does the work of a key once and records when it did so
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use ichido_client::queue::{DrainOutcome, OfflineQueue, State};
use ichido_client::{Client, ClientSettings};

use super::temp_queue::{TempQueue, all, drain, order_at, quick};
use crate::server::{self, ServerAction, TestServer, plain};

const FILE: &str = "ICHIDO_QUEUE_FILE";
const ROUND: &str = "ICHIDO_QUEUE_ROUND";
const SERVER: &str = "ICHIDO_QUEUE_SERVER";
/// Each destination has its own path at the one server, which tells them apart by it.
const DESTINATIONS: [&str; 2] = ["shop", "bank"];

/// How often the child is killed. The environment can set another number.
fn kills() -> u64 {
    std::env::var("ICHIDO_QUEUE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(40)
}

fn client(server: &str) -> Arc<Client> {
    Arc::new(server::build_client(ClientSettings::new(server)))
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent listens");
}

/// Not a test of its own: the process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the case below as a process of its own"]
async fn child() {
    let Ok(file) = std::env::var(FILE) else { return };
    let (round, server) = (std::env::var(ROUND).unwrap(), std::env::var(SERVER).unwrap());
    let queue = OfflineQueue::open(PathBuf::from(file)).await.expect("the queue opens");
    for destination in DESTINATIONS {
        // The previous child is dead, and its lock is free.
        let sender = queue.sender(destination, client(&server), quick()).await;
        let mut sender = sender.expect("nobody else sends");
        tokio::spawn(async move {
            sender.run(std::future::pending(), drop).await.expect("it runs");
        });
    }
    for number in 0.. {
        let destination = DESTINATIONS[number % 2];
        let key = format!("r{round}-{number:05}");
        let action = order_at(&format!("/{destination}"), &key, &format!(r#"{{"key":"{key}"}}"#));
        say(&format!("begin {key}"));
        queue.accept(destination, &[action]).await.expect("accepted");
        say(&format!("accepted {key}"));
    }
}

/// The state of the server.
#[derive(Default)]
struct ServerState {
    /// The keys whose work was done, in order, by path.
    first_effects: BTreeMap<String, Vec<String>>,
    dice: Option<fastrand::Rng>,
}

/// The output of the children.
#[derive(Default)]
struct ChildOutput {
    begun: BTreeSet<String>,
    accepted: BTreeSet<String>,
}

impl ChildOutput {
    fn line(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("begin", key)) => drop(self.begun.insert(key.to_owned())),
            Some(("accepted", key)) => drop(self.accepted.insert(key.to_owned())),
            // Lines of the test harness.
            _ => (),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillPoint {
    /// After this many lines of its own.
    AfterLines(u64),
    /// While the server holds this request, counted from the child's start.
    AtServer(i64),
}

/// Requests until the one that is not answered, during which the child is killed; negative if there is none.
static FUSE: AtomicI64 = AtomicI64::new(-1);

async fn server(state: Arc<Mutex<ServerState>>, held: tokio::sync::mpsc::UnboundedSender<()>) -> TestServer {
    TestServer::start(move |_, request| {
        assert!(String::from_utf8_lossy(&request.body).contains(request.key()), "the key is the body's own");
        let mut state = state.lock().unwrap();
        let roll = state.dice.as_mut().map_or(99, |dice| dice.u32(0..100));
        let is_held = FUSE.fetch_sub(1, Ordering::SeqCst) == 0;
        // Some of the held requests did their work first.
        let works = if is_held { roll < 50 } else { 3 <= roll };
        if works {
            let path = request.line.split(' ').nth(1).unwrap().to_owned();
            let done = state.first_effects.entry(path).or_default();
            if !done.iter().any(|key| key == request.key()) {
                done.push(request.key().to_owned());
            }
        }
        if is_held {
            held.send(()).expect("the case listens");
            return ServerAction::Silence;
        }
        match roll {
            0..3 => ServerAction::Say(plain("503 Service Unavailable")),
            3..14 => ServerAction::WorkAndReset,
            14..20 => ServerAction::WorkAndCut,
            _ => ServerAction::Work,
        }
    })
    .await
}

/// Starts a child and kills it at `kill_point`. Its output until then is read.
async fn run_and_kill(
    temp: &TempQueue,
    round: u64,
    address: &str,
    kill_point: KillPoint,
    held: &mut tokio::sync::mpsc::UnboundedReceiver<()>,
) -> Vec<String> {
    FUSE.store(if let KillPoint::AtServer(nth) = kill_point { nth } else { -1 }, Ordering::SeqCst);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "offline::crash::child", "--nocapture"])
        .env(FILE, temp.file())
        .env(ROUND, format!("{round:04}"))
        .env(SERVER, address)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (line_sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let reader = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            drop(line_sender.send(line));
        }
    });
    let mut output = Vec::new();
    let mut lines_read = 0;
    loop {
        tokio::select! {
            line = lines.recv() => {
                let Some(line) = line else {
                    let output = child.wait_with_output().unwrap();
                    panic!("the child ended early: {}", String::from_utf8_lossy(&output.stderr));
                };
                lines_read += u64::from(line.starts_with("begin") || line.starts_with("accepted"));
                output.push(line);
                if kill_point == KillPoint::AfterLines(lines_read) {
                    break;
                }
            }
            Some(()) = held.recv(), if matches!(kill_point, KillPoint::AtServer(_)) => break,
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    while let Some(line) = lines.recv().await {
        output.push(line);
    }
    output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_lose_no_accepted_action_and_repeat_none() {
    let seed = std::env::var("ICHIDO_QUEUE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("seed: ICHIDO_QUEUE_SEED={seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let temp = TempQueue::new();
    let state = Arc::new(Mutex::new(ServerState { dice: Some(dice.fork()), ..ServerState::default() }));
    let (tell, mut held) = tokio::sync::mpsc::unbounded_channel();
    let server = server(Arc::clone(&state), tell).await;
    let address = format!("http://{}", server.address);
    let mut output = ChildOutput::default();
    let (mut in_accept, mut in_send) = (0, 0);
    // Enough of both for a meaningful result; how many it takes is random, and more on a busy machine.
    let mut round = 0;
    while round < kills() || in_accept.min(in_send) < kills() / 10 {
        assert!(round < kills() * 5, "they missed: {in_accept} and {in_send}");
        let kill_point = if dice.bool() {
            KillPoint::AfterLines(dice.u64(1..30))
        } else {
            KillPoint::AtServer(dice.i64(0..12))
        };
        let lines = run_and_kill(&temp, round, &address, kill_point, &mut held).await;
        let last = lines.iter().rev().find(|line| line.starts_with("begin") || line.starts_with("accepted"));
        in_accept += u64::from(last.is_some_and(|line| line.starts_with("begin")));
        for line in &lines {
            output.line(line);
        }
        let queue = temp.queue().await;
        in_send += u64::from(all(&queue).await.iter().any(|entry| entry.state == State::Sending));
        queue.close().await;
        round += 1;
    }
    println!("{in_accept} of {round} kills in the middle of an accept, {in_send} of a send");
    // From now on nothing fails, and the rest is sent.
    FUSE.store(-1, Ordering::SeqCst);
    state.lock().unwrap().dice = None;
    let queue = temp.queue().await;
    for destination in DESTINATIONS {
        let mut sender =
            queue.sender(destination, client(&address), quick()).await.expect("nobody else sends");
        assert_eq!(drain(&mut sender).await.0, DrainOutcome::Empty);
    }
    let first_effects = state.lock().unwrap().first_effects.clone();
    check(&queue, &first_effects, &output).await;
}

async fn check(queue: &OfflineQueue, first_effects: &BTreeMap<String, Vec<String>>, output: &ChildOutput) {
    let marked: BTreeSet<String> = all(queue)
        .await
        .into_iter()
        .map(|entry| {
            assert_eq!(entry.state, State::Failed, "nothing waits");
            assert!(entry.reason.is_some());
            entry.key.as_str().to_owned()
        })
        .collect();
    let done: BTreeSet<&String> = first_effects.values().flatten().collect();
    for key in &output.accepted {
        assert!(done.contains(key) || marked.contains(key), "{key} was acknowledged, and is lost");
    }
    for (path, keys) in first_effects {
        // Keys are named in order of acceptance, so a repeat or a wrong order is not increasing.
        assert!(keys.is_sorted_by(|before, after| before < after), "{path}: {keys:?}");
        assert!(keys.iter().all(|key| output.begun.contains(key)), "a key that nobody made");
    }
    println!("{} acknowledged, {} done, {} marked failed", output.accepted.len(), done.len(), marked.len());
    assert!(marked.len() * 10 < output.accepted.len(), "too many failed for this to say something");
}
