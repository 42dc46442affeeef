//! Messages go into a file first, from there to the server, and continue after any interruption.

use std::process::{Command, Stdio};

use crate::folder::{self, TempFolder};
use crate::send::program::{SendOutput, run, send, signal};
use crate::send::server::{FakeReply, FakeServer, POLL_EVERY};

pub(crate) const QUEUE: [&str; 2] = ["--offline-queue", "orders.queue"];

pub(crate) fn lines(numbers: std::ops::RangeInclusive<usize>) -> String {
    let line = |number| format!("{{\"key\":\"k{number}\",\"body\":{{\"n\": {number}.0}}}}\n");
    numbers.map(line).collect::<Vec<_>>().concat()
}

pub(crate) fn queue_to(server: &FakeServer, folder: &TempFolder, flags: &[&str]) -> Command {
    let mut command = server.send(folder.path(), &QUEUE);
    command.args(flags);
    command
}

/// Runs `ichido offline …` in a folder.
pub(crate) fn offline(folder: &TempFolder, arguments: &[&str]) -> SendOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    command.env_remove("ICHIDO_LOG").current_dir(folder.path()).arg("offline").args(arguments);
    run(command, "")
}

/// Returns a URL where nobody listens.
fn nowhere() -> String {
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    format!("http://{}", address.unwrap())
}

fn states(folder: &TempFolder) -> Vec<String> {
    let listed = offline(folder, &["list", "orders.queue", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let state = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        format!("{} {}", entry["idempotency_key"].as_str().unwrap(), entry["state"].as_str().unwrap())
    };
    listed.lines().into_iter().map(state).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn piped_message_without_key_is_refused() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let sent = run(queue_to(&server, &folder, &[]), r#"{"qty":1}"#);
    assert_eq!(sent.code, Some(2), "{sent:?}");
    assert!(sent.err.contains("standard input has data, but no key was given"), "{sent:?}");
    assert!(!folder.path().join("orders.queue").exists(), "nothing was made");
    assert_eq!(run(queue_to(&server, &folder, &[]), "").code, Some(0), "what waits is sent without one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_is_queued_then_enqueued_once_in_order() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let input = format!("{}no JSON\n", lines(1..=2));
    let sent = run(queue_to(&server, &folder, &["--ndjson", "-"]), &input);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let mut printed = sent.lines();
    printed.sort_unstable();
    let begins = [
        "new id-of-2 line 1",
        "new id-of-2 line 2",
        "queued line 1",
        "queued line 2",
        "refused line 3: line_invalid: ",
    ];
    assert_eq!(printed.len(), begins.len(), "{sent:?}");
    for (printed, begin) in printed.iter().zip(begins) {
        assert!(printed.starts_with(begin), "{printed} is not {begin}");
    }
    assert_eq!(sent.err, "ichido: 2 queued, 2 new, 0 same, 1 refused\n");
    assert_eq!(server.message("k1"), Some(("{\"n\": 1.0}".to_owned(), 1)), "byte for byte");
    assert_eq!(states(&folder), [""; 0], "nothing is left");
    // Sent again, the server already has them.
    let again = run(queue_to(&server, &folder, &["--ndjson", "-", "--json"]), &lines(1..=2));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.out.contains(r#"{"entry":3,"id":"id-of-2","line":1,"result":"same"}"#), "{again:?}");
    assert!(again.out.contains(r#"{"entry":3,"line":1,"result":"queued"}"#), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_queued_offline_are_sent_when_server_returns() {
    let folder = folder::fresh();
    let nobody = nowhere();
    let away = |input: &str| {
        let mut command = send(folder.path());
        command.args(QUEUE).args(["--ndjson", "-", "--server", &nobody]);
        run(command, input)
    };
    let queued = away(&lines(1..=3));
    assert_eq!(
        (queued.code, queued.lines()),
        (Some(3), vec!["queued line 1", "queued line 2", "queued line 3"])
    );
    for part in ["the server cannot be reached", "3 wait in orders.queue", "run the command again"] {
        assert!(queued.err.contains(part), "no {part} in {queued:?}");
    }
    let conflict = away(r#"{"key":"k1","body":{"n": 2}}"#);
    assert!(conflict.out.starts_with("refused line 1: key_conflict: "), "{conflict:?}");
    assert_eq!(states(&folder), ["k1 waiting", "k2 waiting", "k3 waiting"]);
    // Another address is another server: entries for the first are not sent there.
    let server = FakeServer::accepting().await;
    let elsewhere = run(queue_to(&server, &folder, &[]), "");
    assert_eq!((elsewhere.code, server.seen().len()), (Some(0), 0), "{elsewhere:?}");
    assert!(elsewhere.err.contains("3 more entries in orders.queue are for other servers"), "{elsewhere:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_message_has_same_result_with_offline_queue() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    for (body, code, printed) in
        [("{\"n\":1}", 0, vec!["queued", "new id-of-2"]), ("{\"n\":1}", 0, vec!["queued", "same id-of-2"])]
    {
        let sent = run(queue_to(&server, &folder, &["--key", "k1"]), body);
        assert_eq!((sent.code, sent.lines()), (Some(code), printed), "{sent:?}");
    }
    let other = run(queue_to(&server, &folder, &["--key", "k1"]), "{\"n\":2}");
    assert_eq!(other.code, Some(4), "{other:?}");
    assert!(other.lines()[1].starts_with("refused: key_conflict: "), "{other:?}");
    assert_eq!(states(&folder), ["k1 failed"], "the reason is kept for a person");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn login_page_response_removes_no_entry() {
    let folder = folder::fresh();
    let server =
        FakeServer::start(
            |_, request| {
                if request.key() == "k1" { FakeReply::About("k9") } else { FakeReply::Accept }
            },
        )
        .await;
    let sent = run(queue_to(&server, &folder, &["--ndjson", "-"]), &lines(1..=2));
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(
        sent.out.contains("failed line 1: no_answer: the response 201 is not from this server"),
        "{sent:?}"
    );
    assert_eq!((states(&folder), server.message("k2").unwrap().1), (vec!["k1 failed".to_owned()], 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_wide_refusal_stops_sending_and_entries_wait() {
    let folder = folder::fresh();
    let server = FakeServer::start(|_, request| {
        if request.key() == "k2" { FakeReply::Refuse(401, "token_missing") } else { FakeReply::Accept }
    })
    .await;
    folder.write("lines", &lines(1..=5));
    let sent = run(queue_to(&server, &folder, &["--ndjson", "lines"]), "");
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(
        sent.err.contains("refused: token_missing") && sent.err.contains("no further entry was sent"),
        "{sent:?}"
    );
    // Whether the one in flight beside it was sent is random; the others were not.
    assert!(
        server.message("k5").is_none() && states(&folder).contains(&"k2 failed".to_owned()),
        "{:?}",
        states(&folder)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_process_queues_and_first_one_sends() {
    let folder = folder::fresh();
    let server = FakeServer::start(|nth, request| {
        if request.key() == "k1" && nth == 0 { FakeReply::Silence } else { FakeReply::Accept }
    })
    .await;
    folder.write("lines", &lines(1..=2));
    let mut first = queue_to(&server, &folder, &["--ndjson", "lines"]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    server.until_seen("k1").await;
    let second = run(queue_to(&server, &folder, &["--ndjson", "-"]), &lines(3..=4));
    assert_eq!(
        (second.code, second.lines()),
        (Some(3), vec!["queued line 1", "queued line 2"]),
        "{second:?}"
    );
    assert!(second.err.contains("another process is sending from this file"), "{second:?}");
    first.kill().unwrap();
    first.wait().unwrap();
    // No lease has to expire: a dead process releases its lock.
    let third = run(queue_to(&server, &folder, &[]), "");
    assert_eq!(third.code, Some(0), "{third:?}");
    for number in 1..=4 {
        assert_eq!(server.message(&format!("k{number}")).unwrap().1, 1, "k{number}");
    }
    let seen: Vec<String> = server.seen().iter().map(|request| request.key().to_owned()).collect();
    assert_eq!(seen, ["k1", "k1", "k2", "k3", "k4"], "in the order of acceptance");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_stops_sending_and_next_run_continues() {
    let folder = folder::fresh();
    let server = FakeServer::start(|nth, request| {
        if request.key() == "k3" && nth == 0 { FakeReply::Silence } else { FakeReply::Accept }
    })
    .await;
    folder.write("lines", &lines(1..=6));
    let mut command = queue_to(&server, &folder, &["--ndjson", "lines"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.until_seen("k3").await;
    // Two signals at once may count as one, so repeat until it has ended.
    while child.try_wait().unwrap().is_none() {
        signal("INT", child.id());
        tokio::time::sleep(POLL_EVERY).await;
    }
    let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("stopped after") && err.contains("4 wait in orders.queue"), "{err}");
    let again = run(queue_to(&server, &folder, &[]), "");
    assert_eq!((again.code, again.lines().len()), (Some(0), 4), "{again:?}");
    assert!(again.lines()[0].starts_with("new id-of-2 entry 3"), "{again:?}");
}

#[test]
fn invalid_offline_arguments_are_refused_before_creating_files() {
    let folder = folder::fresh();
    folder.write("diary", "my diary\n");
    for (flags, code, part) in [
        (&["--offline-queue", "q", "--key", "k", "--store", "sqlite:x.db"][..], 2, "--offline-queue"),
        (
            &[
                "--offline-queue",
                "q",
                "--key",
                "k",
                "--server",
                "http://127.0.0.1:9",
                "--keeps-keys-for",
                "soon",
            ],
            2,
            "--keeps-keys-for",
        ),
        (&["--offline-queue", "q", "--server", "http://127.0.0.1:9", "--ndjson", "missing"], 2, "missing"),
        (
            &["--offline-queue", "diary", "--key", "k", "--server", "http://127.0.0.1:9"],
            1,
            "not an Ichido offline queue",
        ),
        (&["--keeps-keys-for", "72h", "--key", "k"], 2, "--offline-queue"),
    ] {
        let mut command = send(folder.path());
        command.args(flags);
        let sent = run(command, "{}");
        assert_eq!(sent.code, Some(code), "{flags:?}: {sent:?}");
        assert!(sent.err.contains(part), "no {part} in {sent:?}");
    }
    assert!(!folder.path().join("q").exists());
    assert_eq!(std::fs::read_to_string(folder.path().join("diary")).unwrap(), "my diary\n");
}

/// A file size limit stands for a full disk: a message that cannot be stored is not reported as queued.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_is_reported_and_keeps_queued_entries() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let large = "x".repeat(300_000);
    let line = |number: usize| format!("{{\"key\":\"k{number}\",\"body\":\"{large}\"}}\n");
    folder.write("lines", &(1..=8).map(line).collect::<Vec<_>>().concat());
    let nowhere = nowhere();
    let program = env!("CARGO_BIN_EXE_ichido");
    let script = format!(
        "trap '' XFSZ; ulimit -f 2000; exec {program} send orders --offline-queue orders.queue --ndjson lines --server {nowhere}"
    );
    let mut command = Command::new("sh");
    command.env_remove("ICHIDO_STORE").env_remove("ICHIDO_SERVER").env_remove("ICHIDO_TOKEN");
    command.current_dir(folder.path()).args(["-c", &script]);
    let full = run(command, "");
    assert_eq!(full.code, Some(1), "{full:?}");
    assert!(
        full.err.contains("the disk has space") && full.err.contains("earlier messages stay queued"),
        "{full:?}"
    );
    // Exactly the reported messages are there.
    assert_eq!(states(&folder).len(), full.lines().len(), "{full:?}");
    drop(server);
}
