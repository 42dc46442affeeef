//! Runs a command both at a server and on its store.

use std::process::{Command, Stdio};

use ichido_core::key::IdempotencyKey;
use ichido_store::message::{Enqueued, NewMessage, QueueName};
use serde_json::Value;
use uuid::Uuid;

use crate::dead::fixture::{DeadOutput, StoreFixture};
use crate::serve::program::{ServeProcess, ichido};

/// A fixture with a server on it, its queues paused so nothing moves automatically.
pub(crate) struct ServerAndStore {
    pub(crate) fixture: StoreFixture,
    pub(crate) server: ServeProcess,
}

impl ServerAndStore {
    pub(crate) fn on(fixture: StoreFixture) -> Self {
        for queue in ["orders", "ledger", "mail"] {
            let paused = run(store(&fixture, &["queues", "pause", queue]));
            assert_eq!(paused.code, Some(0), "{paused:?}");
            assert!(paused.out.starts_with(&format!("paused {queue}; ")), "{paused:?}");
        }
        let server = ServeProcess::start(fixture.folder(), &["--store", &fixture.url]);
        Self { fixture, server }
    }

    pub(crate) fn at_store(&self, arguments: &[&str]) -> DeadOutput {
        run(store(&self.fixture, arguments))
    }

    pub(crate) fn at_server(&self, arguments: &[&str]) -> DeadOutput {
        run(at(&self.fixture, &format!("http://{}", self.server.address), arguments))
    }

    /// Checks that both outputs are identical.
    pub(crate) fn both(&self, arguments: &[&str]) -> DeadOutput {
        let (there, here) = (self.at_server(arguments), self.at_store(arguments));
        let outputs = [&there, &here].map(|left| (left.code, without_ages(&left.out), left.err.clone()));
        assert_eq!(outputs[0], outputs[1], "{arguments:?}");
        there
    }

    /// Checks that both succeed; returns the output.
    pub(crate) fn success_output(&self, arguments: &[&str]) -> String {
        let left = self.both(arguments);
        assert_eq!((left.code, left.err.as_str()), (Some(0), ""), "{left:?}");
        left.out
    }

    /// Returns the JSON objects, identical in both outputs.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        objects(&self.success_output(&[arguments, &["--json"]].concat()))
    }

    /// Enqueues a message with this request.
    pub(crate) async fn put(&self, queue: &str, key: &str, request: &str) -> Uuid {
        let queue = QueueName::parse(queue).unwrap();
        let key = IdempotencyKey::parse(key).unwrap();
        let message = NewMessage::new(queue, "alice", key, request.as_bytes().to_vec());
        match self.fixture.store.messages().enqueue(message).await.unwrap() {
            Enqueued::New { id } => id,
            other => panic!("it is not new: {other:?}"),
        }
    }
}

/// Replaces ages, which differ if a second passes between two commands, and so do the widths of columns.
fn without_ages(text: &str) -> Vec<Vec<&str>> {
    let is_age = |word: &str| {
        let word = word.trim_matches(['(', ')']);
        let digits = word.trim_end_matches(['s', 'm', 'h', 'd']);
        digits.len() + 1 == word.len() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.lines()
        .map(|line| line.split_whitespace().map(|word| if is_age(word) { "AGE" } else { word }).collect())
        .collect()
}

pub(crate) fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns a command on the store, run by olivia.
pub(crate) fn store(fixture: &StoreFixture, arguments: &[&str]) -> Command {
    let mut command = bare(fixture);
    command.args(arguments).args(["--store", &fixture.url]).env("USER", "olivia");
    command
}

/// Returns a command at a server, run by olivia.
pub(crate) fn at(fixture: &StoreFixture, server: &str, arguments: &[&str]) -> Command {
    let mut command = bare(fixture);
    command.args(arguments).args(["--server", server]).env("USER", "olivia");
    command
}

/// Returns the binary in the fixture's folder, with a clean environment.
pub(crate) fn bare(fixture: &StoreFixture) -> Command {
    let mut command = ichido(fixture.folder());
    command.env_remove("ICHIDO_SERVER").env_remove("ICHIDO_TOKEN").stdin(Stdio::null());
    command
}

pub(crate) fn run(mut command: Command) -> DeadOutput {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    DeadOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
