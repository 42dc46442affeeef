//! The boundary files: which of them the role receives by, and which it sends by.

use std::path::Path;

use ichido_core::boundary::{BYTES_MAX, Boundary, Mode, Name};

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
    for path in &args.boundary {
        let Some(file) = read_one(path, faults) else { continue };
        let (name, place) = (file.name(), path.display().to_string());
        // A file speaks of its receiver's keys: at these two boundaries that is a hop.
        let is_before_adapter = matches!(name, Name::BrowserToBff | Name::BffToGateway);
        if file.http.idempotency.mode == Some(Mode::Enabled) && is_before_adapter {
            let pointer = file.place("/http/idempotency/mode");
            faults.add(
                format!("{place}:{}", pointer.at),
                "the mode is enabled, and only the adapter completes idempotency (SPEC C2); write validate_only",
            );
        }
        let slot = match () {
            () if name.receiver() == party => &mut files.receiving,
            () if name.sender() == party => &mut files.sending,
            () => {
                let role = party.as_str();
                faults.add(
                    place,
                    format!("the file is about {name}, where a {role} neither receives nor sends"),
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

fn read_one(path: &Path, faults: &mut Faults) -> Option<Boundary> {
    let shown = path.display().to_string();
    let bytes = faults.check(&shown, read_bounded(path))?;
    match Boundary::read(&shown, &bytes) {
        Ok(file) => Some(file),
        Err(error) => {
            faults.add(format!("{}:{}", error.file, error.at), error.fault.to_string());
            None
        }
    }
}

/// At most one byte more than a boundary file may have: enough to know that it is too large.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let bound = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(path)?.take(bound).read_to_end(&mut bytes)?;
    Ok(bytes)
}
