//! NATS servers for tests, with JetStream.
//!
//! Guarantee: a [`NatsServer`] belongs to one test. It listens on a free loopback port, its files are in a temporary
//! folder, and both are gone when the test's process ends in any way. A [`SharedServer`] may have other users, and no
//! two of its users share a stream or a subject.

#![expect(clippy::missing_panics_doc, reason = "for tests: whatever fails here ends the test, and says so")]

mod shared;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use async_nats::jetstream::context::Context;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, Stream};
use uuid::Uuid;

pub use self::shared::{SERVER_VARIABLE, SharedServer};

/// The subject that the cases publish to.
pub const SUBJECT: &str = "orders.placed";
/// The stream of the subject.
pub const STREAM: &str = "ORDERS";
/// Longer than any case takes, and than any publish is in flight.
pub const WINDOW: Duration = Duration::from_hours(24);
/// How long a server may take to start or to respond, on a busy machine.
const UP_WITHIN: Duration = Duration::from_mins(1);

/// How often a server is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The administrator's user and password, if a server has users.
pub const ADMIN: (&str, &str) = ("admin", "admin-password");

/// Starts the server, prints its process id, and removes it and its folder when the pipe closes.
///
/// The pipe closes when it is dropped here, and when the test's process dies in any way. A folder that must be kept
/// says so. A signal from the terminal does not end it: the pipe does.
const WATCHER: &str = r#"
trap : HUP INT TERM PIPE
folder=$1; shift
"$@" </dev/null >>"$folder/log" 2>&1 &
server=$!
echo "$server" >"$folder/pid.new" && mv "$folder/pid.new" "$folder/pid"
cat >/dev/null
exec 2>/dev/null
kill -9 "$server"
wait "$server"
[ -e "$folder/keep" ] || rm -rf "$folder"
"#;

/// The folder with a server's settings and files.
#[derive(Clone, Debug)]
pub struct TempFolder(PathBuf);

/// A server that belongs to the test and ends when this is dropped.
#[derive(Debug)]
pub struct NatsServer {
    watcher: Child,
    pid: String,
    /// The address it listens on.
    pub address: SocketAddr,
    folder: TempFolder,
}

impl NatsServer {
    /// Starts a server without users, where everything is allowed.
    pub async fn start() -> Self {
        Self::start_with("jetstream {}").await
    }

    /// Starts a server with these lines in its configuration.
    pub async fn start_with(configuration: &str) -> Self {
        Self::start_in(TempFolder(make_folder()), |_| configuration.to_owned()).await
    }

    /// Starts a server whose configuration names files in its folder.
    pub async fn start_with_files(
        files: &[(&str, String)],
        configuration: impl FnOnce(&Path) -> String,
    ) -> Self {
        let folder = TempFolder(make_folder());
        for (name, content) in files {
            std::fs::write(folder.0.join(name), content).expect("it is written");
        }
        Self::start_in(folder, configuration).await
    }

    async fn start_in(folder: TempFolder, configuration: impl FnOnce(&Path) -> String) -> Self {
        let path = &folder.0;
        std::fs::write(path.join("nats.conf"), configuration(path)).expect("it is written");
        let (watcher, pid, address) = run(path).await;
        Self { watcher, pid, address, folder }
    }

    /// Kills it without warning. What it stored is in its folder.
    pub fn kill(self) -> TempFolder {
        let folder = self.folder.clone();
        let keep = folder.0.join("keep");
        std::fs::write(&keep, "").expect("it is written");
        self.signal("KILL");
        drop(self);
        std::fs::remove_file(keep).expect("it was written");
        folder
    }

    /// Starts it again on what it stored, at another address.
    pub async fn again(folder: TempFolder) -> Self {
        for stale in ["pid", "ports"] {
            drop(std::fs::remove_dir_all(folder.0.join(stale)));
            drop(std::fs::remove_file(folder.0.join(stale)));
        }
        let (watcher, pid, address) = run(&folder.0).await;
        Self { watcher, pid, address, folder }
    }

    /// Sends it a signal by name, such as `STOP`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([&format!("-{signal}"), &self.pid]).status();
        assert!(sent.expect("kill runs").success(), "{signal} was sent");
    }

    /// Returns whether all of its threads are stopped: a signal takes effect only some time after it was sent.
    pub fn is_still(&self) -> bool {
        // On other systems than Linux this cannot be checked.
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.pid)) else { return true };
        let state_of = |stat: String| stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        threads.flatten().all(|thread| {
            std::fs::read_to_string(thread.path().join("stat")).ok().and_then(state_of) == Some('T')
        })
    }

    /// Returns its URL, as clients write it.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Connects as an administrator.
    pub async fn admin(&self) -> Context {
        admin(&self.url()).await
    }

    /// Creates a stream for the subject.
    pub async fn make_stream(&self) -> Stream {
        self.make_stream_as(|_| ()).await
    }

    /// The same, with changed settings.
    pub async fn make_stream_as(&self, change: impl FnOnce(&mut Config)) -> Stream {
        make_stream(&self.url(), STREAM, "orders.>", change).await
    }

    /// Returns every message in the stream.
    pub async fn stored(&self) -> Vec<StreamMessage> {
        stored(&self.url(), STREAM).await
    }

    /// Waits until this many messages are stored.
    pub async fn until_stored(&self, count: usize) {
        while self.stored().await.len() != count {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        drop(self.watcher.wait());
    }
}

async fn admin(url: &str) -> Context {
    let (user, password) = ADMIN;
    let options = async_nats::ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned());
    let options = options.connection_timeout(UP_WITHIN).request_timeout(Some(UP_WITHIN));
    let client = options.connect(url).await.expect("the login works");
    async_nats::jetstream::new(client)
}

async fn make_stream(url: &str, name: &str, subjects: &str, change: impl FnOnce(&mut Config)) -> Stream {
    let mut config = Config {
        name: name.to_owned(),
        subjects: vec![subjects.to_owned()],
        duplicate_window: WINDOW,
        ..Config::default()
    };
    change(&mut config);
    admin(url).await.create_stream(config).await.expect("it is made")
}

async fn stored(url: &str, stream: &str) -> Vec<StreamMessage> {
    let stream = admin(url).await.get_stream(stream).await.expect("it is there");
    let state = &stream.cached_info().state;
    let mut messages = Vec::new();
    if state.messages == 0 {
        return messages;
    }
    for sequence in state.first_sequence..=state.last_sequence {
        messages.push(stream.get_raw_message(sequence).await.expect("it is there"));
    }
    messages
}

fn make_folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ichido-nats-{}", Uuid::now_v7()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

/// Runs a server in its folder and waits until it listens.
async fn run(folder: &Path) -> (Child, String, SocketAddr) {
    let ports = folder.join("ports");
    std::fs::create_dir_all(&ports).expect("a folder");
    let path = |name: &str| folder.join(name).display().to_string();
    let mut watcher = Command::new("sh")
        .args(["-c", WATCHER, "sh"])
        .arg(folder)
        .args(["nats-server", "--addr", "127.0.0.1", "--port", "-1"])
        .args(["--config", &path("nats.conf"), "--store_dir", &path("stored")])
        .args(["--ports_file_dir", &path("ports")])
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh runs");
    let up = tokio::time::timeout(UP_WITHIN, async {
        loop {
            if let (Ok(pid), Some(address)) = (std::fs::read_to_string(folder.join("pid")), address(&ports)) {
                return (pid.trim().to_owned(), address);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    let Ok((pid, address)) = up.await else {
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        drop(watcher.stdin.take());
        drop(watcher.wait());
        panic!("nats-server did not start (Debian's package nats-server has it):\n{log}");
    };
    (watcher, pid, address)
}

/// Returns the address that it wrote down: `{"nats":["nats://127.0.0.1:41235"]}`.
fn address(ports: &Path) -> Option<SocketAddr> {
    let file = std::fs::read_dir(ports).ok()?.next()?.ok()?.path();
    let listens: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    // With TLS it begins with `tls://`.
    listens["nats"][0].as_str()?.split_once("://")?.1.parse().ok()
}
