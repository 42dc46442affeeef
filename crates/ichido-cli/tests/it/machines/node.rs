//! A node: `ichido serve` in its own folder, with its own link to the database.

use std::net::SocketAddr;

use super::database::DatabaseProbe;
use super::faulty_link::FaultyLink;
use crate::folder::{self, TempFolder};
use crate::http_message::HttpMessage;
use crate::serve::client::RawRequest;
use crate::serve::program::{POLL_EVERY, ServeProcess};

pub(crate) const QUEUE: &str = "orders";

/// How long a node may show no sign of life.
const LEASE: &str = "3s";

/// A broker that deduplicates by key, and answers late, wrongly or not at all.
pub(crate) const FAULTY: [&str; 8] = [
    "--latency=20ms",
    "--fault=server_error_before=0.04",
    "--fault=server_error_after=0.04",
    "--fault=reset_before=0.02",
    "--fault=reset_after=0.02",
    "--fault=cut_after=0.02",
    "--fault=silence_before=0.002",
    "--fault=silence_after=0.002",
];

pub(crate) struct ServeNode {
    pub(crate) name: String,
    pub(crate) link: FaultyLink,
    server: ServeProcess,
    _folder: TempFolder,
}

/// The configuration of a node: short schedules, and the broker's guarantee.
fn config(name: &str, broker: SocketAddr) -> String {
    format!(
        r#"
[worker]
name = "{name}"
idle_sleep = "20ms"
[queues.{QUEUE}]
destination = "broker"
outbound_key = "own"
parallelism = 8
batch_size = 8
lease = "{LEASE}"
retry = {{ base = "20ms", factor = 2, cap = "320ms" }}
[destinations.broker]
kind = "http"
url = "http://{broker}/orders"
total_timeout = "900ms"
settle_grace = "100ms"
guarantee = "keyed"
keeps_keys_for = "24h"
echoes_key = true
min_rate = 300
circuit = {{ failures = 1000 }}
"#
    )
}

impl ServeNode {
    /// Starts a node, and waits until it serves.
    pub(crate) async fn start(name: &str, url: &str, broker: SocketAddr) -> Self {
        let (folder, link) = (folder::fresh(), FaultyLink::to(url).await);
        folder.write("ichido.toml", &config(name, broker));
        let server =
            tokio::task::block_in_place(|| ServeProcess::start(folder.path(), &["--store", &link.url]));
        Self { name: name.to_owned(), link, server, _folder: folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub(crate) async fn send(&self, request: &RawRequest) -> HttpMessage {
        self.server.send(request).await
    }

    pub(crate) fn stand_still(&self) {
        self.server.signal("STOP");
    }

    pub(crate) fn go_on(&self) {
        self.server.signal("CONT");
    }

    /// Kills it at once.
    pub(crate) async fn kill(mut self) {
        self.server.signal("KILL");
        self.server.wait().await;
    }

    /// Waits until it is ready for requests.
    pub(crate) async fn until_ready(&self) {
        while self.server.get("/readyz").await.status() != 200 {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Lets a failure hit the node while it holds messages.
    ///
    /// Inside a transaction, its locks stay until the server gives up, for half a minute. Only a test with enough
    /// time picks such a moment.
    pub(crate) async fn fail_while_holding(
        &self,
        database: &DatabaseProbe,
        has_time: bool,
        strike: impl Fn(&Self),
        undo: impl Fn(&Self),
    ) {
        let id = database.id_of(&self.name).await;
        loop {
            database.until_holding(id, true).await;
            strike(self);
            // It may have settled its messages since.
            let is_short = has_time || !database.is_left_open(&self.link.ports()).await;
            if database.is_holding(id).await && is_short {
                return;
            }
            undo(self);
        }
    }
}
