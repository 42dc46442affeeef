//! The flags that name a server or a store. The rule is in [`ichido_server::target`].

use std::path::PathBuf;

use ichido_core::settings::ConfigErrors;
use ichido_server::target::{StoreTarget, Target};

use crate::out;

/// Names a server or a store.
#[derive(Debug, clap::Args)]
pub(crate) struct TargetArgs {
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help = "Server URL; set its token in ICHIDO_TOKEN [env: ICHIDO_SERVER]"
    )]
    server: Option<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Names a store.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help = "Store URL: sqlite:FILE or postgres://… [env: ICHIDO_STORE] \
                [default: from the configuration, else sqlite:ichido.db]"
    )]
    pub(crate) store: Option<String>,

    /// Configuration file [default: ichido.toml, if present]
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

impl TargetArgs {
    /// Finds the server or store, and says which one it is unless the caller named it.
    pub(crate) async fn find(&self) -> Result<Target, ConfigErrors> {
        let StoreArgs { store, config } = &self.store;
        let (target, note) =
            Target::find(self.server.as_deref(), store.as_deref(), config.as_deref()).await?;
        say(note);
        Ok(target)
    }
}

impl StoreArgs {
    /// Finds the store, and says which one it is unless the caller named it.
    pub(crate) fn find(&self) -> Result<StoreTarget, ConfigErrors> {
        let found = StoreTarget::find(self.store.as_deref(), self.config.as_deref())?;
        say(found.note());
        Ok(found)
    }
}

/// Prints lines to standard error: the output of the command stays as it is.
pub(crate) fn say(note: Option<String>) {
    if let Some(note) = note {
        out::eprint(&format!("ichido: {}\n", note.replace('\n', "\nichido: ")));
    }
}
