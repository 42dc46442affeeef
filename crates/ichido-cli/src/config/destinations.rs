//! Where messages go: `[destinations.NAME]`.

mod http;
mod nats;
mod pace;

use std::time::Duration;

use ichido::destination::Destination;
use ichido::destination::nats::{NatsPlan, StartError};
use ichido::worker::Target;
use ichido_core::retry::Guarantee;

use super::document::Section;
use super::outside::Outside;
use crate::faults::Faults;
use pace::Paced;

/// A destination that was understood.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    /// Where it is, without anything that may be a secret.
    pub(crate) whereto: String,
    way: Way,
    paced: Paced,
}

/// What is known of a destination before anybody has called it.
#[derive(Clone, Debug)]
enum Way {
    /// All of it.
    Known(Destination),
    /// How to reach it. What it promises is asked of its server when a worker starts.
    Stream(Box<NatsPlan>),
}

impl Described {
    /// The longest that a call may take.
    pub(crate) fn time_out(&self) -> Duration {
        match &self.way {
            Way::Known(destination) => destination.promise().time_out,
            Way::Stream(plan) => plan.time_out(),
        }
    }

    /// What it promises about repetitions; `None` where that is asked of it when a worker starts.
    pub(crate) fn guarantee(&self) -> Option<Guarantee> {
        match &self.way {
            Way::Known(destination) => Some(destination.promise().guarantee),
            Way::Stream(_) => None,
        }
    }

    /// The destination itself; `None` where a server must be asked for it when a worker starts.
    pub(crate) fn known(&self) -> Option<&Destination> {
        match &self.way {
            Way::Known(destination) => Some(destination),
            Way::Stream(_) => None,
        }
    }

    /// Whether it can be asked after a call whose effect is not known.
    pub(crate) fn can_be_asked(&self) -> bool {
        match &self.way {
            Way::Known(destination) => destination.can_be_asked(),
            Way::Stream(_) => false,
        }
    }

    /// What a worker calls; whoever keeps a stream is asked for it first.
    pub(crate) fn connect(&self) -> impl Future<Output = Result<Target, StartError>> + use<> {
        let (name, way) = (self.name.clone(), self.way.clone());
        let Paced { settings: pace, max_parallel, interval } = self.paced;
        async move {
            let destination = match way {
                Way::Known(destination) => destination,
                Way::Stream(plan) => plan.connect().await?.into(),
            };
            Ok(Target { pace, max_parallel, interval, ..Target::new(name, destination) })
        }
    }
}

/// The kinds there are.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Http,
    Nats,
    Paper,
}

impl Kind {
    /// As the file names them.
    const ALL: [(&'static str, Self); 3] =
        [("http", Self::Http), ("nats", Self::Nats), ("paper", Self::Paper)];

    const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Nats => "nats",
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
        Kind::Nats => {
            let (whereto, plan) = nats::read(&mut section, outside, faults);
            (whereto, plan.map(|plan| Way::Stream(Box::new(plan))))
        }
    };
    section.finish(faults);
    Some(Described { name: name.to_owned(), kind: kind.word(), whereto, way: way?, paced })
}
