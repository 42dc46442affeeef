//! The boundary files of a role: one for receiving and one for sending.

use ichido_boundary::{Boundary, Finding, Party, Severity, check};

use ichido_core::settings::ConfigErrors;

/// The boundary files of a role.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// The boundary across which requests arrive.
    pub(crate) receiving: Option<Boundary>,
    /// The boundary across which requests leave.
    pub(crate) sending: Option<Boundary>,
}

impl Files {
    /// Iterates over the files that exist.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Boundary> {
        self.receiving.iter().chain(&self.sending)
    }
}

/// Assigns each file to the role's receiving or sending side.
pub(super) fn sort(party: Party, readable: Vec<Boundary>, faults: &mut ConfigErrors) -> Files {
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
                    format!("the file describes {name}, where the {role} neither receives nor sends"),
                );
                continue;
            }
        };
        if slot.replace(file).is_some() {
            faults.add(place, format!("a second file describes {name}; pass one"));
        }
    }
    files
}

/// Refuses files with errors, because the proxy would not keep what they promise. Warnings are allowed.
fn refuse_errors(files: &[Boundary], faults: &mut ConfigErrors) {
    for Finding { rule, place, what, .. } in check(files) {
        if rule.severity == Severity::Error {
            let (id, title, help) = (rule.id, rule.title, rule.help);
            let place = format!("{}:{}", place.file, place.at);
            faults.add(place, format!("error {id}: {title}\nwhat:  {what}\nhelp:  {help}"));
        }
    }
}
