//! Destinations: `[destinations.NAME]`.

pub(super) mod http;
pub(super) mod llm;
mod nats;
mod pace;

use std::num::NonZeroU32;
use std::time::Duration;

use ichido::destination::Destination;
use ichido::destination::nats::{NatsPlan, NatsStartError};
use ichido::worker::DestinationConfig;
use ichido_core::pace::PaceSettings;
use ichido_core::retry::Guarantee;
use ichido_llm::destination::LlmPlan;
use ichido_store::Store;

use super::document::Section;
use super::table::KIND;
use pace::PaceConfig;

/// A parsed destination.
#[derive(Clone, Debug)]
pub struct DestinationSettings {
    /// Its name.
    pub name: String,
    /// Its kind, such as `http`.
    pub kind: &'static str,
    /// Its address, without anything that may be secret.
    pub endpoint: String,
    plan: DestinationPlan,
    pace_config: PaceConfig,
}

/// What is known of a destination before the first call.
#[derive(Clone, Debug)]
enum DestinationPlan {
    /// The complete destination.
    Ready(Destination),
    /// How to prompt a model. Its answers go into the store, which is opened when a worker starts.
    Model(Box<LlmPlan>),
    /// How to connect. The server reports its guarantee when a worker starts.
    Stream(Box<NatsPlan>),
}

impl DestinationSettings {
    /// Returns the maximum duration of a call.
    pub fn timeout(&self) -> Duration {
        match &self.plan {
            DestinationPlan::Ready(destination) => destination.terms().timeout,
            DestinationPlan::Model(plan) => plan.promise().timeout,
            DestinationPlan::Stream(plan) => plan.timeout(),
        }
    }

    /// Returns how fast it may be called.
    pub fn pace(&self) -> PaceSettings {
        self.pace_config.settings
    }

    /// Returns how many calls each worker makes at the same time; `None` leaves it to the queues.
    pub fn max_parallel(&self) -> Option<NonZeroU32> {
        self.pace_config.max_parallel
    }

    /// Returns its guarantee; `None` if the server reports it when a worker starts.
    pub fn guarantee(&self) -> Option<Guarantee> {
        match &self.plan {
            DestinationPlan::Ready(destination) => Some(destination.terms().guarantee),
            DestinationPlan::Model(plan) => Some(plan.promise().guarantee),
            DestinationPlan::Stream(_) => None,
        }
    }

    /// Returns the destination itself; `None` if it is built when a worker starts.
    pub fn known(&self) -> Option<&Destination> {
        if let DestinationPlan::Ready(destination) = &self.plan { Some(destination) } else { None }
    }

    /// Whether it can be asked about a call of unknown effect.
    pub fn can_reconcile(&self) -> bool {
        self.known().is_some_and(Destination::can_reconcile)
    }

    /// Returns the plan of a language model, whose answers go into a queue.
    pub(super) fn model(&self) -> Option<&LlmPlan> {
        if let DestinationPlan::Model(plan) = &self.plan { Some(plan) } else { None }
    }

    /// Sets the maximum attempts for delivering an answer.
    pub(super) fn with_answer_attempts(self, max_attempts: NonZeroU32) -> Self {
        match self.plan {
            DestinationPlan::Model(plan) => {
                Self { plan: DestinationPlan::Model(Box::new(plan.answer_attempts(max_attempts))), ..self }
            }
            DestinationPlan::Ready(_) | DestinationPlan::Stream(_) => self,
        }
    }

    /// Connects and returns what a worker calls; `None` if that needs the store.
    ///
    /// A NATS server is first asked about its stream.
    pub fn connect(&self) -> impl Future<Output = Result<Option<DestinationConfig>, NatsStartError>> + use<> {
        let config = self.clone();
        async move {
            let destination = match &config.plan {
                DestinationPlan::Ready(destination) => destination.clone(),
                DestinationPlan::Stream(plan) => plan.clone().connect().await?.into(),
                DestinationPlan::Model(_) => return Ok(None),
            };
            Ok(Some(config.target(destination)))
        }
    }

    /// Returns what a worker calls with its store; `None` if it needs no store.
    pub fn on(&self, store: &Store) -> Option<DestinationConfig> {
        Some(self.target(self.model()?.clone().on(store.clone()).into()))
    }

    fn target(&self, destination: Destination) -> DestinationConfig {
        let PaceConfig { settings: pace, max_parallel, interval } = self.pace_config;
        DestinationConfig { pace, max_parallel, interval, ..DestinationConfig::new(&self.name, destination) }
    }
}

/// Replaces a missing value, so the remaining settings are checked too. The error was reported, so no configuration results.
const PLACEHOLDER: &str = "missing";

/// Returns the guarantee that a destination's section declares, without a check.
///
/// Of a stream, only the kind of guarantee is known before the server was asked.
pub(super) fn declared_guarantee(section: &Section<'_>) -> Guarantee {
    match section.get::<String>(KIND).as_deref() {
        Some("http" | "mock") => http::declared(section),
        Some("nats") => Guarantee::Keyed { keeps_for: Duration::ZERO },
        Some("openai" | "anthropic") => Guarantee::Idempotent,
        _ => Guarantee::None,
    }
}

/// Reads one destination's section.
pub(super) fn read(section: &Section<'_>) -> Option<DestinationSettings> {
    let kind = section.get::<String>(KIND)?;
    let pace_config = pace::read(section);
    let model = |(address, plan)| (address, DestinationPlan::Model(Box::new(plan)));
    let (kind, read) = match kind.as_str() {
        "http" => {
            ("http", http::read(section).map(|(address, http)| (address, DestinationPlan::Ready(http))))
        }
        "mock" => {
            ("mock", http::read(section).map(|(address, http)| (address, DestinationPlan::Ready(http))))
        }
        "openai" => ("openai", llm::read(section, true).map(model)),
        "anthropic" => ("anthropic", llm::read(section, false).map(model)),
        _ => (
            "nats",
            nats::read(section).map(|(address, plan)| (address, DestinationPlan::Stream(Box::new(plan)))),
        ),
    };
    let (address, plan) = read?;
    Some(DestinationSettings { name: section.name.to_owned(), kind, endpoint: address, plan, pace_config })
}
