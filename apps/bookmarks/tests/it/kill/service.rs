//! The program, as a process that is killed and started again at the same address.

use std::net::SocketAddr;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bookmarks");
/// How often it is started where somebody else has its port: between two lives it is free for anybody.
const STARTS_MAX: usize = 100;

/// The service, while it lives.
pub(crate) struct KilledService {
    address: SocketAddr,
    process: Child,
}

impl KilledService {
    /// Starts it; port 0 is any that is free.
    pub(crate) async fn start_at(store: &str, address: SocketAddr) -> Self {
        let mut why = String::new();
        for _ in 0..STARTS_MAX {
            match started(store, address).await {
                Ok(service) => return service,
                Err(said) => why = said,
            }
            assert!(why.contains("cannot listen on"), "the service did not start: {why}");
        }
        panic!("somebody else has the port: {why}");
    }

    /// Where clients find it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills it with SIGKILL, and says where it was once it is gone.
    pub(crate) async fn killed(mut self) -> SocketAddr {
        self.process.kill().await.unwrap();
        self.address
    }
}

/// The service once it says that it serves, or what it said in place of that.
async fn started(store: &str, address: SocketAddr) -> Result<KilledService, String> {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", &address.to_string(), "--store", store]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut log = process.stderr.take().unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(at) = line.strip_prefix("bookmarks: serving on http://") {
            // Read on, or the service would wait for a reader.
            tokio::spawn(async move { tokio::io::copy(&mut log, &mut tokio::io::sink()).await });
            return Ok(KilledService { address: at.parse().unwrap(), process });
        }
    }
    let mut why = String::new();
    log.read_to_string(&mut why).await.unwrap();
    Err(why)
}
