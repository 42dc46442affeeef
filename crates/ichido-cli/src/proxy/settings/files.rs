//! The boundary files: which of them the role receives by, and which it sends by.

use ichido_boundary::{Boundary, Finding, Rule, Severity, check};

use crate::check::read_file;
use crate::faults::Faults;
use crate::proxy::args::Args;

/// What the role's files are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Of the boundary across which requests come in.
    pub(crate) receiving: Option<Boundary>,
    /// Of the boundary across which they go out.
    pub(crate) sending: Option<Boundary>,
}

impl Files {
    /// Both, as far as they are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Boundary> {
        self.receiving.iter().chain(&self.sending)
    }
}

/// Reads the files that the flags name.
pub(super) fn read(args: &Args, faults: &mut Faults) -> Files {
    let party = args.role.party();
    let mut files = Files::default();
    let readable = args.boundary.iter().map(|path| read_file(path).map_err(|error| error.tell(faults)));
    let readable: Vec<Boundary> = readable.flatten().collect();
    refuse_errors(&readable, faults);
    for file in readable {
        let (name, place) = (file.name(), file.file().to_owned());
        let slot = match () {
            () if name.receiver() == party => &mut files.receiving,
            () if name.sender() == party => &mut files.sending,
            () => {
                let role = party.as_str();
                faults.add(
                    place,
                    format!("the file is about {name}, where the {role} neither receives nor sends"),
                );
                continue;
            }
        };
        if slot.replace(file).is_some() {
            faults.add(place, format!("a second file about {name}; give one"));
        }
    }
    files
}

/// A proxy that ran on a file with errors would promise what it does not keep. Warnings leave it running.
fn refuse_errors(files: &[Boundary], faults: &mut Faults) {
    for Finding { rule, place, what, .. } in check(files) {
        if rule.severity == Severity::Error {
            let Rule { id, title, mend, .. } = rule;
            let place = format!("{}:{}", place.file, place.at);
            faults.add(place, format!("error {id}: {title}\nwhat:  {what}\nmend:  {mend}"));
        }
    }
}
