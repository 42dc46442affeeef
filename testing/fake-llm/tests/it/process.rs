//! The server as a process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use fake_llm::api::Provider;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::{SentRequest, request_to};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-llm"));
    command.args(arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process, and the address in the line that it prints.
async fn started(arguments: &[&str]) -> (Child, SocketAddr) {
    let mut child = command(arguments).spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.next_line().await.expect("readable").expect("a line");
    let address = line.strip_prefix("fake-llm listens on ").expect(&line).parse().expect(&line);
    (child, address)
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn control(method: &'static str, path: &str, body: serde_json::Value) -> SentRequest {
    SentRequest { method, path: path.to_owned(), headers: vec![], body }
}

#[tokio::test]
async fn process_starts_with_a_script_and_accepts_another() {
    let script = file("begins.json", r#"{"rules": [{"do": {"fail": "unavailable"}, "first": 1}]}"#);
    let (_child, address) = started(&["--script", script.to_str().expect("UTF-8")]).await;
    assert_eq!(request_to(Provider::Openai, "a").send(address).await.status, 503);
    assert_eq!(request_to(Provider::Openai, "a").send(address).await.status, 200);

    let other = json!({ "rules": [{ "do": { "fail": "throttle" }, "first": 1 }] });
    assert_eq!(control("POST", "/_script", other).send(address).await.status, 200);
    assert_eq!(request_to(Provider::Anthropic, "b").send(address).await.status, 429);

    let seen = control("GET", "/_seen", json!("")).send(address).await.body;
    assert_eq!((&seen["requests"], &seen["completed"], &seen["failed"]), (&json!(3), &json!(1), &json!(1)));
    assert_eq!((&seen["items"]["b"]["throttled"], &seen["items"]["a"]["requests"]), (&json!(1), &json!(2)));
    assert_eq!(seen["items"]["a"]["calls"][0]["end"], "failed");
    assert_eq!((&seen["format_faults"], &seen["max_concurrency"]), (&json!([]), &json!(1)));
    assert_eq!(seen["last_request"]["headers"]["x-api-key"], "(redacted)");
    // It deserializes into the type that in-process tests use.
    let read: fake_llm::SeenRequests = serde_json::from_value(seen).expect("readable");
    assert_eq!((read.all.requests, read.items["b"].counts.throttled), (3, 1));
}

#[tokio::test]
async fn invalid_script_is_rejected_and_the_old_one_stays() {
    let (_child, address) = started(&[]).await;
    let good = json!({ "rules": [{ "do": { "fail": "denied" } }] });
    assert_eq!(control("POST", "/_script", good).send(address).await.status, 200);
    let received = control("POST", "/_script", json!({ "ruls": [] })).send(address).await;
    assert_eq!(received.status, 400);
    assert!(received.text.contains("unknown field `ruls`"), "{}", received.text);
    assert_eq!(control("PUT", "/_script", json!({})).send(address).await.status, 405);
    assert_eq!(request_to(Provider::Bedrock, "a").send(address).await.status, 403);

    let file = file("wrong.json", r#"{"ruls": []}"#);
    let ended = command(&["--script", file.to_str().expect("UTF-8")]).output().await.expect("ended");
    let reply_text = String::from_utf8_lossy(&ended.stderr);
    assert!(
        !ended.status.success() && reply_text.contains("wrong.json") && reply_text.contains("`ruls`"),
        "{reply_text}"
    );
}

#[tokio::test]
async fn address_in_use_is_named() {
    let (_child, address) = started(&[]).await;
    let ended = command(&["--listen", &address.to_string()]).output().await.expect("ended");
    let reply_text = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && reply_text.contains(&address.to_string()), "{reply_text}");
}

#[tokio::test]
async fn process_ends_when_its_input_closes_if_asked() {
    let (mut child, address) = started(&["--until-stdin-closes"]).await;
    assert_eq!(request_to(Provider::Openai, "a").send(address).await.status, 200);
    drop(child.stdin.take());
    assert!(child.wait().await.expect("ended").success());

    let (mut child, address) = started(&[]).await;
    drop(child.stdin.take());
    assert_eq!(request_to(Provider::Openai, "a").send(address).await.status, 200);
    assert!(child.try_wait().expect("known").is_none());
}

#[cfg(unix)]
#[tokio::test]
async fn process_ends_cleanly_on_a_signal() {
    for signal in ["-TERM", "-INT"] {
        // With an input that stays open, which it must not wait for.
        let (mut child, _) = started(&["--until-stdin-closes"]).await;
        let input = child.stdin.take();
        let id = child.id().expect("running").to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.expect("sent").success());
        assert!(child.wait().await.expect("ended").success());
        drop(input);
    }
}

#[tokio::test(start_paused = true)]
async fn in_process_clock_runs_while_the_tests_clock_is_paused() {
    let script = fake_llm::Script::parse(br#"{"latency": {"fixed_ms": 30}}"#).expect("a script");
    let fake = fake_llm::start(script);
    assert_eq!(request_to(Provider::Openai, "a").send(fake.address()).await.status, 200);
    let call = &fake.seen().items["a"].calls[0];
    assert!(30 <= call.ended_ms - call.came_ms, "{call:?}");
}

#[tokio::test]
async fn in_process_it_ends_when_it_is_dropped() {
    let fake = fake_llm::start(fake_llm::Script::default());
    let address = fake.address();
    assert_eq!(fake.url(), format!("http://{address}"));
    drop(fake);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
