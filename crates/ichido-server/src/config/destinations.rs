//! Where messages go: `[destinations.NAME]`.

mod http;
mod llm;
mod nats;
mod pace;

use std::num::NonZeroU32;
use std::time::Duration;

use ichido::destination::Destination;
use ichido::destination::nats::{NatsPlan, StartError};
use ichido::worker::Target;
use ichido_core::pace::Settings;
use ichido_core::retry::Guarantee;
use ichido_core::settings::Faults;
use ichido_llm::destination::LlmPlan;
use ichido_store::Store;

use super::document::Section;
use super::outside::Outside;
use llm::Dialect;
use pace::Paced;

/// A destination that was understood.
#[derive(Debug)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// What it speaks, such as `http`.
    pub kind: &'static str,
    /// Where it is, without anything that may be a secret.
    pub whereto: String,
    way: Way,
    paced: Paced,
}

/// What is known of a destination before anybody has called it.
#[derive(Clone, Debug)]
enum Way {
    /// All of it.
    Known(Destination),
    /// What a model is asked. Its answers go into the store, which is opened when a worker starts.
    Model(Box<LlmPlan>),
    /// How to reach it. What it promises is asked of its server when a worker starts.
    Stream(Box<NatsPlan>),
}

impl Described {
    /// The longest that a call may take.
    pub fn time_out(&self) -> Duration {
        match &self.way {
            Way::Known(destination) => destination.promise().time_out,
            Way::Model(plan) => plan.promise().time_out,
            Way::Stream(plan) => plan.time_out(),
        }
    }

    /// How fast it may be called.
    pub fn pace(&self) -> Settings {
        self.paced.settings
    }

    /// What it promises about repetitions; `None` where that is asked of it when a worker starts.
    pub fn guarantee(&self) -> Option<Guarantee> {
        match &self.way {
            Way::Known(destination) => Some(destination.promise().guarantee),
            Way::Model(plan) => Some(plan.promise().guarantee),
            Way::Stream(_) => None,
        }
    }

    /// The destination itself; `None` where it is made when a worker starts.
    pub fn known(&self) -> Option<&Destination> {
        match &self.way {
            Way::Known(destination) => Some(destination),
            Way::Model(_) | Way::Stream(_) => None,
        }
    }

    /// Whether it can be asked after a call whose effect is not known.
    pub fn can_be_asked(&self) -> bool {
        match &self.way {
            Way::Known(destination) => destination.can_be_asked(),
            Way::Model(_) | Way::Stream(_) => false,
        }
    }

    /// The queue that its answers go into; `None` where there are none.
    pub(super) fn answers_to(&self) -> Option<&str> {
        match &self.way {
            Way::Model(plan) => Some(plan.answers_to().as_str()),
            Way::Known(_) | Way::Stream(_) => None,
        }
    }

    /// The same, where the delivery of an answer is tried so often.
    pub(super) fn answer_tries(self, tries: NonZeroU32) -> Self {
        match self.way {
            Way::Model(plan) => Self { way: Way::Model(Box::new(plan.answer_tries(tries))), ..self },
            Way::Known(_) | Way::Stream(_) => self,
        }
    }

    /// What a worker calls, but for what needs the store; whoever keeps a stream is asked for it first.
    pub fn connect(&self) -> impl Future<Output = Result<Option<Target>, StartError>> + use<> {
        let (described, way) = (self.name.clone(), self.way.clone());
        let paced = self.paced;
        async move {
            let destination = match way {
                Way::Known(destination) => destination,
                Way::Stream(plan) => plan.connect().await?.into(),
                Way::Model(_) => return Ok(None),
            };
            Ok(Some(target(described, destination, paced)))
        }
    }

    /// What a worker calls on its store; `None` where that needs none.
    pub fn on(&self, store: &Store) -> Option<Target> {
        match &self.way {
            Way::Model(plan) => {
                let destination = Destination::from(plan.as_ref().clone().on(store.clone()));
                Some(target(self.name.clone(), destination, self.paced))
            }
            Way::Known(_) | Way::Stream(_) => None,
        }
    }
}

fn target(name: String, destination: Destination, paced: Paced) -> Target {
    let Paced { settings: pace, max_parallel, interval } = paced;
    Target { pace, max_parallel, interval, ..Target::new(name, destination) }
}

/// The kinds there are.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Anthropic,
    Http,
    Nats,
    OpenAi,
    Paper,
}

impl Kind {
    /// As the file names them.
    const ALL: [(&'static str, Self); 5] = [
        ("anthropic", Self::Anthropic),
        ("http", Self::Http),
        ("nats", Self::Nats),
        ("openai", Self::OpenAi),
        ("paper", Self::Paper),
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Http => "http",
            Self::Nats => "nats",
            Self::OpenAi => "openai",
            Self::Paper => "paper",
        }
    }
}

/// Reads one destination's section.
pub(super) fn read(
    name: &str,
    mut section: Section<'_>,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> Option<Described> {
    // What is wrong with one kind makes no sense to another, so without a kind nothing more is said.
    let kind = section.needed_word("kind", &Kind::ALL, faults)?;
    let paced = pace::read(&mut section, faults);
    let (whereto, way) = match kind {
        Kind::Http | Kind::Paper => {
            let is_paper = matches!(kind, Kind::Paper);
            let (whereto, destination) = http::read(&mut section, is_paper, outside, faults);
            (whereto, destination.map(Way::Known))
        }
        Kind::OpenAi => model(&mut section, Dialect::OpenAi, outside, faults),
        Kind::Anthropic => model(&mut section, Dialect::Anthropic, outside, faults),
        Kind::Nats => {
            let (whereto, plan) = nats::read(&mut section, outside, faults);
            (whereto, plan.map(|plan| Way::Stream(Box::new(plan))))
        }
    };
    section.finish(faults);
    Some(Described { name: name.to_owned(), kind: kind.word(), whereto, way: way?, paced })
}

fn model(
    section: &mut Section<'_>,
    dialect: Dialect,
    outside: &Outside<'_>,
    faults: &mut Faults,
) -> (String, Option<Way>) {
    let (whereto, plan) = llm::read(section, dialect, outside, faults);
    (whereto, plan.map(|plan| Way::Model(Box::new(plan))))
}
