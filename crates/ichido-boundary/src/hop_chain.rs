//! Hop chains: which files belong together, from the browser to the service.

use super::read::Boundary;
use super::{Enabled, HeaderLists, Mode, Name, Traffic, model};

/// The files of one key's path, from the browser on.
#[derive(Clone, Debug)]
pub struct HopChain<'a> {
    files: Vec<&'a Boundary>, // Invariant: sorted by name and file.
}

/// Groups `files` into hop chains: one if no boundary appears twice, else one for each folder.
pub fn hop_chains(files: &[Boundary]) -> Vec<HopChain<'_>> {
    let mut sorted: Vec<&Boundary> = files.iter().collect();
    sorted.sort_by_key(|file| (file.name(), file.file()));
    if sorted.windows(2).all(|pair| pair[0].name() != pair[1].name()) {
        return vec![HopChain { files: sorted }];
    }
    // Stable, so the order within a folder stays.
    sorted.sort_by_key(|file| folder(file));
    sorted.chunk_by(|a, b| folder(a) == folder(b)).map(|files| HopChain { files: files.to_vec() }).collect()
}

fn folder(file: &Boundary) -> &str {
    file.file().rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)
}

impl<'a> HopChain<'a> {
    /// Returns all files, from the browser on.
    pub fn files(&self) -> impl Iterator<Item = &'a Boundary> {
        self.files.iter().copied()
    }

    /// Returns the file about this boundary.
    pub fn file(&self, name: Name) -> Option<&'a Boundary> {
        self.files().find(|file| file.name() == name)
    }

    /// Returns the files between browser and adapter, without the adapter's own.
    pub fn hops(&self) -> impl Iterator<Item = &'a Boundary> {
        self.files().filter(|file| file.name() != Name::Adapter)
    }

    /// Returns the files that complete idempotency, with their guarantees and the pointer to these.
    pub fn owners(&self) -> impl Iterator<Item = (&'a Boundary, &'a Enabled, &'static str)> {
        let owners = self.files().filter(|file| file.http.idempotency.mode == Some(Mode::Enabled));
        owners.map(|file| {
            let idempotency = &file.http.idempotency;
            (file, &idempotency.enabled, idempotency.enabled_pointer())
        })
    }

    /// Returns the file whose guarantees apply: the adapter's own, else that of the boundary before it.
    pub fn owner(&self) -> Option<&'a Boundary> {
        self.owners().last().map(|(file, ..)| file)
    }

    /// Returns the lists of headers about this traffic: file, direction, lists.
    pub(super) fn lists(
        &self,
        of: Traffic,
    ) -> impl Iterator<Item = (&'a Boundary, &'a str, &'a HeaderLists)> {
        self.files().flat_map(move |file| {
            // The list of hop-by-hop headers is about both.
            let is_about = move |direction: &str| {
                direction == model::HOP_BY_HOP || model::traffic(direction, file.name()) == of
            };
            let lists = file.headers.lists().filter(move |(direction, _)| is_about(direction));
            lists.map(move |(direction, lists)| (file, direction, lists))
        })
    }
}
