//! PostgreSQL for tests: our own servers, and a fresh database for each test.
//!
//! Guarantee: a server started here listens on loopback only. It is stopped and its folder removed when its [`Cluster`] is
//! dropped or its process ends, however it ends. It runs with `fsync` on, except the one server that a whole test run shares
//! ([`Cluster::start_shared`]).
//!
//! A test that only needs a database calls [`fresh_database`]; all tests of one process share one server, or use
//! the one that [`SERVER_VARIABLE`] names. A test that claims durability calls [`durable_database`]; one that stops, restarts or
//! breaks its server starts its own with [`Cluster::start`], whatever that variable says.
//!
//! Neither `Drop` nor a signal handler can clean up after `kill -9`, and statics are never dropped. So a small shell, the
//! watcher, runs beside each server. Only the watcher runs `initdb` and `pg_ctl`, one request after another from a pipe, and
//! when the pipe closes it stops the server and removes the folder. The pipe closes when the cluster is dropped and when the
//! process dies, so both clean up the same way. Only killing the watcher itself with `kill -9` leaves something behind.
//!
//! Any local user may log in as the superuser of a running cluster: these servers hold test data only.

mod account;
mod database;
mod standby;
mod watcher;

pub use self::database::{
    PgTestDatabase, SERVER_VARIABLE, TEMPLATE_VARIABLE, durable_database, empty_database, fresh_database,
};

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use ichido_core::sync::lock;

use self::account::{ACCOUNTS, Account};
use self::watcher::Watcher;

/// The oldest major version that PostgreSQL still supports.
const MIN_MAJOR: u32 = 14;
/// The programs needed to create a database, start it, copy it to a standby and stop it.
const PROGRAMS: [&str; 4] = ["initdb", "pg_basebackup", "pg_ctl", "postgres"];
/// Debian keeps each major version in its own folder here, off the path.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";
/// The superuser of our own clusters. A role named `ichido` would have our schema first in its search path.
const SUPERUSER: &str = "postgres";
/// The environment variable with the folder of a new cluster's files, [`Cluster::new_files`] of another cluster.
///
/// [`Cluster::start`] then copies them. Without it every cluster is created by `initdb`.
pub const NEW_FILES_VARIABLE: &str = "ICHIDO_TEST_NEW_FILES";
/// The folder for [`Cluster::new_files`] beside a cluster's own data.
const NEW_FILES: &str = "new";
/// Below the ephemeral ports of Linux and macOS, so no outgoing connection takes a server's port while it restarts.
const PORTS: std::ops::Range<u16> = 15_000..32_000;
/// How many ports to try to find a free one.
const MAX_PORTS_TRIED: usize = 200;
/// How often to start a server. Another process may take the port between our check and the server's start.
const MAX_STARTS: usize = 5;

/// Enough for many tests at once. A caller's settings come later and win.
const SETTINGS: [(&str, &str); 7] = [
    ("shared_buffers", "128MB"),
    // In the server's own folder: a server that is killed would leave its segments in `/dev/shm`.
    ("dynamic_shared_memory_type", "mmap"),
    ("max_connections", "200"),
    ("max_wal_size", "1GB"),
    ("synchronous_commit", "on"),
    // The same on every machine, because tests expect it.
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
];
/// Settings that no caller may change, because the module guarantees them.
const SETTINGS_FIXED: [(&str, &str); 1] = [("listen_addresses", "127.0.0.1")];
/// An acknowledged write survives a crash of the machine.
const DURABLE: [(&str, &str); 2] = [("fsync", "on"), ("full_page_writes", "on")];
/// No sync: the server of a whole test run lives for minutes, and no test on it claims durability. The suites that do (crash,
/// kill, syncs) start their own servers. The connections are for several test processes at once.
const SHARED: [(&str, &str); 3] = [("fsync", "off"), ("full_page_writes", "off"), ("max_connections", "500")];

/// Why there is no server or no database.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No folder has all server binaries in a recent enough version.
    #[error(
        "the tests need PostgreSQL {MIN_MAJOR} or later: {} in one folder, on PATH or in {DEBIAN_FOLDER}/*/bin. \
         Install it with `sudo apt-get install postgresql` (Debian, Ubuntu), `sudo dnf install postgresql-server` \
         (Fedora) or `brew install postgresql` (macOS); as root on Debian, `cargo xtask test` installs it. \
         No server has to run: the tests start their own. Or set {SERVER_VARIABLE} to an administrator's database.",
        PROGRAMS.join(", ")
    )]
    NotFound,
    /// We are root, and no other user exists to run the server.
    #[error("PostgreSQL refuses to run as root, and /etc/passwd has none of the users {}", ACCOUNTS.join(", "))]
    NoAccount,
    /// We are root, and the user who runs the server may not use the temporary folder.
    #[error("user {account} may not use {}; set TMPDIR to a folder that all users can write to", folder.display())]
    Closed {
        /// The user who would run the server.
        account: &'static str,
        /// The folder that is closed to that user.
        folder: PathBuf,
    },
    /// None of the tried ports was free.
    #[error("no free port found on 127.0.0.1")]
    NoPort,
    /// A file, folder or pipe failed.
    #[error("cannot {doing}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// One of PostgreSQL's programs failed.
    #[error("PostgreSQL failed to {verb}: {said}\n{log}")]
    Program {
        /// The requested operation.
        verb: &'static str,
        /// The program's output.
        said: String,
        /// The end of the server's log.
        log: String,
    },
    /// [`SERVER_VARIABLE`] is set to something other than a URL. The value is not repeated: it may hold a password.
    #[error("{SERVER_VARIABLE} is not a URL of the form postgres://user:password@host:port/database")]
    NotUrl,
    /// The template database could not be migrated.
    #[error("cannot migrate the template database")]
    Template(#[source] crate::error::StoreError),
    /// The server did not create or drop a database.
    #[error("cannot {doing} a database")]
    Database {
        /// The operation that failed.
        doing: &'static str,
        /// Why it failed.
        source: sqlx::Error,
    },
}

impl ClusterError {
    fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }

    fn database(doing: &'static str) -> impl Fn(sqlx::Error) -> Self {
        move |source| Self::Database { doing, source }
    }
}

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Cleanly: sessions are ended, everything is written out.
    Fast,
    /// As in a crash: everything is dropped, and the next start has to recover.
    Immediate,
}

/// A running server with its own folder. Dropping it stops the server and removes the folder.
///
/// Its methods other than [`Cluster::database`] block the thread for as long as PostgreSQL takes. A test whose tasks must
/// continue meanwhile calls them from `spawn_blocking`, or runs on more than one thread.
#[derive(Debug)]
pub struct Cluster {
    watcher: Mutex<Watcher>,
    folder: PathBuf,
    port: u16,
    databases: AtomicU32,
}

impl Cluster {
    /// Creates a cluster in a temporary folder and starts it with these additional settings.
    ///
    /// Settings that the module guarantees (`fsync`, the addresses) cannot be changed.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self, ClusterError> {
        Self::start_on(free_ports().take(MAX_STARTS), settings)
    }

    /// Starts the server that a whole test run shares. It does not sync: no test on it may claim durability.
    pub fn start_shared() -> Result<Self, ClusterError> {
        let requests = [("init", SUPERUSER), ("keep", NEW_FILES)];
        Self::made_by(&requests, free_ports().take(MAX_STARTS), &SHARED)
    }

    /// Returns the folder with the files that a server of [`Cluster::start_shared`] had before its first start.
    pub fn new_files(&self) -> PathBuf {
        self.folder.join(NEW_FILES)
    }

    fn start_on(ports: impl Iterator<Item = u16>, settings: &[(&str, &str)]) -> Result<Self, ClusterError> {
        let new_files = std::env::var(NEW_FILES_VARIABLE);
        let request = new_files.as_deref().map_or(("init", SUPERUSER), |folder| ("clone", folder));
        Self::made_by(&[request], ports, &[settings, &DURABLE].concat())
    }

    /// Makes the watcher create the data with these requests, and starts a server on it.
    fn made_by(
        requests: &[(&'static str, &str)],
        ports: impl Iterator<Item = u16>,
        settings: &[(&str, &str)],
    ) -> Result<Self, ClusterError> {
        let account = Account::needed()?;
        let binaries = find_binaries(account.as_ref()).ok_or(ClusterError::NotFound)?;
        let folder = choose_folder(account.as_ref())?;
        let mut watcher = Watcher::start(&binaries, &folder, account.as_ref())
            .map_err(ClusterError::io("start the watcher"))?;
        for &(verb, word) in requests {
            watcher.ask(verb, word)?;
        }
        write_settings(&folder, settings).map_err(ClusterError::io("write the server's settings"))?;
        let port = watcher.start_server(ports)?;
        Ok(Self { watcher: Mutex::new(watcher), folder, port, databases: AtomicU32::new(0) })
    }

    /// Crashes the server and starts it again on the same port. Returns when it has recovered.
    pub fn restart_immediate(&self) -> Result<(), ClusterError> {
        self.ask("restart", StopMode::Immediate.mode())
    }

    /// Stops the server and keeps its data, for [`Cluster::start_again`].
    pub fn stop(&self, how: StopMode) -> Result<(), ClusterError> {
        self.ask("stop", how.mode())
    }

    /// Starts the server after [`Cluster::stop`], on the same port.
    pub fn start_again(&self) -> Result<(), ClusterError> {
        self.ask("start", &self.port.to_string())
    }

    /// Returns the URL of one of the cluster's databases; `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        // Explicit, because sqlx would otherwise take it from the environment (PGSSLMODE).
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Returns the port on 127.0.0.1, which never changes.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder with the data (`data`), the log (`server.log`) and the socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn ask(&self, verb: &'static str, word: &str) -> Result<(), ClusterError> {
        // A thread that panicked meanwhile left a request unanswered at worst; the next one must still be sent.
        let mut watcher = lock(&self.watcher);
        watcher.ask(verb, word)
    }
}

impl StopMode {
    fn mode(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        }
    }
}

/// Chooses the cluster's folder. The watcher creates it, so it never exists unwatched.
fn choose_folder(account: Option<&Account>) -> Result<PathBuf, ClusterError> {
    let io = ClusterError::io("read the temporary folder");
    let parent = std::env::temp_dir().canonicalize().map_err(&io)?;
    if let Some(account) = account {
        for (index, folder) in parent.ancestors().enumerate() {
            let mode = folder.metadata().map_err(&io)?.mode();
            let needed = if index == 0 { 0o003 } else { 0o001 };
            if mode & needed != needed {
                let (account, folder) = (account.name, folder.to_owned());
                return Err(ClusterError::Closed { account, folder });
            }
        }
    }
    // Short, because the path of a socket in it is limited to about a hundred bytes.
    Ok(parent.join(format!("ichido-pg-{:016x}", chance())))
}

fn write_settings(folder: &Path, settings: &[(&str, &str)]) -> io::Result<()> {
    let socket_folder = folder.to_string_lossy();
    let socket = [("unix_socket_directories", &*socket_folder)];
    // The last line for a setting wins.
    let all = SETTINGS.iter().chain(settings).chain(&SETTINGS_FIXED).chain(&socket);
    let mut text = String::new();
    for (name, value) in all {
        let quoted = value.replace('\\', "\\\\").replace('\'', "''");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name} = '{quoted}'");
    }
    let path = folder.join("data/postgresql.conf");
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Returns free ports, in no order.
fn free_ports() -> impl Iterator<Item = u16> {
    let ports = std::iter::repeat_with(|| {
        let offset = chance() % u64::from(PORTS.end - PORTS.start);
        // The remainder of a `u16` fits in one; the fallback is never used.
        PORTS.start + u16::try_from(offset).unwrap_or_default()
    });
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.take(MAX_PORTS_TRIED).filter(is_free)
}

/// Returns a number that differs from call to call and from process to process.
fn chance() -> u64 {
    // Each `RandomState` has its own keys, drawn by the system.
    RandomState::new().build_hasher().finish()
}

/// Finds the newest server binaries that are recent enough and that the server's user may run.
fn find_binaries(account: Option<&Account>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders_on(&path).into_iter().chain(debian_folders());
    choose(folders.filter(|folder| is_whole(folder)).map(|folder| {
        let mut command = Command::new(folder.join("postgres"));
        command.arg("--version").current_dir("/").stdin(Stdio::null());
        Account::take(account, &mut command);
        let answer = command.output().map(|output| output.stdout).unwrap_or_default();
        (folder, String::from_utf8_lossy(&answer).into_owned())
    }))
}

fn folders_on(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
}

fn debian_folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(DEBIAN_FOLDER).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("bin")).collect()
}

/// Returns whether all programs are in one folder. A lone `postgres` would not match another's `initdb`.
fn is_whole(folder: &Path) -> bool {
    PROGRAMS.iter().all(|program| folder.join(program).is_file())
}

/// Chooses the newest recent enough one, of folders with their output of `postgres --version`.
fn choose(found: impl Iterator<Item = (PathBuf, String)>) -> Option<PathBuf> {
    let known = found.filter_map(|(folder, answer)| Some((folder, major(&answer)?)));
    let newest = known.filter(|(_, major)| MIN_MAJOR <= *major).max_by_key(|(_, major)| *major);
    newest.map(|(folder, _)| folder)
}

/// Parses the major version from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, or from `… 19beta1`.
fn major(answer: &str) -> Option<u32> {
    let version = answer.strip_prefix("postgres (PostgreSQL) ")?;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

#[cfg(test)]
mod tests;
