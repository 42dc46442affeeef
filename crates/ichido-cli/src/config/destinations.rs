//! Where messages go: `[destinations.NAME]`.

mod http;
mod pace;

use ichido::worker::Target;

use super::document::Section;
use super::outside::Outside;
use crate::faults::Faults;

/// A destination that was understood.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) kind: &'static str,
    /// Where it is, without anything that may be a secret.
    pub(crate) whereto: String,
    pub(crate) target: Target,
}

/// The kinds there are.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Http,
    Paper,
}

impl Kind {
    /// As the file names them.
    const ALL: [(&'static str, Self); 2] = [("http", Self::Http), ("paper", Self::Paper)];

    const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
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
    let (whereto, destination) = match kind {
        Kind::Http => http::read(&mut section, false, outside, faults),
        Kind::Paper => http::read(&mut section, true, outside, faults),
    };
    section.finish(faults);
    let mut target = Target::new(name, destination?);
    target.pace = paced.settings;
    target.max_parallel = paced.max_parallel;
    target.interval = paced.interval;
    Some(Described { kind: kind.word(), whereto, target })
}
