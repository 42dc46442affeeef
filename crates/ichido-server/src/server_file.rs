//! The address of a running server, in a file beside its SQLite store.
//!
//! Guarantee: [`find`] returns a server only while it runs: it holds a lock on the file, which the system releases however the
//! server ends. Links are not followed, and the file must have the owner of the store. [`RunningServer::check`] sends no token.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ichido_client::{ClientSettings, MAX_ANSWER_BYTES, Outcome};
use ichido_core::retry::Retry;
use serde::Deserialize;
use tracing::warn;
use uuid::Uuid;

use crate::config::sqlite_file;

/// What is appended to the name of the store's file.
const SUFFIX: &str = ".server";
/// Maximum size of the file that is read.
const MAX_BYTES: u64 = 256;
/// How often a starting server tries to lock the file.
///
/// A command that looks holds a lock for a moment; another server holds it for good.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_RETRY_AFTER: Duration = Duration::from_millis(10);
/// How long a server that nobody named may take to answer; then the store is used.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The file of this server, removed on drop.
#[derive(Debug)]
pub struct ServerFile {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl Drop for ServerFile {
    fn drop(&mut self) {
        // Without it, commands use the store. Somebody may have removed it, and another server written its own.
        if is_same(&self.file, &self.path) {
            _ = std::fs::remove_file(&self.path);
        }
    }
}

impl ServerFile {
    /// Writes the address of a server and the id of its node.
    ///
    /// `None` if the store is not a file, if another server of this store has written its address, or if it cannot be written: then
    /// commands use the store directly.
    pub async fn write(store_url: &str, address: SocketAddr, node: Uuid) -> Option<Self> {
        Self::try_write(store_url, address, node).await.unwrap_or_else(|error| {
            warn!("cannot write the server's address beside the store: {error}; commands here use the store directly");
            None
        })
    }

    async fn try_write(store_url: &str, address: SocketAddr, node: Uuid) -> io::Result<Option<Self>> {
        let Some(store) = sqlite_file(store_url) else { return Ok(None) };
        let path = beside(&store.canonicalize()?);
        for _ in 0..LOCK_ATTEMPTS {
            let mut file = open(OpenOptions::new().write(true).create(true).truncate(false), &path)?;
            match file.try_lock() {
                // A server that ended meanwhile has removed the file that was opened.
                Ok(()) if is_same(&file, &path) => {
                    file.set_len(0)?;
                    writeln!(file, "http://{} {node}", local_address(address))?;
                    return Ok(Some(Self { path, file }));
                }
                Ok(()) | Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_RETRY_AFTER).await,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// A server that runs on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningServer {
    /// Its URL.
    pub url: String,
    /// The node of its worker.
    node: Uuid,
}

/// Returns the server that runs on a store, if its file says so.
pub fn find(store_url: &str) -> Option<RunningServer> {
    let store = sqlite_file(store_url)?.canonicalize().ok()?;
    let file = open(OpenOptions::new().read(true), &beside(&store)).ok()?;
    let is_running = || matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    if !has_owner_of(&file, &store) || !is_running() {
        return None;
    }
    let mut text = String::new();
    (&file).take(MAX_BYTES).read_to_string(&mut text).ok()?;
    parse(&text)
}

fn parse(text: &str) -> Option<RunningServer> {
    let (url, node) = text.trim_end().split_once(' ')?;
    let address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    Some(RunningServer { url: format!("http://{address}"), node: node.parse().ok()? })
}

/// The part of the response to `GET /v1/nodes` that is needed here.
#[derive(Deserialize)]
struct Nodes {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: Uuid,
}

impl RunningServer {
    /// Checks that the server serves this store without a token; otherwise says why it cannot be used.
    ///
    /// In another container the same address may belong to another server.
    pub async fn check(&self) -> Result<(), String> {
        let settings = ClientSettings {
            retry: Retry { max_attempts: NonZeroU32::MIN, ..Retry::CLIENT },
            connect_timeout: CHECK_TIMEOUT,
            attempt_timeout: CHECK_TIMEOUT,
            total_timeout: CHECK_TIMEOUT,
            max_response_bytes: MAX_ANSWER_BYTES,
            ..ClientSettings::new(self.url.clone())
        };
        let client = settings.resolve().map_err(|problems| problems.to_string())?;
        match client.read("/v1/nodes").await.map_err(|error| error.to_string())? {
            Outcome::Done { answer, .. } => match serde_json::from_slice::<Nodes>(&answer.body) {
                Ok(Nodes { nodes }) if nodes.iter().any(|node| node.id == self.node) => Ok(()),
                _ => Err("it does not serve this store".to_owned()),
            },
            Outcome::Refused { answer, .. } if answer.status == 401 => {
                Err("it requires a token\nto use the server, pass --server, and its token in ICHIDO_TOKEN"
                    .to_owned())
            }
            Outcome::Refused { answer, .. } => Err(format!("it responded {}", answer.status)),
            Outcome::GaveUp { .. } => Err("it cannot be reached".to_owned()),
        }
    }
}

/// Returns the address at which this machine reaches a server, also one that listens on all interfaces.
pub fn local_address(listen: SocketAddr) -> SocketAddr {
    let address = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(address, listen.port())
}

fn beside(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

/// Opens a regular file, readable by its owner only; follows no link, and does not wait for the writer of a pipe.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Whether a path still leads to an open file.
#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let both = file.metadata().and_then(|file| Ok((file, path.symlink_metadata()?)));
    both.is_ok_and(|(file, there)| (file.dev(), file.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_same(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Whether a file belongs to the owner of the store: another user must not redirect its messages.
#[cfg(unix)]
fn has_owner_of(file: &File, store: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let both = file.metadata().and_then(|file| Ok((file, store.metadata()?)));
    both.is_ok_and(|(file, store)| file.uid() == store.uid())
}

#[cfg(not(unix))]
fn has_owner_of(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_listen_address_is_reached_on_loopback() {
        for (listen, asked) in
            [("0.0.0.0:4180", "127.0.0.1:4180"), ("[::]:4180", "[::1]:4180"), ("10.1.2.3:80", "10.1.2.3:80")]
        {
            assert_eq!(local_address(listen.parse().unwrap()), asked.parse().unwrap());
        }
    }

    #[test]
    fn only_an_address_and_a_node_are_read() {
        let node = Uuid::from_u128(7);
        let url = "http://127.0.0.1:4180";
        assert_eq!(parse(&format!("{url} {node}\n")), Some(RunningServer { url: url.to_owned(), node }));
        for wrong in [
            String::new(),
            url.to_owned(),
            format!("https://127.0.0.1:4180 {node}"),
            format!("http://example.com:80 {node}"),
            format!("http://127.0.0.1:4180/v1 {node}"),
            format!("http://127.0.0.1:4180@evil.test {node}"),
            format!("{url} nobody"),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn address_is_found_while_its_server_runs_and_only_in_a_plain_file() {
        let folder = std::env::temp_dir().join(format!("ichido-server-file-{}", Uuid::now_v7()));
        std::fs::create_dir(&folder).unwrap();
        let store = folder.join("ichido.db");
        std::fs::write(&store, "").unwrap();
        let url = format!("sqlite:{}", store.display());
        let (path, node) = (beside(&store), Uuid::from_u128(7));
        let listen = "0.0.0.0:4180".parse().unwrap();
        let held = ServerFile::write(&url, listen, node).await.unwrap();
        let found = RunningServer { url: "http://127.0.0.1:4180".to_owned(), node };
        assert_eq!(find(&url), Some(found.clone()));
        let other = ServerFile::write(&url, "127.0.0.1:1".parse().unwrap(), Uuid::nil()).await;
        assert!(other.is_none(), "a second server does not overwrite it");
        assert_eq!(find(&url), Some(found));
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        drop(held);
        assert!(!path.exists(), "a clean stop removes it");
        let first = ServerFile::write(&url, listen, node).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = ServerFile::write(&url, listen, node).await.unwrap();
        drop(first);
        assert!(find(&url).is_some(), "a server removes only its own file");
        drop(second);
        // A killed server leaves the file without a lock.
        std::fs::write(&path, format!("http://127.0.0.1:4180 {node}\n")).unwrap();
        assert_eq!(find(&url), None);
        std::fs::rename(&path, folder.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(folder.join("elsewhere"), &path).unwrap();
        assert!(ServerFile::write(&url, listen, node).await.is_none(), "a link is not followed");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
