//! PostgreSQL for tests: servers of our own, and a fresh database for each test.
//!
//! Guarantee: a server started here runs with `fsync` on, answers on loopback only, and is stopped and its
//! folder removed when its [`Cluster`] is dropped or its process ends, in whatever way the process ends.
//!
//! A test that only needs a database calls [`fresh_database`]; all tests of one binary share one server, or use
//! the one that [`SERVER_VARIABLE`] names. A test that stops, restarts or breaks its server starts its own with
//! [`Cluster::start`], whatever that variable says.
//!
//! Neither `Drop` nor a signal handler can tidy up after `kill -9`, and statics are never dropped. So a small
//! shell, the watcher, stands beside each server: it alone runs `initdb` and `pg_ctl`, one request after another
//! as they come down a pipe, and when the pipe closes it stops the server and removes the folder. The pipe closes
//! when the cluster is dropped and when the process dies, so both take the same way out. What is left then is
//! killing the watcher itself with `kill -9`, against which nothing here helps.
//!
//! Any local user may log in as the superuser of a running cluster: these servers hold test data only.

mod account;
mod standby;
mod watcher;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use self::account::{ACCOUNTS, Account};
use self::watcher::Watcher;

/// Names the environment variable with the URL of an administrator's database, in whose server
/// [`fresh_database`] makes its databases instead of starting one. Not `DATABASE_URL`: that one also steers
/// sqlx's macros, and a developer may have it set to a database that matters.
pub const SERVER_VARIABLE: &str = "ICHIDO_TEST_POSTGRES";

/// The oldest major version that its makers still mend.
const MAJOR_MIN: u32 = 14;
/// What a test needs to make a database, start it, copy it to a standby and stop it.
const PROGRAMS: [&str; 4] = ["initdb", "pg_basebackup", "pg_ctl", "postgres"];
/// Debian keeps each major version in a folder of its own here, off the path.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";
/// The superuser of our own clusters.
const SUPERUSER: &str = "ichido";
/// Below the ports that Linux and macOS hand out by themselves, so that while a server is down for a restart no
/// outgoing connection takes its port.
const PORTS: std::ops::Range<u16> = 15_000..32_000;
/// How many ports to look at for one that is free.
const PORTS_TRIED_MAX: usize = 200;
/// How often to start a server: another process may take the port between our look and the server's.
const STARTS_MAX: usize = 5;
/// How long dropping a database in somebody else's server may take.
const DROP_TIME_MAX: Duration = Duration::from_secs(20);

/// Enough for many tests at once. A caller's settings come after these and win.
const SETTINGS: [(&str, &str); 6] = [
    ("shared_buffers", "128MB"),
    ("max_connections", "200"),
    ("max_wal_size", "1GB"),
    ("synchronous_commit", "on"),
    // The same on every machine, as a test's expectations are.
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
];
/// What no caller may change, because the module guarantees it.
const SETTINGS_FIXED: [(&str, &str); 3] =
    [("fsync", "on"), ("full_page_writes", "on"), ("listen_addresses", "127.0.0.1")];

/// Why there is no server or no database.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No folder has all server binaries in a version new enough.
    #[error(
        "the tests need PostgreSQL {MAJOR_MIN} or later: {} in one folder, on PATH or in {DEBIAN_FOLDER}/*/bin. \
         Install it with `sudo apt-get install postgresql` (Debian, Ubuntu), `sudo dnf install postgresql-server` \
         (Fedora) or `brew install postgresql` (macOS); as root on Debian, `cargo xtask test` installs it. \
         No server has to run: the tests start their own. Or set {SERVER_VARIABLE} to an administrator's database.",
        PROGRAMS.join(", ")
    )]
    NotFound,
    /// We are root, and there is nobody else to run the server as.
    #[error("PostgreSQL refuses to run as root, and /etc/passwd has none of the users {}", ACCOUNTS.join(", "))]
    NoAccount,
    /// We are root, and the user who runs the server may not use the temporary folder.
    #[error("user {account} may not use {}; set TMPDIR to a folder in which all may write", folder.display())]
    Closed {
        /// The user who would run the server.
        account: &'static str,
        /// The folder that is closed to that user.
        folder: PathBuf,
    },
    /// None of the ports looked at was free.
    #[error("no free port found on 127.0.0.1")]
    NoPort,
    /// A file, folder or pipe failed us.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// One of PostgreSQL's programs failed.
    #[error("PostgreSQL failed to {verb}: {said}\n{log}")]
    Program {
        /// What it was asked to do.
        verb: &'static str,
        /// What the program said.
        said: String,
        /// The end of the server's log.
        log: String,
    },
    /// [`SERVER_VARIABLE`] is set to something other than a URL. The value is not repeated: it may hold a password.
    #[error("{SERVER_VARIABLE} is not a URL of the form postgres://user:password@host:port/database")]
    NotUrl,
    /// The server did not make or drop a database.
    #[error("cannot {doing} a database")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: sqlx::Error,
    },
}

/// How a server is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// In good order: sessions are told to end, everything is written out.
    Fast,
    /// As in a crash: everything is dropped, and the next start has to recover.
    Immediate,
}

/// A running server with a folder of its own. Dropping it stops the server and removes the folder.
///
/// Its methods other than [`Cluster::database`] block the thread for as long as PostgreSQL takes. A test whose
/// tasks have to go on meanwhile calls them from `spawn_blocking`, or runs on more than one thread.
#[derive(Debug)]
pub struct Cluster {
    watcher: Mutex<Watcher>,
    folder: PathBuf,
    port: u16,
    databases: AtomicU32,
}

impl Cluster {
    /// Makes a cluster in a temporary folder and starts it with these settings on top of ours. What keeps the
    /// module's guarantee (`fsync`, the addresses) cannot be set.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self, ClusterError> {
        Self::start_on(free_ports().take(STARTS_MAX), settings)
    }

    fn start_on(ports: impl Iterator<Item = u16>, settings: &[(&str, &str)]) -> Result<Self, ClusterError> {
        Self::made_by(("init", SUPERUSER), ports, settings)
    }

    /// Has the watcher make the data by this request, and starts a server on it.
    fn made_by(
        (verb, word): (&'static str, &str),
        ports: impl Iterator<Item = u16>,
        settings: &[(&str, &str)],
    ) -> Result<Self, ClusterError> {
        let account = Account::needed()?;
        let binaries = find_binaries(account.as_ref()).ok_or(ClusterError::NotFound)?;
        let folder = choose_folder(account.as_ref())?;
        let mut watcher = Watcher::start(&binaries, &folder, account.as_ref()).map_err(|source| {
            let doing = "start the watcher";
            ClusterError::Io { doing, source }
        })?;
        watcher.ask(verb, word)?;
        write_settings(&folder, settings).map_err(|source| {
            let doing = "write the server's settings";
            ClusterError::Io { doing, source }
        })?;
        let port = watcher.start_server(ports)?;
        Ok(Self { watcher: Mutex::new(watcher), folder, port, databases: AtomicU32::new(0) })
    }

    /// Crashes the server and starts it again on the same port; returns when it has recovered.
    pub fn restart_immediate(&self) -> Result<(), ClusterError> {
        self.ask("restart", Stop::Immediate.mode())
    }

    /// Stops the server and leaves its data, for [`Cluster::start_again`].
    pub fn stop(&self, how: Stop) -> Result<(), ClusterError> {
        self.ask("stop", how.mode())
    }

    /// Starts the server after [`Cluster::stop`], on the same port.
    pub fn start_again(&self) -> Result<(), ClusterError> {
        self.ask("start", &self.port.to_string())
    }

    /// The URL of one of the cluster's databases; `postgres` is always there.
    pub fn url(&self, database: &str) -> String {
        // Said outright, because sqlx would otherwise take it from the environment (PGSSLMODE).
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Makes a fresh database, which goes when the cluster goes.
    pub async fn database(&self) -> Result<Database, ClusterError> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("ichido_test_{number}");
        create_database(&self.url("postgres"), &name).await?;
        Ok(Database { url: self.url(&name), name, administrator: None })
    }

    /// The port on 127.0.0.1, the same for the cluster's whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with the data (`data`), the log (`server.log`) and the socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn ask(&self, verb: &'static str, word: &str) -> Result<(), ClusterError> {
        // A thread that panicked in between left a request unanswered at worst; the next one must still be sent.
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.ask(verb, word)
    }
}

impl Stop {
    fn mode(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        }
    }
}

/// A database for one test. Keep it for as long as the test uses the URL: in a server that is not ours,
/// dropping this drops the database and ends the sessions in it.
#[derive(Debug)]
#[must_use = "dropping this drops the database"]
pub struct Database {
    /// Where to connect.
    pub url: String,
    /// The database's name in its server.
    pub name: String,
    /// From where to drop the database, if it does not go with its cluster.
    administrator: Option<String>,
}

/// Makes a fresh database: in the server of [`SERVER_VARIABLE`], or else in the one server that this process
/// shares among its tests and that ends with it.
///
/// # Panics
/// If there is no server or it makes no database, with what to do about it; a test has no other way on.
pub async fn fresh_database() -> Database {
    static SERVER: OnceLock<Result<Server, ClusterError>> = OnceLock::new();
    // This blocks the runtimes of all tests that come first, and none of them could do anything without.
    let made = match SERVER.get_or_init(Server::choose) {
        Ok(Server::Own(cluster)) => cluster.database().await,
        Ok(Server::Given { url }) => given_database(url).await,
        Err(error) => panic!("no PostgreSQL for this test: {}", with_causes(error)),
    };
    made.unwrap_or_else(|error| panic!("no database for this test: {}", with_causes(&error)))
}

/// Where [`fresh_database`] makes its databases.
enum Server {
    Own(Cluster),
    Given { url: String },
}

impl Server {
    fn choose() -> Result<Self, ClusterError> {
        match std::env::var_os(SERVER_VARIABLE) {
            Some(url) if !url.is_empty() => {
                let url = url.into_string().map_err(|_| ClusterError::NotUrl)?;
                Ok(Self::Given { url })
            }
            _ => Cluster::start(&[]).map(Self::Own),
        }
    }
}

async fn given_database(administrator: &str) -> Result<Database, ClusterError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // The chance part, because containers that share a server may have the same process ids.
    let name = format!("ichido_test_{}_{number}_{:016x}", std::process::id(), chance());
    let url = with_database(administrator, &name).ok_or(ClusterError::NotUrl)?;
    create_database(administrator, &name).await?;
    Ok(Database { url, name, administrator: Some(administrator.to_owned()) })
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(administrator) = self.administrator.take() else {
            return;
        };
        let name = self.name.clone();
        // A thread of its own, because a runtime cannot wait for another on the thread that it runs on.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let drop = drop_database(&administrator, &name);
                tokio::time::timeout(DROP_TIME_MAX, drop).await
            })?
        });
        let dropped: Result<(), BoxError> = dropping.join().unwrap_or_else(|_| Err("it panicked".into()));
        if let Err(error) = dropped {
            eprintln!("database {} stays behind: {}", self.name, with_causes(&*error));
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn create_database(administrator: &str, name: &str) -> Result<(), ClusterError> {
    // From template0, because nobody connects to it: template1 cannot be copied while somebody is in it.
    let sql = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
    execute(administrator, sql).await.map_err(|source| {
        let doing = "create";
        ClusterError::Database { doing, source }
    })
}

async fn drop_database(administrator: &str, name: &str) -> Result<(), BoxError> {
    // By force, because a test that panicked may have left sessions behind.
    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
    Ok(execute(administrator, sql).await?)
}

/// Runs a statement over a connection of its own: each test has its own runtime, and a connection cannot move
/// between them. There is no timeout here, because it would fire at once in a test that pauses the clock.
async fn execute(url: &str, sql: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    // Safe, because the names in it are of our own making: lower-case letters, digits and underscores.
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// The same URL with another database in it, whether or not it named one.
fn with_database(url: &str, database: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "postgres" | "postgresql") {
        return None;
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split('/').next().unwrap_or_default();
    let mut with = format!("{scheme}://{authority}/{database}");
    // A `dbname` in the query would win over the path.
    let kept = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("dbname="));
    for (index, pair) in kept.enumerate() {
        with.push(if index == 0 { '?' } else { '&' });
        with.push_str(pair);
    }
    Some(with)
}

/// Where the cluster's folder will be. The watcher makes it, so that it never stands there unwatched.
fn choose_folder(account: Option<&Account>) -> Result<PathBuf, ClusterError> {
    let io = |source| {
        let doing = "look at the temporary folder";
        ClusterError::Io { doing, source }
    };
    let parent = std::env::temp_dir().canonicalize().map_err(io)?;
    if let Some(account) = account {
        for (index, folder) in parent.ancestors().enumerate() {
            let mode = folder.metadata().map_err(io)?.mode();
            let needed = if index == 0 { 0o003 } else { 0o001 };
            if mode & needed != needed {
                let (account, folder) = (account.name, folder.to_owned());
                return Err(ClusterError::Closed { account, folder });
            }
        }
    }
    // Short, because the path of a socket in it may have about a hundred bytes.
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

/// Ports on which nobody listens, in no order.
fn free_ports() -> impl Iterator<Item = u16> {
    let ports = std::iter::repeat_with(|| {
        let offset = chance() % u64::from(PORTS.end - PORTS.start);
        // The remainder of a `u16` fits one; the fallback is never taken.
        PORTS.start + u16::try_from(offset).unwrap_or_default()
    });
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.take(PORTS_TRIED_MAX).filter(is_free)
}

/// A number that differs from call to call and from process to process.
fn chance() -> u64 {
    // Each `RandomState` has keys of its own, which the system drew.
    RandomState::new().build_hasher().finish()
}

/// The folder of the newest server binaries that are new enough and that the server's user may run.
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

/// All programs in one folder: a lone `postgres` from elsewhere would not match another's `initdb`.
fn is_whole(folder: &Path) -> bool {
    PROGRAMS.iter().all(|program| folder.join(program).is_file())
}

/// The newest that is new enough, of folders with what their `postgres --version` answers.
fn choose(found: impl Iterator<Item = (PathBuf, String)>) -> Option<PathBuf> {
    let known = found.filter_map(|(folder, answer)| Some((folder, major(&answer)?)));
    let newest = known.filter(|(_, major)| MAJOR_MIN <= *major).max_by_key(|(_, major)| *major);
    newest.map(|(folder, _)| folder)
}

/// The major version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, or in `… 19beta1`.
fn major(answer: &str) -> Option<u32> {
    let version = answer.strip_prefix("postgres (PostgreSQL) ")?;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

/// An error and what caused it, for a test's panic message, which shows no causes by itself.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests;
