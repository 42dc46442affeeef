//! A node: `ichido serve` in a folder of its own, with a way of its own to the database.

use std::net::SocketAddr;

use super::database::DatabaseProbe;
use super::faulty_link::FaultyLink;
use crate::folder::{self, TempFolder};
use crate::http_message::HttpMessage;
use crate::serve::client::RawRequest;
use crate::serve::program::{POLL_EVERY, ServeProcess};

pub(crate) const QUEUE: &str = "orders";

/// The time that a node may show no sign of life.
const LEASE: &str = "3s";

/// A broker that honours keys, and answers late, wrongly or not at all.
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

/// The configuration of a node: schedules scaled down, and what is promised of the broker.
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
total_time_out = "900ms"
settles_within = "100ms"
honours_key = true
keeps_keys_for = "24h"
echoes_key = true
rate_floor = 300
circuit = {{ failures = 1000 }}
"#
    )
}

impl ServeNode {
    /// Starts one, and waits until it serves.
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

    /// Ends it without a chance to do anything about it.
    pub(crate) async fn kill(mut self) {
        self.server.signal("KILL");
        self.server.wait().await;
    }

    /// Waits until it would be given requests.
    pub(crate) async fn until_ready(&self) {
        while self.server.get("/readyz").await.status() != 200 {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Lets something befall it while it holds messages. In the middle of a transaction what it has locked stays locked until the
    /// server gives that up, for half a minute: such a moment is taken only by who has the time.
    pub(crate) async fn struck_holding(
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
            // What it held a moment ago it may have settled since.
            let is_short = has_time || !database.is_left_open(&self.link.ports()).await;
            if database.is_holding(id).await && is_short {
                return;
            }
            undo(self);
        }
    }
}
