//! `ichido send --offline-queue`, killed at random in front of a real `ichido serve`, behind a proxy that drops
//! responses.
//!
//! Each message exists once, in order, and nothing reported as queued is lost. The command is killed while the proxy
//! holds one of its requests, or while it reads lines. Then it runs again: with the earlier lines and new ones, or
//! with new ones only.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::folder::{self, TempFolder};

/// How many times it is killed; the environment sets another number.
fn kills() -> u64 {
    std::env::var("ICHIDO_QUEUE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(40)
}

fn ichido(folder: &TempFolder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    for name in ["SERVER", "TOKEN", "STORE", "CONFIG", "LOG"] {
        command.env_remove(format!("ICHIDO_{name}"));
    }
    command.current_dir(folder.path());
    command
}

/// A running `ichido serve`; it ends when dropped.
struct CrashServer(Child, SocketAddr);

impl CrashServer {
    fn start(folder: &TempFolder) -> Self {
        let mut child = ichido(folder)
            .args(["serve", "--store", "sqlite:server.db", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let (_, rest) = line.split_once("serving on http://")?;
            rest.split(',').next()?.parse().ok()
        });
        Self(child, address.expect("it serves"))
    }
}

impl Drop for CrashServer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Requests until the one whose response is held back; negative if none is.
static FUSE: AtomicI64 = AtomicI64::new(-1);
/// The percentage of dropped responses.
static DROPPED: AtomicU32 = AtomicU32::new(2);

/// Forwards requests, drops responses, and holds one back on demand.
async fn proxy(to: SocketAddr, dice: Arc<Mutex<fastrand::Rng>>, held: UnboundedSender<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let (dice, held) = (Arc::clone(&dice), held.clone());
            tokio::spawn(async move {
                let mut buffer = Vec::new();
                while let Some(request) = message(&mut from, &mut buffer).await {
                    let is_held = FUSE.fetch_sub(1, Ordering::SeqCst) == 0;
                    let roll = dice.lock().unwrap().u32(0..100);
                    // Half of the held requests never reach the server.
                    let answer = if is_held && roll < 50 { Vec::new() } else { ask(to, &request).await };
                    if is_held {
                        held.send(()).expect("the case listens");
                        let mut rest = [0; 64];
                        while from.read(&mut rest).await.is_ok_and(|count| 0 < count) {}
                        return;
                    }
                    if roll < DROPPED.load(Ordering::SeqCst) {
                        return from.set_zero_linger().unwrap();
                    }
                    // The client may have been killed.
                    drop(from.write_all(&answer).await);
                }
            });
        }
    });
    address
}

async fn ask(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(request).await.unwrap();
    message(&mut stream, &mut Vec::new()).await.expect("the server answers")
}

/// Reads the next complete request or response; `None` if the connection ends before.
async fn message(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let end = at + 4 + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
            if end <= buffer.len() {
                let rest = buffer.split_off(end);
                return Some(std::mem::replace(buffer, rest));
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillPoint {
    /// After this many results.
    Said(usize),
    /// While the response to the request with this number is held back.
    AtServer(i64),
}

/// What the runs printed and were given.
#[derive(Default)]
struct RunLog {
    given: BTreeSet<String>,
    queued: BTreeSet<String>,
    in_accept: u64,
    in_send: u64,
}

/// Runs the command once, killed at a point unless it ends before. Keys name its input lines.
async fn run_and_kill(
    folder: &TempFolder,
    address: SocketAddr,
    keys: &[String],
    moment: KillPoint,
    held: &mut UnboundedReceiver<()>,
    book: &mut RunLog,
) {
    FUSE.store(if let KillPoint::AtServer(nth) = moment { nth } else { -1 }, Ordering::SeqCst);
    let mut child = ichido(folder)
        .args(["send", "demo", "--offline-queue", "orders.queue", "--ndjson", "-", "--json"])
        .args(["--server", &format!("http://{address}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text: Vec<String> =
        keys.iter().map(|key| format!("{{\"key\":\"{key}\",\"body\":{{\"order\":\"{key}\"}}}}\n")).collect();
    let writer = std::thread::spawn(move || {
        // Line by line, so they are not all read at once. The process may be dead by then.
        for line in text {
            if input.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let (tell, mut printed) = unbounded_channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            drop(tell.send(line));
        }
    });
    let mut lines: Vec<String> = Vec::new();
    let was_held = loop {
        tokio::select! {
            line = printed.recv() => match line {
                Some(line) => {
                    lines.push(line);
                    if moment == KillPoint::Said(lines.len()) {
                        break false;
                    }
                }
                // It ended before the kill point.
                None => break false,
            },
            Some(()) = held.recv() => break true,
        }
    };
    drop(child.kill());
    child.wait().unwrap();
    writer.join().unwrap();
    reader.join().unwrap();
    while let Some(line) = printed.recv().await {
        lines.push(line);
    }
    for line in lines {
        // Only the last line can be truncated.
        let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
        if line["result"] == "queued" {
            let number = usize::try_from(line["line"].as_u64().unwrap()).unwrap();
            book.queued.insert(keys[number - 1].clone());
        }
    }
    book.given.extend(keys.iter().cloned());
    book.in_accept += u64::from(!keys.iter().all(|key| book.queued.contains(key)));
    book.in_send += u64::from(was_held);
}

/// Returns the keys at the server, in order of arrival.
fn at_server(folder: &TempFolder) -> Vec<String> {
    let listed = ichido(folder)
        .args(["messages", "list", "--json", "--limit", "100000", "--store", "sqlite:server.db"])
        .output()
        .unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let mut messages: Vec<Value> = String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    messages.sort_by_key(|message| text(message, "id"));
    messages.iter().map(|message| text(message, "idempotency_key")).collect()
}

/// Returns the entries left in the file; all are marked with a reason.
fn failed(folder: &TempFolder) -> Vec<String> {
    let listed = ichido(folder)
        .args(["offline", "list", "orders.queue", "--json", "--limit", "100000"])
        .output()
        .unwrap();
    let key = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["state"], "failed", "{entry}");
        assert!(entry["reason"].is_string(), "{entry}");
        println!("{entry}");
        entry["idempotency_key"].as_str().unwrap().to_owned()
    };
    String::from_utf8(listed.stdout).unwrap().lines().map(key).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_offline_sender_delivers_each_message_once_in_order() {
    let seed = std::env::var("ICHIDO_QUEUE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("seed: ICHIDO_QUEUE_SEED={seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let folder = folder::fresh();
    let serving = CrashServer::start(&folder);
    let (tell, mut held) = unbounded_channel();
    let address = proxy(serving.1, Arc::new(Mutex::new(dice.fork())), tell).await;
    let mut book = RunLog::default();
    let mut before: Vec<String> = Vec::new();
    // Enough of both for a meaningful test. How many runs that takes is random, and more on a busy machine.
    let has_missed = |book: &RunLog| book.in_accept.min(book.in_send) < kills() / 20;
    let mut round = 0;
    while round < kills() || has_missed(&book) {
        assert!(round < kills() * 5, "they missed");
        round += 1;
        let count = dice.u64(1..10);
        let new: Vec<String> = (0..count).map(|number| format!("r{round:04}-{number:03}")).collect();
        // The earlier lines are given again, or not.
        let keys = if dice.bool() { [before, new.clone()].concat() } else { new.clone() };
        let moment =
            if dice.bool() { KillPoint::Said(dice.usize(1..6)) } else { KillPoint::AtServer(dice.i64(0..8)) };
        run_and_kill(&folder, address, &keys, moment, &mut held, &mut book).await;
        before = new;
    }
    println!(
        "{} of {round} kills while lines were accepted, {} while one was sent",
        book.in_accept, book.in_send
    );
    // From now on nothing fails, and the rest is sent.
    FUSE.store(-1, Ordering::SeqCst);
    DROPPED.store(0, Ordering::SeqCst);
    let mut rest = ichido(&folder);
    rest.args(["send", "demo", "--offline-queue", "orders.queue", "--server", &format!("http://{address}")]);
    let rest = tokio::task::spawn_blocking(move || rest.output()).await.unwrap().unwrap();
    let marked = failed(&folder);
    assert_eq!(
        rest.status.code(),
        Some(i32::from(!marked.is_empty())),
        "{}",
        String::from_utf8_lossy(&rest.stderr)
    );
    let stands = at_server(&folder);
    println!(
        "{} given, {} reported as queued, {} enqueued, {marked:?} failed",
        book.given.len(),
        book.queued.len(),
        stands.len()
    );
    assert!(marked.len() * 10 < stands.len(), "too many failed for this to say something");
    for key in &book.queued {
        assert!(stands.contains(key) || marked.contains(key), "{key} was queued, and is lost");
    }
    assert!(stands.iter().all(|key| book.given.contains(key)), "an unknown key");
    // Names are in the order of acceptance, so a duplicate or a wrong order is not increasing.
    assert!(stands.is_sorted_by(|before, after| before < after), "{stands:?}");
}
