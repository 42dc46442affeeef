//! The program as a process that is killed and restarted at the same address.

use std::net::SocketAddr;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bookmarks");
/// How often the start is tried when another program has taken the port, which is free between two lives.
const MAX_STARTS: usize = 100;

/// The running service.
pub(crate) struct KilledService {
    address: SocketAddr,
    process: Child,
}

impl KilledService {
    /// Starts it; port 0 is any free port.
    pub(crate) async fn start_at(store: &str, address: SocketAddr) -> Self {
        let mut why = String::new();
        for _ in 0..MAX_STARTS {
            match started(store, address).await {
                Ok(service) => return service,
                Err(printed) => why = printed,
            }
            assert!(why.contains("cannot listen on"), "the service did not start: {why}");
        }
        panic!("another program has the port: {why}");
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills it with SIGKILL and returns its address once it is gone.
    pub(crate) async fn killed(mut self) -> SocketAddr {
        self.process.kill().await.unwrap();
        self.address
    }
}

/// Waits until the service is ready, or returns its output instead.
async fn started(store: &str, address: SocketAddr) -> Result<KilledService, String> {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", &address.to_string(), "--store", store]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut log = process.stderr.take().unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(at) = line.strip_prefix("bookmarks: serving on http://") {
            // Keep reading, or the service would block on a full pipe.
            tokio::spawn(async move { tokio::io::copy(&mut log, &mut tokio::io::sink()).await });
            return Ok(KilledService { address: at.parse().unwrap(), process });
        }
    }
    let mut why = String::new();
    log.read_to_string(&mut why).await.unwrap();
    Err(why)
}
