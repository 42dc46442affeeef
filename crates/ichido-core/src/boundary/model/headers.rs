//! Which headers cross a boundary.

use super::{Name, Party};
use crate::boundary::member::object;

object! {
    /// Which headers pass in one direction.
    HeaderLists {
        /// The headers that pass; without it, all of them. A name that ends with `*` stands for all that begin so.
        allow: Option<Vec<String>>,
        /// The headers that are taken out, whatever `allow` says.
        drop: Option<Vec<String>>,
    }
}

object! {
    /// What browsers on other origins may send and read.
    Cors {
        /// The request headers they may send.
        allowed_headers: Items,
        /// The answer's headers they may read.
        exposed_headers: Items,
    }
}

object! {
    /// A list of headers.
    Items {
        /// The names of the headers.
        items: Option<Vec<String>>,
    }
}

/// Whether requests or answers are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// From the sender to the receiver.
    Requests,
    /// Back again.
    Answers,
}

/// When a party applies a list of headers to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// As it arrives: `inbound`, `gateway_inbound`.
    Arriving,
    /// As it leaves: `outbound`, `bff_outbound`.
    Leaving,
}

impl HeaderLists {
    /// Whether the header passes. Case does not matter.
    pub fn passes(&self, header: &str) -> bool {
        let is_dropped = self.drop.as_ref().is_some_and(|drop| names(drop, header));
        self.allows(header) && !is_dropped
    }

    /// Whether `allow` lets the header through.
    pub(in crate::boundary) fn allows(&self, header: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| names(allow, header))
    }
}

impl Items {
    /// Whether the list names the header itself. Case does not matter.
    pub fn names(&self, header: &str) -> bool {
        self.items.iter().flatten().any(|item| item.eq_ignore_ascii_case(header))
    }
}

/// Whether the list names the header, by itself or by a beginning with `*`.
fn names(list: &[String], header: &str) -> bool {
    list.iter().any(|entry| match entry.strip_suffix('*') {
        Some(start) => header.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
        None => entry.eq_ignore_ascii_case(header),
    })
}

/// Whether the direction is about requests or about answers.
pub(in crate::boundary) fn traffic(direction: &str) -> Traffic {
    if direction.contains("response") { Traffic::Answers } else { Traffic::Requests }
}

/// Whether `party` applies the lists of this direction, in the file `name`, to requests at this crossing.
///
/// A party's name in the direction makes it that party's; else `outbound` is the sender's and `inbound` the
/// receiver's. A direction with neither word holds at both crossings.
pub(in crate::boundary) fn applies(direction: &str, name: Name, party: Party, crossing: Crossing) -> bool {
    let word = match crossing {
        Crossing::Arriving => "inbound",
        Crossing::Leaving => "outbound",
    };
    let (arrives, leaves) = (direction.contains("inbound"), direction.contains("outbound"));
    let fits_crossing = direction.contains(word) || !(arrives || leaves);
    let owner = Party::ALL.into_iter().find(|party| direction.contains(party.as_str()));
    let is_ours = match owner {
        Some(owner) => owner == party,
        None if arrives => party == name.receiver(),
        None if leaves => party == name.sender(),
        None => party == name.sender() || party == name.receiver(),
    };
    fits_crossing && is_ours
}
