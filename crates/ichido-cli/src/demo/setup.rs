//! The setup of the demo: two mock brokers, and a configuration for them.

use std::path::PathBuf;

use ichido_mock_broker::{Behaviour, InProcess, Rates};
use ichido_server::config::{self, Config, ConfigSources};

use super::scenario::FaultMode;
use crate::exit::Exit;

/// The name of the configuration in messages.
const NAME: &str = "the demo's configuration";

/// Queues and destinations in the format of `ichido.toml`.
const TEXT: &str = r#"
[worker]
name = "demo"

[queues.orders]
destination = "broker"
outbound_key = "own"
requeue = true
retry = { waits = ["500ms", "1s", "2s"], jitter = "none" }

[queues.payments]
destination = "bank"
outbound_key = "own"

[queues.faxes]
destination = "fax"
outbound_key = "own"

[destinations.broker]
kind = "mock"
url = "http://BROKER/orders"

[destinations.bank]
kind = "http"
url = "http://OFFICE/payments"
guarantee = "none"
total_timeout = "5s"
settle_grace = "1s"

[destinations.bank.reconcile]
url = "http://OFFICE/orders/by-key/{key}"
rules = [
    { status = "200", at = "/status", is = "accepted", means = "done" },
    { status = "404", at = "/error", is = "no_such_order", means = "not_done" },
]

[destinations.fax]
kind = "http"
url = "http://OFFICE/faxes"
guarantee = "none"
total_timeout = "5s"
"#;

/// The receivers.
pub(super) struct Receivers {
    /// Takes orders and deduplicates by key.
    pub(super) broker: InProcess,
    /// Takes payments and faxes, ignores keys, and loses its responses.
    pub(super) office: InProcess,
}

impl Receivers {
    pub(super) async fn start(seed: u64) -> Result<Self, Exit> {
        let mute = Rates::new(FaultMode::Mute.faults().iter().map(|(name, rate)| (*name, Some(*rate))));
        let rates =
            mute.map_err(|errors| Exit::Failed(format!("cannot configure the office's faults: {errors:?}")))?;
        let losing = Behaviour { deduplicates: false, rates, ..Behaviour::WELL };
        let failed = |error| Exit::Failed(format!("the mock broker cannot listen on loopback: {error}"));
        Ok(Self {
            broker: InProcess::start(Behaviour::WELL, seed).await.map_err(failed)?,
            office: InProcess::start(losing, seed).await.map_err(failed)?,
        })
    }

    /// Returns the configuration.
    ///
    /// The environment cannot change it, so the demo is the same everywhere.
    pub(super) fn config(&self) -> Result<Config, Exit> {
        let text = TEXT
            .replace("BROKER", &self.broker.address.to_string())
            .replace("OFFICE", &self.office.address.to_string());
        let outside = ConfigSources::of_files(PathBuf::new());
        Ok(config::resolve(NAME, &text, &outside)?)
    }
}
