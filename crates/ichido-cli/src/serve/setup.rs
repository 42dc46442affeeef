//! Finds the server's configuration, or falls back to a built-in one.

use std::path::{Path, PathBuf};

use ichido_core::settings::ConfigErrors;
use ichido_mock_broker::{Behaviour, InProcess};
use ichido_server::config::DEFAULT_URL;
use ichido_server::config::{self, Config, ConfigSources, FILE_NAME};

use super::{Args, store_url};
use crate::exit::Exit;

/// The queue of the built-in configuration.
pub(super) const DEMO: &str = "demo";
/// The name of the built-in configuration in messages.
const BUILT_IN: &str = "the built-in configuration";

pub(super) struct Setup {
    pub(super) config: Config,
    /// May contain a password.
    pub(super) url: String,
    /// The path of the configuration, for messages.
    pub(super) config_path: PathBuf,
    /// The mock broker that the built-in queue delivers to.
    pub(super) mock_broker: Option<InProcess>,
}

impl Setup {
    /// Uses the named configuration, else `ichido.toml` if it exists, else the built-in one.
    pub(super) async fn find(args: &Args) -> Result<Self, Exit> {
        let here = || Path::new(FILE_NAME).is_file().then(|| PathBuf::from(FILE_NAME));
        if let Some(config_path) = args.config.clone().or_else(here) {
            let config = config::load(&config_path)?;
            let url = store_url(args.store.clone(), &config, &config_path)?;
            return Ok(Self { config, url, config_path, mock_broker: None });
        }
        let mock_broker = InProcess::start(Behaviour::WELL, fastrand::u64(..)).await;
        let mock_broker = mock_broker
            .map_err(|error| Exit::Failed(format!("the mock broker cannot listen on loopback: {error}")))?;
        let config = built_in(&mock_broker)?;
        let url = args.store.clone().unwrap_or_else(|| DEFAULT_URL.to_owned());
        Ok(Self { config, url, config_path: BUILT_IN.into(), mock_broker: Some(mock_broker) })
    }
}

/// Creates a configuration with one queue to a mock broker.
///
/// The broker runs in this process and is called over HTTP like any other.
fn built_in(mock_broker: &InProcess) -> Result<Config, ConfigErrors> {
    let text = format!(
        "[destinations.mock]\nkind = \"mock\"\nurl = \"http://{}/orders\"\n\n[queues.{DEMO}]\ndestination = \"mock\"\nrequeue = true\n",
        mock_broker.address
    );
    config::resolve(BUILT_IN, &text, &ConfigSources::of_process(PathBuf::new()))
}
