//! `ichido send` and `ichido worker`, from a message to its effect.

use ichido_core::lifecycle::StateName;

use super::database::{OutboxDatabase, POLL_EVERY, both_databases, key};
use super::program::{WorkerProcess, ichido, run};
use crate::folder;
use crate::mock_broker::broker::{MockBroker, order};
use ichido::worker::OutboundKey;
use ichido_store::message::QueueName;

/// The configuration of a queue that delivers to a mock broker.
pub(crate) fn config(database: &OutboxDatabase, mock: &MockBroker, queue: &str, destination: &str) -> String {
    format!(
        "[store]\nurl = \"env:ICHIDO_TEST_STORE\"\n[worker]\nidle_sleep = \"20ms\"\n\
         [queues.orders]\ndestination = \"broker\"\n{queue}\n\
         [destinations.broker]\nkind = \"mock\"\nurl = \"http://{}/orders\"\n{destination}\n",
        mock.address
    )
    .replace("env:ICHIDO_TEST_STORE", &database.url)
}

both_databases! {
    /// Two identities under one key are two actions at the broker, each taking effect once.
    // Spec: D7.
    #[test]
    async fn message_arrives_once_per_identity(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&[]));
        folder.write("ichido.toml", &config(&database, &mock, "max_retries = 3", ""));
        let mut worker = WorkerProcess::start(folder.path(), &["--log", "info"]);
        let body = r#"{"symbol":"ACME","intent":"buy","qty":"10"}"#;
        for (identity, output) in [("ann", "new "), ("bob", "new "), ("ann", "same ")] {
            let sent = run(folder.path(), &["send", "orders", "--key", "k-secret", "--identity", identity], body);
            assert_eq!(sent.code, Some(0), "{sent:?}");
            assert!(sent.out.starts_with(output), "{sent:?}");
        }
        let refused = run(folder.path(), &["send", "orders", "--key", "k-secret", "--identity", "ann"], "{}");
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.err.contains("the key was used for another body"), "{refused:?}");
        while database.count(&[StateName::Sent]).await != 2 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        for identity in ["ann", "bob"] {
            let outbound = OutboundKey::Derived.key_for(&QueueName::parse("orders").unwrap(), identity, &key("k-secret"));
            assert_eq!(mock.counts(outbound.as_str()).await, (1, 1));
        }
        let rows = database.store.messages().list(&ichido_store::message::MessageFilter::default(), 9).await.unwrap();
        assert!(rows.iter().all(|row| row.max_attempts == 4), "as the queue says");
        worker.signal("TERM");
        let (code, log) = worker.wait().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains("k-secret") && !log.contains("ACME"), "{log}");
    }

    /// Another attempt under another key would be another action to the broker.
    // Spec: D7.
    #[test]
    async fn worker_refuses_queue_with_changed_key_kind(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&[]));
        folder.write("ichido.toml", &config(&database, &mock, "", ""));
        let mut worker = WorkerProcess::start(folder.path(), &[]);
        worker.signal("TERM");
        worker.wait().await;
        folder.write("ichido.toml", &config(&database, &mock, "outbound_key = \"own\"", ""));
        let refused = run(folder.path(), &["worker"], "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for part in ["ichido.toml: [queues.orders]", "set it to \"derived\"", "a queue with another name"] {
            assert!(refused.err.contains(part), "no {part} in {refused:?}");
        }
    }

    /// The first signal lets calls in flight finish; nothing is lost.
    #[test]
    async fn stopped_worker_finishes_its_calls(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&["--latency", "300ms"]));
        folder.write("ichido.toml", &config(&database, &mock, "outbound_key = \"own\"\nparallelism = 1", ""));
        let mut worker = WorkerProcess::start(folder.path(), &[]);
        // More than are sent, one after another, before the signal arrives on a slow machine.
        let mut ids = Vec::new();
        for number in 0..20 {
            ids.push(database.put(&format!("k{number}")).await);
        }
        while mock.effects().await["calls"] == 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        worker.signal("TERM");
        assert_eq!(worker.wait().await.0, Some(0));
        let mut left = 0;
        for id in ids {
            let row = database.row(id).await;
            // A message whose call was not started gets its attempt back, or was never claimed.
            let is_left = row.status == StateName::Queued;
            assert_eq!((row.status, row.attempts), if is_left { (StateName::Queued, 0) } else { (StateName::Sent, 1) });
            left += usize::from(is_left);
        }
        assert!((1..20).contains(&left), "{left} are left");
    }

    /// The output says what is in flight, how long that may take, and when the worker has stopped.
    #[test]
    async fn worker_announces_stopping_and_stopped(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&["--fault", "silence_after=1"]));
        let text = config(&database, &mock, "outbound_key = \"own\"", "");
        folder.write("ichido.toml", &text.replace("[worker]\n", "[worker]\nstop_timeout = \"500ms\"\n"));
        let mut worker = WorkerProcess::start(folder.path(), &[]);
        database.put("k1").await;
        while mock.counts("k1").await.1 == 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        worker.signal("TERM");
        let (code, log) = worker.wait().await;
        assert_eq!(code, Some(0), "{log}");
        let id = worker.id();
        let expected = [
            format!("ichido: worker {id} is stopping; 1 call in flight may end within 500ms; a second signal stops it immediately"),
            format!("ichido: worker {id} has stopped"),
        ];
        assert_eq!(worker.final_output(), expected);
    }

    /// The second signal stops it at once, with its own exit code; the next worker continues.
    #[test]
    async fn second_signal_stops_worker_immediately(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&["--fault", "silence_after=1"]));
        let queue = "outbound_key = \"own\"\nlease = \"2s\"";
        folder.write("ichido.toml", &config(&database, &mock, queue, "total_timeout = \"1s\""));
        let mut worker = WorkerProcess::start(folder.path(), &[]);
        let id = database.put("k1").await;
        while mock.counts("k1").await.1 == 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        worker.signal("TERM");
        worker.signal("INT");
        let (code, log) = worker.wait().await;
        // The first signal may arrive when the call has just timed out.
        assert!(code == Some(3) || code == Some(0), "{code:?} {log}");
        mock.put("/mock/faults", r#"{"faults":{}}"#).await;
        let _next = WorkerProcess::start(folder.path(), &[]);
        database.until_stage(id, StateName::Sent).await;
        assert_eq!(mock.counts("k1").await.0, 1);
    }

    /// A closed standard output does not stop the worker.
    #[test]
    async fn worker_runs_with_closed_output(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&[]));
        folder.write("ichido.toml", &config(&database, &mock, "outbound_key = \"own\"", ""));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut worker = ichido(folder.path()).arg("worker").stdout(writer).spawn().unwrap();
        let id = database.put("k1").await;
        while database.row(id).await.status != StateName::Sent {
            assert_eq!(worker.try_wait().unwrap(), None, "it runs");
            tokio::time::sleep(POLL_EVERY).await;
        }
        worker.kill().unwrap();
        worker.wait().unwrap();
    }

    /// The output says how long to wait for the calls that were in flight.
    #[test]
    async fn cut_off_worker_reports_when_messages_are_rescued(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&["--fault", "silence_after=1"]));
        let queue = "outbound_key = \"own\"\nlease = \"7m\"\n[queues.quick]\ndestination = \"broker\"\nlease = \"6m\"";
        folder.write("ichido.toml", &config(&database, &mock, queue, "total_timeout = \"5m\""));
        let mut worker = WorkerProcess::start(folder.path(), &[]);
        database.put("k1").await;
        while mock.counts("k1").await.1 == 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        worker.signal("TERM");
        worker.signal("INT");
        let (code, log) = worker.wait().await;
        assert_eq!(code, Some(3), "{log}");
        assert!(log.contains("after their lease (at most 7m) expires"), "{log}");
    }
}

#[test]
fn invalid_worker_settings_are_refused_with_location() {
    let folder = folder::fresh();
    let nothing = run(folder.path(), &["worker"], "");
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(nothing.err.contains("create one with `ichido config init`"), "{nothing:?}");
    folder.write("ichido.toml", "[destinations.mock]\nkind = \"mock\"\n");
    let empty = run(folder.path(), &["worker"], "");
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert!(empty.err.contains("has no queue") && !empty.err.contains("no store"), "{empty:?}");
    let unknown = run(folder.path(), &["send", "orders", "--key", "k", "--store", "sqlite:x.db"], "{}");
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.err.contains("has no [queues.orders]"), "{unknown:?}");
    // Spec: D11.
    let order = order("another-key").body;
    folder.write(
        "ichido.toml",
        "[queues.orders]\ndestination = \"mock\"\n[destinations.mock]\nkind = \"mock\"\n",
    );
    let typed = run(folder.path(), &["send", "ordres", "--key", "k", "--store", "sqlite:x.db"], "{}");
    assert!(
        typed.code == Some(2) && typed.err.contains("did you mean orders? Otherwise add it"),
        "{typed:?}"
    );
    let disagree = run(folder.path(), &["send", "orders", "--key", "k", "--store", "sqlite:x.db"], &order);
    assert_eq!(disagree.code, Some(2), "{disagree:?}");
    assert!(disagree.err.contains("pass the same one with --key"), "{disagree:?}");
    assert!(!folder.path().join("x.db").exists(), "nothing was opened");
}

/// The receiver would get two keys and refuse them.
#[test]
fn body_with_own_key_warns_if_queue_derives_keys() {
    let folder = folder::fresh();
    let arguments = ["send", "orders", "--key", "k", "--store", "sqlite:x.db"];
    for (setting, warns) in [("derived", true), ("own", false)] {
        folder.write(
            "ichido.toml",
            &format!("[queues.orders]\ndestination = \"mock\"\noutbound_key = \"{setting}\"\n[destinations.mock]\nkind = \"mock\"\n"),
        );
        let sent = run(folder.path(), &arguments, &order("k").body);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert_eq!(sent.err.contains("outbound_key = \"own\" under [queues.orders]"), warns, "{sent:?}");
    }
}

/// A message without an identity, or that no receiver could accept, is refused before it is stored.
#[test]
fn empty_identity_and_header_injection_are_refused() {
    let folder = folder::fresh();
    let flags = ["send", "orders", "--key", "k1", "--store", "sqlite:ichido.db"];
    let wrong = [
        (["--identity", ""], "the identity must have 1 to 255 bytes"),
        (["--content-type", "text/plain\r\nX-Evil: 1"], "the content type must be one media type"),
    ];
    for (more, why) in wrong {
        let refused = run(folder.path(), &[&flags[..], &more].concat(), "{}");
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains(why), "no {why} in {}", refused.err);
    }
    let fine = [&flags[..], &["--identity", "ann", "--content-type", "text/plain; charset=utf-8"]].concat();
    assert_eq!(run(folder.path(), &fine, "{}").code, Some(0));
}
