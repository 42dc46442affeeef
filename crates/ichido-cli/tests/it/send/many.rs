//! Many messages through a server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use super::program::{run, send, signal};
use super::server::{FakeReply, FakeServer, POLL_EVERY};
use crate::folder;

fn lines(count: usize) -> String {
    let line = |number| format!("{{\"key\":\"k{number}\",\"body\":{{\"n\": {number}.0}}}}\n");
    (1..=count).map(line).collect::<Vec<_>>().concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_has_its_own_result_in_order() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let input = [
        r#"{"key":"k1","body":{"n": 1.0}}"#,
        "",
        r#"{"body" : [1 , "é"], "key" : "k2"}"#,
        r#"{"key":"k1","body":{"n": 1.0}}"#,
        r#"{"key":"k1","body":{"n": 2}}"#,
        "no JSON",
        r#"{"key":"k3","body":{"idempotency_key":"k4"}}"#,
        r#"{"key":"k 5","body":1}"#,
        r#"{"key":"k6","body":"last"}"#,
    ];
    let input = input.join("\n");
    let flags = ["--ndjson", "-", "--parallel", "1"];
    let sent = run(server.send(folder.path(), &flags), &input);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let printed = sent.lines();
    let begins = [
        "new id-of-2 line 1",
        "new id-of-2 line 3",
        "same id-of-2 line 4",
        "refused line 5: key_conflict: words of the server",
        "refused line 6: line_invalid: the line is not valid JSON: ",
        "refused line 7: key_mismatch: ",
        "refused line 8: key_invalid: ",
        "new id-of-2 line 9",
    ];
    assert_eq!(printed.len(), begins.len(), "{sent:?}");
    for (printed, begin) in printed.iter().zip(begins) {
        assert!(printed.starts_with(begin), "{printed} is not {begin}");
    }
    assert_eq!(sent.err, "ichido: 3 new, 1 same, 4 refused\n");
    assert_eq!(server.message("k2"), Some(("[1 , \"é\"]".to_owned(), 1)), "byte for byte");
    assert_eq!(server.message("k3"), None, "D11: nothing was sent");
    let again = run(server.send(folder.path(), &["--ndjson", "-", "--json"]), &input);
    let printed = again.lines();
    assert_eq!(printed[0], r#"{"id":"id-of-2","line":1,"result":"same"}"#);
    assert!(printed[3].contains(r#""line":5"#) && printed[3].contains(r#""result":"refused""#), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resent_file_enqueues_nothing_twice() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let line = |number| format!("{{ \"order\": {{\"id\":{number}}} }}\r\n");
    folder.write("orders.ndjson", &(1..=50).map(line).collect::<Vec<_>>().concat());
    let flags = ["--ndjson", "orders.ndjson", "--key-from", "/order/id"];
    for word in ["new", "same"] {
        let sent = run(server.send(folder.path(), &flags), "");
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert!(sent.lines().iter().all(|line| line.starts_with(word)), "{sent:?}");
        let numbers: Vec<_> =
            sent.lines().iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
        assert_eq!(numbers, (1..=50).map(|number| number.to_string()).collect::<Vec<_>>(), "in order");
    }
    for number in 1..=50 {
        let body = format!("{{ \"order\": {{\"id\":{number}}} }}");
        assert_eq!(server.message(&number.to_string()), Some((body, 1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_is_enqueued_once_despite_failures() {
    let folder = folder::fresh();
    let server = FakeServer::start(|nth, request| {
        let number: usize = request.key()[1..].parse().unwrap();
        match (nth, number % 3) {
            (0, 0) => FakeReply::AcceptAndReset,
            (0, 1) => FakeReply::Refuse(503, "store_unavailable"),
            _ => FakeReply::Accept,
        }
    })
    .await;
    let sent = run(server.send(folder.path(), &["--ndjson", "-", "--parallel", "32"]), &lines(32));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    for number in 1..=32 {
        assert_eq!(server.message(&format!("k{number}")), Some((format!("{{\"n\": {number}.0}}"), 1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_printed_while_input_is_open() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let mut command = server.send(folder.path(), &["--ndjson", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    for number in 1..=3 {
        writeln!(input, "{{\"key\":\"k{number}\",\"body\":1}}").unwrap();
        assert_eq!(printed.next().unwrap().unwrap(), format!("new id-of-2 line {number}"));
    }
    drop(input);
    assert!(printed.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_wide_refusal_stops_sending() {
    let folder = folder::fresh();
    for (status, code) in [(401, "token_missing"), (404, "queue_unknown")] {
        let server = FakeServer::start(move |_, request| {
            if request.key() == "k2" { FakeReply::Refuse(status, code) } else { FakeReply::Accept }
        })
        .await;
        let sent = run(server.send(folder.path(), &["--ndjson", "-", "--parallel", "1"]), &lines(5));
        assert_eq!((sent.code, sent.lines().len()), (Some(1), 2), "{sent:?}");
        for part in ["refused line 2", "no further line was sent", "sending the same lines again is safe"] {
            assert!(sent.err.contains(part), "no {part} in {sent:?}");
        }
        assert!(server.message("k1").is_some() && server.message("k3").is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_line_does_not_block_others() {
    let folder = folder::fresh();
    let server = FakeServer::start(|_, request| {
        if request.key() == "k2" { FakeReply::Refuse(500, "handler_failed") } else { FakeReply::Accept }
    })
    .await;
    let sent = run(server.send(folder.path(), &["--ndjson", "-", "--parallel", "1"]), &lines(5));
    assert_eq!((sent.code, sent.lines().len()), (Some(3), 5), "{sent:?}");
    assert!(
        sent.lines()[1].starts_with("unknown line 2: the server responded 500: words of the server"),
        "{sent:?}"
    );
    assert!(sent.err.contains("4 new, 0 same, 0 refused, 1 without an outcome"), "{sent:?}");
    assert!(server.message("k5").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_server_failures_stop_sending() {
    let folder = folder::fresh();
    let server = FakeServer::start(|_, _| FakeReply::Refuse(503, "store_unavailable")).await;
    let sent = run(server.send(folder.path(), &["--ndjson", "-", "--parallel", "8"]), &lines(500));
    assert_eq!(sent.code, Some(3), "{sent:?}");
    assert!(
        sent.err.contains("unknown line 3: ") && sent.err.contains("no further line was sent"),
        "{sent:?}"
    );
    // Those in flight beside the third, and no others.
    assert!((3..=10).contains(&sent.lines().len()), "{sent:?}");
}

#[test]
fn unreachable_server_stops_sending() {
    let folder = folder::fresh();
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let mut command = send(folder.path());
    command.args(["--ndjson", "-", "--parallel", "1", "--server", &format!("http://{}", address.unwrap())]);
    let sent = run(command, &lines(5));
    assert_eq!((sent.code, sent.lines().len()), (Some(3), 1), "{sent:?}");
    assert!(sent.lines()[0].starts_with("unsent line 1: the server cannot be reached: "), "{sent:?}");
}

/// The first signal lets requests in flight finish; the second does not wait for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_stops_sending_and_lines_can_be_resent() {
    let folder = folder::fresh();
    let server = FakeServer::start(|nth, request| {
        if request.key() == "k5" && nth == 0 { FakeReply::Silence } else { FakeReply::Accept }
    })
    .await;
    folder.write("lines", &lines(10));
    let flags = ["--ndjson", "lines", "--parallel", "1"];
    let mut command = server.send(folder.path(), &flags);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.until_seen("k5").await;
    // Two signals at once may count as one, so repeat until it has ended.
    while child.try_wait().unwrap().is_none() {
        signal("INT", child.id());
        tokio::time::sleep(POLL_EVERY).await;
    }
    let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), out.lines().count()), (Some(3), 4), "{out} {err}");
    assert!(err.contains("stopped after 4 new") && err.contains("same lines again is safe"), "{err}");
    let again = run(server.send(folder.path(), &flags), "");
    assert_eq!((again.code, again.err.as_str()), (Some(0), "ichido: 6 new, 4 same, 0 refused\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_send_enqueues_nothing_twice() {
    let folder = folder::fresh();
    let server = FakeServer::start(|nth, request| {
        if request.key() == "k20" && nth == 0 { FakeReply::Silence } else { FakeReply::Accept }
    })
    .await;
    folder.write("lines", &lines(40));
    let flags = ["--ndjson", "lines", "--parallel", "8"];
    let mut child =
        server.send(folder.path(), &flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    server.until_seen("k20").await;
    child.kill().unwrap();
    child.wait().unwrap();
    let again = run(server.send(folder.path(), &flags), "");
    assert_eq!(again.code, Some(0), "{again:?}");
    for number in 1..=40 {
        assert_eq!(server.message(&format!("k{number}")).unwrap().1, 1, "k{number}");
    }
}
