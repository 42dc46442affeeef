//! Which headers cross a boundary.

use super::{Members, Name, Party};
use crate::member::{MAX_SHOWN_CHARS, NamedValues, escape, object};

object! {
    /// Which headers pass in one direction.
    HeaderLists {
        /// The headers that pass. Default: all. A name that ends with `*` is a prefix.
        allow: Option<Vec<String>>,
        /// The headers that are removed, even if `allow` lists them.
        drop: Option<Vec<String>>,
    }
}

object! {
    /// The headers that pages on other origins may send and read.
    Cors {
        /// The request headers that pages may send.
        allowed_headers: Items,
        /// The response headers that pages may read.
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

/// Whether requests or responses are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// From the sender to the receiver.
    Requests,
    /// From the receiver back to the sender.
    Responses,
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
    /// Returns whether the header passes, in any case.
    pub fn passes(&self, header: &str) -> bool {
        self.allows(header) && !self.drops(header)
    }

    /// Returns whether `drop` removes the header.
    pub(crate) fn drops(&self, header: &str) -> bool {
        self.drop.as_ref().is_some_and(|drop| names(drop, header))
    }

    /// Returns whether `allow` passes the header.
    pub(crate) fn allows(&self, header: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| names(allow, header))
    }
}

impl Items {
    /// Returns whether the list names the header itself, in any case.
    pub fn names(&self, header: &str) -> bool {
        self.items.iter().flatten().any(|item| item.eq_ignore_ascii_case(header))
    }
}

/// Returns whether the list names the header, or a prefix of it with `*`.
fn names(list: &[String], header: &str) -> bool {
    list.iter().any(|entry| match entry.strip_suffix('*') {
        Some(start) => header.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
        None => entry.eq_ignore_ascii_case(header),
    })
}

/// Finds the first entry of a list of headers that cannot be a header name.
///
/// Returns its pointer, and what is wrong.
///
/// Such an entry matches nothing: a list that names ` idempotency-key` passes no key, and one that drops `*-id` drops
/// nothing.
pub(crate) fn malformed_name(members: &Members) -> Option<(String, String)> {
    let by_direction = members.headers.iter().flat_map(NamedValues::iter).flat_map(|(direction, lists)| {
        let base = format!("/headers/{}", escape(direction));
        [(format!("{base}/allow"), &lists.allow), (format!("{base}/drop"), &lists.drop)]
    });
    let by_cors = members.cors.iter().flat_map(|cors| {
        let lists = [("allowed_headers", &cors.allowed_headers), ("exposed_headers", &cors.exposed_headers)];
        lists.map(|(name, list)| (format!("/cors/{name}/items"), &list.items))
    });
    let idempotency = &members.http.idempotency;
    let replayed = &idempotency.enabled.response_replay.response_headers_subset_allowlist;
    let pointer =
        format!("{}/response_replay/response_headers_subset_allowlist", idempotency.enabled_pointer());
    by_direction.chain(by_cors).chain([(pointer, replayed)]).find_map(|(pointer, list)| {
        let index = list.iter().flatten().position(|entry| !is_name(entry))?;
        let entry: String = list.as_ref()?.get(index)?.chars().take(MAX_SHOWN_CHARS).collect();
        let what = format!(
            "expected a header name such as content-type, or a prefix that ends with `*`, found \"{}\"",
            entry.escape_debug()
        );
        Some((format!("{pointer}/{index}"), what))
    })
}

/// Returns whether it is a token, apart from a final `*`, which stands for any ending.
fn is_name(entry: &str) -> bool {
    entry == "*" || is_token(entry.strip_suffix('*').unwrap_or(entry))
}

/// Returns whether it is a header name.
///
/// It is if it is a token (RFC 9110, 5.6.2) without `*`, which lists use for any ending.
pub(crate) fn is_token(name: &str) -> bool {
    let is_of_a_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_of_a_token)
}

/// Returns whether the direction is about requests or about responses, in any case.
pub(crate) fn traffic(direction: &str) -> Traffic {
    if direction.to_ascii_lowercase().contains("response") { Traffic::Responses } else { Traffic::Requests }
}

/// Returns whether `party` applies the lists of this direction, in the file `name`, to requests at this crossing.
///
/// A party's name in the direction assigns it to that party; otherwise `outbound` is the sender's and `inbound` the
/// receiver's. A direction with neither word applies at both crossings.
pub(crate) fn applies(direction: &str, name: Name, party: Party, crossing: Crossing) -> bool {
    let direction = direction.to_ascii_lowercase();
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
