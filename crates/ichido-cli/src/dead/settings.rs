//! What all of `ichido dead` needs: the store, who acts, and what the queues say.

use std::path::{Path, PathBuf};

use ichido::letters::{Policies, QueuePolicy};
use ichido::worker::Queue;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::letter::LetterRow;
use ichido_store::message::QueueName;

use crate::config::{self, Config, FILE_NAME, Intake};
use crate::exit::Exit;
use crate::faults::Faults;
use crate::store::open_existing;

pub(super) struct Settings {
    pub(super) command: &'static str,
    pub(super) by: String,
    pub(super) json: bool,
    url: String,
    config: Option<Config>,
}

impl Settings {
    /// Reads the configuration, if there is one: it must be there where it is named.
    pub(super) fn read(
        command: &'static str,
        store: Option<String>,
        path: Option<PathBuf>,
        by: String,
        json: bool,
    ) -> Result<Self, Exit> {
        let path = path.or_else(|| Path::new(FILE_NAME).is_file().then(|| PathBuf::from(FILE_NAME)));
        let config = path.map(|path| config::load(&path)).transpose();
        let config = config.map_err(|faults| Exit::Misconfigured { command, faults })?;
        let url = store.or_else(|| config.as_ref().and_then(|config| config.store.url.clone()));
        let Some(url) = url else {
            let mut faults = Faults::default();
            faults.add(
                "--store",
                "say where messages are kept: sqlite:FILE or postgres://…, set ICHIDO_STORE, or give a configuration by --config",
            );
            return Err(Exit::Misconfigured { command, faults });
        };
        Ok(Self { command, by, json, url, config })
    }

    pub(super) async fn open(&self) -> Result<Store, Exit> {
        open_existing(&self.url).await
    }

    /// What the queues say about dead letters. Without a configuration none says anything, and none may be requeued.
    pub(super) fn policies(&self) -> Result<Policies, Exit> {
        let Some(config) = &self.config else {
            return Err(self.wrong(
                "--config",
                "say which queues allow a requeue: there is no ichido.toml here, so give one by --config or ICHIDO_CONFIG",
            ));
        };
        Ok(policies(config))
    }

    /// What the settings say about a queue, if they know it.
    pub(super) fn queue(&self, name: &str) -> Option<&Queue> {
        self.config.as_ref()?.queues.iter().find(|queue| queue.name == name)
    }

    /// What a queue takes in, if the settings say so.
    pub(super) fn intake(&self, queue: &str) -> Intake {
        self.config.as_ref().map(|config| config.intake(queue)).unwrap_or_default()
    }

    /// The key under which the destination knows a letter: as its queue is set up, or why that cannot be told here.
    pub(super) fn sent_as(&self, letter: &LetterRow) -> Result<IdempotencyKey, String> {
        let name = letter.queue.as_str();
        match (self.queue(name), &self.config) {
            (Some(queue), _) => Ok(queue.key.of(&letter.queue, &letter.identity, &letter.key)),
            (None, Some(_)) => Err(format!(
                "not known here: the configuration has no [queues.{name}]; give the worker's by --config"
            )),
            (None, None) => Err(format!(
                "not known here: there is no {FILE_NAME} that says it; give the worker's by --config"
            )),
        }
    }

    /// Nothing was tried, because what was asked makes no sense.
    pub(super) fn wrong(&self, place: &str, what: impl Into<String>) -> Exit {
        let mut faults = Faults::default();
        faults.add(place, what);
        Exit::Misconfigured { command: self.command, faults }
    }
}

/// What the queues of a configuration say about dead letters.
pub(crate) fn policies(config: &Config) -> Policies {
    let policy = |queue: &Queue| {
        let to = config.destinations.iter().find(|described| described.name == queue.destination)?;
        // What only its server could say is not asked here: a promise that is not known counts as none.
        let guarantee = to.guarantee().unwrap_or(Guarantee::Nothing);
        Some((QueueName::parse(&queue.name)?, QueuePolicy { requeue: queue.requeue, guarantee }))
    };
    let telling = config.alerts.queues();
    let known = config.queues.iter().chain(&telling).filter_map(policy);
    known.fold(Policies::default(), |all, (queue, policy)| all.with(queue, policy))
}

/// The store did not do as asked.
pub(super) fn failed(what: &str) -> impl Fn(StoreError) -> Exit {
    move |error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Exit::Failed(format!("{what}: {error}{cause}"))
    }
}
