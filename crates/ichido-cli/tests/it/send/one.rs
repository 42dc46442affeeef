//! One message through a server.

use super::program::{run, send};
use super::server::{FakeReply, FakeServer};
use crate::folder;

const BODY: &str = "{\"qty\": 1.0, \"symbol\":\"ACME\"}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_message_is_same() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    for (output, json) in [
        ("new id-of-2\n", false),
        ("same id-of-2\n", false),
        ("{\"id\":\"id-of-2\",\"result\":\"same\"}\n", true),
    ] {
        let mut command = server.send(folder.path(), &["--key", "k1"]);
        if json {
            command.arg("--json");
        }
        let sent = run(command, BODY);
        assert_eq!((sent.code, sent.out.as_str(), sent.err.as_str()), (Some(0), output, ""));
    }
    assert_eq!(server.message("k1"), Some((BODY.to_owned(), 1)), "byte for byte");
    let request = &server.seen()[0];
    assert_eq!(request.line, "POST /v1/queues/orders/messages HTTP/1.1");
    assert_eq!(request.field("content-type"), Some("application/json"));
    assert_eq!(request.field("ichido-attempt"), Some("1; manual"));
    assert_eq!((request.field("authorization"), request.field("ichido-identity")), (None, None));
}

// Spec: H5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedule_is_the_query_of_the_request() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    for (key, flags, query) in [
        ("k1", &["--delay", "90s", "--priority", "1"][..], "?priority=1&delay=90s"),
        ("k2", &["--run-at", "2026-01-02T03:04:05.6Z"], "?run_at=2026-01-02T03:04:05.6Z"),
        ("k3", &["--offline-queue", "file.queue", "--delay", "2h"], "?delay=2h"),
    ] {
        let sent = run(server.send(folder.path(), &[&["--key", key], flags].concat()), BODY);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let line = server.seen().last().unwrap().line.clone();
        assert_eq!(line, format!("POST /v1/queues/orders/messages{query} HTTP/1.1"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_schedule_is_code_2_and_sends_nothing() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    for (flags, part) in [
        (&["--priority", "256"][..], "must be a whole number from 0, which is sent first, to 255"),
        (&["--delay", "soon"], "is not a duration"),
        (&["--delay", "367d"], "is longer than 366d"),
        (&["--run-at", "tomorrow"], "is not a time"),
        (&["--run-at", "9999-01-01T00:00:00Z"], "run_at is more than 366d ahead"),
        (&["--delay", "1s", "--run-at", "2026-01-02T03:04:05Z"], "cannot be used with"),
    ] {
        let refused = run(server.send(folder.path(), &[&["--key", "k1"], flags].concat()), BODY);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(part), "{refused:?}");
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_and_identity_are_sent_if_given() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let mut command = send(folder.path());
    command.args(["--key", "k1", "--identity", "ann"]);
    command.env("ICHIDO_SERVER", format!("http://{}/", server.address)).env("ICHIDO_TOKEN", "s3cret");
    let sent = run(command, BODY);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let request = &server.seen()[0];
    assert_eq!(request.field("authorization"), Some("Bearer s3cret"));
    assert_eq!(request.field("ichido-identity"), Some("ann"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_conflict_is_code_4() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    run(server.send(folder.path(), &["--key", "k-secret"]), BODY);
    let refused = run(server.send(folder.path(), &["--key", "k-secret"]), "{}");
    assert_eq!((refused.code, refused.out.as_str()), (Some(4), ""), "{refused:?}");
    // Text from a server cannot control the terminal.
    let expected = "ichido: refused: key_conflict: words of the server\\u{1b}[2J\n";
    assert_eq!(refused.err, expected);
    let refused = run(server.send(folder.path(), &["--key", "k-secret", "--json"]), "{}");
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.out.starts_with(r#"{"code":"key_conflict","detail":"words"#), "{refused:?}");
    assert_eq!(server.seen().len(), 3, "a no is not asked for again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_is_code_1() {
    let folder = folder::fresh();
    for (status, code) in [(400, "body_invalid"), (401, "token_missing"), (422, "key_mismatch")] {
        let server = FakeServer::start(move |_, _| FakeReply::Refuse(status, code)).await;
        let refused = run(server.send(folder.path(), &["--key", "k1"]), BODY);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains(code) && refused.err.contains("words of the server"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_response_is_retried_and_enqueued_once() {
    let folder = folder::fresh();
    let acts = [FakeReply::AcceptAndReset, FakeReply::Accept];
    let server = FakeServer::start(move |nth, _| acts[nth]).await;
    let sent = run(server.send(folder.path(), &["--key", "k1"]), BODY);
    assert_eq!((sent.code, sent.out.as_str()), (Some(0), "same id-of-2\n"), "{sent:?}");
    assert_eq!(server.message("k1"), Some((BODY.to_owned(), 1)));
    let attempts: Vec<_> =
        server.seen().iter().map(|seen| seen.field("ichido-attempt").unwrap().to_owned()).collect();
    assert_eq!(attempts, ["1; manual", "2; auto"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn success_without_message_id_is_unknown() {
    let folder = folder::fresh();
    let server = FakeServer::start(|_, _| FakeReply::Refuse(201, "anything")).await;
    let ended = run(server.send(folder.path(), &["--key", "k1"]), BODY);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""), "{ended:?}");
    assert!(
        ended.err.contains("that of an Ichido server") && ended.err.contains("it is unknown whether"),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn success_about_another_key_is_unknown() {
    let (folder, server) = (folder::fresh(), FakeServer::start(|_, _| FakeReply::About("another")).await);
    let ended = run(server.send(folder.path(), &["--key", "k1"]), BODY);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""), "{ended:?}");
    assert!(ended.err.contains("about another key"), "{ended:?}");
    let server = FakeServer::start(|_, _| FakeReply::About("k1")).await;
    assert_eq!(run(server.send(folder.path(), &["--key", "k1"]), BODY).code, Some(0));
}

#[test]
fn unreachable_server_is_code_3_and_not_enqueued() {
    let folder = folder::fresh();
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let mut command = send(folder.path());
    command.args(["--key", "k1", "--server", &format!("http://{}", address.unwrap())]);
    let ended = run(command, BODY);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""), "{ended:?}");
    for part in ["the server cannot be reached", "it was not enqueued", "again with the same key is safe"] {
        assert!(ended.err.contains(part), "no {part} in {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_environment_variables_are_ignored() {
    let (folder, server) = (folder::fresh(), FakeServer::accepting().await);
    let mut command = server.send(folder.path(), &["--key", "k1"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    assert_eq!(run(command, BODY).code, Some(0));
}

#[test]
fn invalid_send_arguments_are_refused_without_secrets() {
    let folder = folder::fresh();
    let cases: [(&[&str], &str); 7] = [
        (&["--key", "k", "--server", "127.0.0.1:4180"], "--server: "),
        (&["--key", "k", "--server", "http://ann:s3cret@host"], "--server: must not contain a user name"),
        (&["--key", "k", "--server", "http://h", "--store", "sqlite:x.db"], "remove --server or --store"),
        (&["--key", "k", "--server", "http://h", "--identity", "änn"], "--identity: "),
        (&["--key", "k", "--server", "http://h", "--identity", "ann "], "--identity: "),
        (&["--ndjson", "none.ndjson", "--server", "http://h"], "cannot read none.ndjson"),
        (&["--ndjson", "-", "--key-from", "id", "--server", "http://h"], "--key-from: "),
    ];
    for (flags, part) in cases {
        let mut command = send(folder.path());
        command.args(flags);
        let refused = run(command, "{}");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(part) && !refused.err.contains("s3cret"), "no {part} in {refused:?}");
    }
    let mut command = send(folder.path());
    command.args(["--key", "k", "--server", "http://h"]).env("ICHIDO_TOKEN", "s3cret\n");
    let refused = run(command, "{}");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("ICHIDO_TOKEN: ") && !refused.err.contains("s3cret"), "{refused:?}");
    for flags in [["--key", "k", "--ndjson", "-"].as_slice(), &[], &["--key", "k", "--key-from", "/id"]] {
        let mut command = send(folder.path());
        command.args(flags);
        assert_eq!(run(command, "{}").code, Some(2), "{flags:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_is_not_followed_and_explained() {
    for status in [301, 302, 307, 308] {
        let to = "https://ichido.test/v1/queues/orders/messages?token=s3cret";
        let (folder, server) =
            (folder::fresh(), FakeServer::start(move |_, _| FakeReply::Redirect(status, to)).await);
        let refused = run(server.send(folder.path(), &["--key", "k1"]), BODY);
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:?}");
        let expected = format!(
            "the server responded {status}, a redirect to https://ichido.test/v1/queues/orders/messages; redirects are not followed; if that is the \
             server, pass --server https://ichido.test"
        );
        assert!(refused.err.contains(&expected) && !refused.err.contains("s3cret"), "{refused:?}");
        assert_eq!(server.seen().len(), 1, "it is not asked for again");
    }
}
