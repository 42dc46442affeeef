//! Exit codes and error messages of commands.

use std::net::TcpListener;

use super::fixture::{ServerAndStore, at, bare, run, store};
use crate::dead::fixture::StoreFixture;

const NOBODY: &str = "01995b1c-0000-7000-8000-000000000000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failure_has_its_exit_code() {
    let targets = ServerAndStore::on(StoreFixture::on_sqlite().await);
    let missing = targets.both(&["messages", "show", NOBODY]);
    assert!(missing.code == Some(1) && missing.err.contains("the message does not exist"), "{missing:?}");
    for (arguments, text) in [
        (&["messages", "list", "--error", "TEAPOT"][..], "use one of: NETWORK_TIMEOUT"),
        (&["messages", "list", "--from", "yesterday"], "--from: yesterday is not a time"),
        (&["messages", "list", "--after", "nowhere"], "--after: is not a valid cursor"),
        (&["messages", "list", "--queue", "no name"], "is not a valid queue name"),
        (
            &["messages", "show", "no-id"],
            "ID: no message has the key no-id, or an id that begins with these digits",
        ),
        (&["messages", "show", "0123abcd"], "ID: no message has the key 0123abcd"),
        (&["messages", "cancel", "01"], "ID: no message has the key 01"),
    ] {
        let left = targets.both(arguments);
        assert!(left.code == Some(2) && left.err.contains(text), "{arguments:?}: {left:?}");
    }
    for (arguments, text) in [
        (&["messages", "list", "--field", "/a"][..], "--value <VALUE>"),
        (&["messages", "list", "--state", "lost"], "possible values: queued"),
    ] {
        let left = targets.at_store(arguments);
        assert!(left.code == Some(2) && left.err.contains(text), "{arguments:?}: {left:?}");
    }
    let both =
        run(at(&targets.fixture, "http://127.0.0.1:1", &["queues", "list", "--store", &targets.fixture.url]));
    assert!(both.code == Some(2) && both.err.contains("a server and a store are given"), "{both:?}");
    let neither = run({
        let mut command = bare(&targets.fixture);
        command.args(["queues", "list"]);
        command
    });
    assert!(neither.code == Some(3) && neither.err.contains("no server or store found"), "{neither:?}");
    let no_url = run(at(&targets.fixture, "127.0.0.1", &["queues", "list"]));
    assert!(no_url.code == Some(2) && no_url.err.contains("--server: "), "{no_url:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_server_is_code_3_with_known_effect() {
    let fixture = StoreFixture::on_sqlite().await;
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap().port();
    let server = format!("http://127.0.0.1:{port}");
    let read = run(at(&fixture, &server, &["messages", "list"]));
    for part in ["the server cannot be reached", "`ichido serve`", "--server or ICHIDO_SERVER"] {
        assert!(read.code == Some(3) && read.err.contains(part), "no {part} in {read:?}");
    }
    let change = run(at(&fixture, &server, &["messages", "cancel", NOBODY]));
    assert!(change.code == Some(3) && change.err.ends_with("nothing was changed\n"), "{change:?}");
    let mut command = bare(&fixture);
    let database = format!("postgres://nobody@127.0.0.1:{port}/none");
    command.args(["messages", "list", "--store", &database]);
    let no_store = run(command);
    assert!(no_store.code == Some(3) && no_store.err.contains("cannot open the store"), "{no_store:?}");
    assert!(!no_store.err.contains("nobody@"), "an address may hold a password: {no_store:?}");
}

/// A server takes a change and hangs up: the outcome is unknown, and the change is not sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_without_response_is_sent_once_with_unknown_outcome() {
    let fixture = StoreFixture::on_sqlite().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let hangs_up = std::thread::spawn(move || {
        use std::io::{BufRead as _, BufReader};
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        (listener, line)
    });
    let left = run(at(&fixture, &server, &["messages", "requeue", NOBODY]));
    assert!(
        left.code == Some(3) && left.err.contains("it is unknown whether the change was made"),
        "{left:?}"
    );
    let (listener, line) = hangs_up.join().unwrap();
    assert_eq!(line, format!("POST /v1/messages/{NOBODY}/requeue HTTP/1.1\r\n"));
    listener.set_nonblocking(true).unwrap();
    let again = listener.accept().map(|_| ());
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it was not retried");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_is_read_from_the_environment() {
    let fixture = StoreFixture::on_sqlite().await;
    let token = |name: &str, role: &str| {
        let left = run(store(&fixture, &["token", "create", name, "--role", role]));
        assert_eq!(left.code, Some(0), "{left:?}");
        left.out.trim().to_owned()
    };
    let (operator, viewer) = (token("night watch", "operator"), token("screen", "viewer"));
    let targets = ServerAndStore::on(fixture);
    let id = targets.put("orders", "k-1", "{}").await.to_string();
    let cancel = |token: Option<&str>| {
        let url = format!("http://{}", targets.server.address);
        let mut command = at(&targets.fixture, &url, &["messages", "cancel", &id]);
        command.envs(token.map(|token| ("ICHIDO_TOKEN", token)));
        run(command)
    };
    let nobody = cancel(None);
    assert!(nobody.code == Some(1) && nobody.err.contains("ICHIDO_TOKEN"), "{nobody:?}");
    let looks = cancel(Some(&viewer));
    assert!(looks.code == Some(1) && looks.err.contains("the token's role does not allow this"), "{looks:?}");
    let acts = cancel(Some(&operator));
    assert_eq!(
        (acts.code, acts.out.as_str()),
        (Some(0), &*format!("{id}: cancelled; its effect is not done\n"))
    );
    let events = targets.at_store(&["messages", "events", &id, "--json"]);
    assert!(events.out.contains(r#""actor":"night watch""#), "{events:?}");
    let malformed = cancel(Some("two words"));
    assert!(malformed.code == Some(2) && malformed.err.contains("ICHIDO_TOKEN"), "{malformed:?}");
    for left in [nobody, looks, acts, malformed] {
        assert!(
            !left.err.contains(&operator) && !left.err.contains("two words"),
            "no token is shown: {left:?}"
        );
    }
}
