//! The boundary files: which of them the role receives by, and which it sends by.

use ichido_boundary::{Boundary, Finding, Party, Rule, Severity, check};

use ichido_core::settings::Faults;

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

/// Sorts the files by what they are to the role.
pub(super) fn sort(party: Party, readable: Vec<Boundary>, faults: &mut Faults) -> Files {
    let mut files = Files::default();
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
