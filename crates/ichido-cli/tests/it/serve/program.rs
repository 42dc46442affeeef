//! The binary under test as a process that ends when dropped.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use ichido_store::testing::postgres;
use serde_json::Value;

use super::client::{RawClient, RawRequest, send};
use crate::folder::{self, TempFolder};
use crate::http_message::HttpMessage;

/// The interval between polls.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(20);

/// The kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    Sqlite,
    Postgres,
}

/// A folder and its own database.
pub(crate) struct ServerFixture {
    pub(crate) folder: TempFolder,
    pub(crate) url: String,
    database: Option<postgres::PgTestDatabase>,
}

impl ServerFixture {
    pub(crate) async fn new(on: DatabaseKind) -> Self {
        let folder = folder::fresh();
        match on {
            DatabaseKind::Sqlite => {
                let url = format!("sqlite:{}", folder.path().join("ichido.db").display());
                Self { folder, url, database: None }
            }
            DatabaseKind::Postgres => {
                let database = postgres::fresh_database().await;
                Self { folder, url: database.url.clone(), database: Some(database) }
            }
        }
    }

    /// Replaces a PostgreSQL database with an empty one on a server that syncs.
    pub(crate) async fn durable(self) -> Self {
        if self.database.is_none() {
            return self;
        }
        let database = postgres::durable_database().await;
        Self { url: database.url.clone(), database: Some(database), ..self }
    }

    /// Runs another command on the same store, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = ichido(self.folder.path()).args(arguments).args(["--store", &self.url]).output();
        let output = output.expect("the binary starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// Creates a token; returns its text.
    pub(crate) fn token(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(&[&["token", "create"], arguments].concat());
        assert_eq!(code, Some(0), "{err}");
        out.trim().to_owned()
    }

    pub(crate) fn serve(&self, flags: &[&str]) -> ServeProcess {
        ServeProcess::start(self.folder.path(), &[&["--store", &self.url], flags].concat())
    }
}

/// Returns the binary in a folder, with a clean environment.
pub(crate) fn ichido(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
    for name in ["ICHIDO_STORE", "ICHIDO_CONFIG", "ICHIDO_LOG"] {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"OTEL_")) {
        command.env_remove(name);
    }
    command.current_dir(folder);
    command
}

/// A running `ichido serve`.
pub(crate) struct ServeProcess {
    /// `None` after waiting for it.
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    /// Its output while starting.
    pub(crate) startup_output: String,
    log: Option<JoinHandle<String>>,
}

impl ServeProcess {
    /// Starts a server on a free port, on loopback unless the flags say otherwise, and waits until it serves.
    pub(crate) fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut command = ichido(folder);
        command.arg("serve").args(flags);
        if !flags.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Self::spawn(&mut command)
    }

    /// Starts a server with a given command, and waits until it serves.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut err = child.stderr.take().expect("piped");
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).expect("text");
            text
        });
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server =
            Self { child: Some(child), address: nowhere, startup_output: String::new(), log: Some(log) };
        for line in lines {
            let line = line.expect("text");
            server.startup_output.push_str(&line);
            server.startup_output.push('\n');
            if let Some((_, rest)) = line.split_once("serving on http://") {
                let address = rest.split(',').next().and_then(|address| address.parse().ok());
                server.address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
                return server;
            }
        }
        panic!("it does not serve: {}", server.log.take().expect("it is read").join().expect("text"));
    }

    pub(crate) async fn send(&self, request: &RawRequest) -> HttpMessage {
        send(self.address, request).await
    }

    /// Returns only the status of a response whose body need not end.
    pub(crate) async fn send_head(&self, request: &RawRequest) -> u16 {
        let mut client = RawClient::connect(self.address).await;
        client.write(request.bytes()).await;
        client.reader.head().await.expect("an answer").expect("an answer").status()
    }

    pub(crate) async fn get(&self, target: &str) -> HttpMessage {
        self.send(&RawRequest::get(target)).await
    }

    pub(crate) async fn post(&self, target: &str) -> HttpMessage {
        self.send(&RawRequest::post(target)).await
    }

    /// Returns the address of the mock broker behind the built-in queue.
    pub(crate) fn broker(&self) -> SocketAddr {
        let line = self.startup_output.lines().find_map(|line| line.split_once("goes to mock at http://"));
        let address = line.and_then(|(_, url)| url.strip_suffix("/orders")?.parse().ok());
        address.expect("an address")
    }

    /// Returns what the broker did.
    pub(crate) async fn effects(&self) -> Value {
        send(self.broker(), &RawRequest::get("/mock/effects")).await.json()
    }

    /// Returns the state of the built-in queue, or another.
    pub(crate) async fn queue(&self, name: &str) -> Value {
        let queues = self.get("/v1/queues").await.json();
        let found = queues["queues"].as_array().expect("a list").iter().find(|queue| queue["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {queues}")).clone()
    }

    /// Waits until a message is in a state, and returns it.
    pub(crate) async fn until_status(&self, href: &str, status: &str) -> Value {
        loop {
            let message = self.get(href).await.json();
            if message["status"] == status {
                return message;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Waits until this many requests wait for their messages.
    pub(crate) async fn until_waiting(&self, count: usize) {
        let line = format!("ichido_http_waiting {count}");
        while !self.get("/metrics").await.text().lines().any(|found| found == line) {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for its end without blocking the test; returns exit code and log.
    pub(crate) async fn wait(&mut self) -> (Option<i32>, String) {
        let mut child = self.child.take().expect("it was not waited for yet");
        let log = self.log.take().expect("it was not read yet");
        let ended = tokio::task::spawn_blocking(move || {
            let status = child.wait().expect("it is our child");
            (status.code(), log.join().expect("it is read"))
        });
        ended.await.expect("it does not panic")
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may already have ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Defines one test per database for each behaviour.
macro_rules! on_both {
    ($($(#[doc = $doc:literal])* $(#[test])? async fn $name:ident($fixture:ident) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;
            use $crate::serve::program::{DatabaseKind, ServerFixture};

            async fn case($fixture: ServerFixture) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                case(ServerFixture::new(DatabaseKind::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                case(ServerFixture::new(DatabaseKind::Postgres).await).await;
            }
        }
    )+ };
}

pub(crate) use on_both;
