//! Which headers cross a boundary.

use super::{Members, Name, Party};
use crate::member::{
    FromJson, InvalidValue, LocatedValue, MAX_SHOWN_CHARS, NamedValues, ReadContext, Schema, escape, members,
    object, read_except,
};

members! {
    /// The members of `headers` that are not directions.
    HeaderSteps {
        /// The steps that proxies apply to headers, in order: removing (`drop_hop_by_hop`, `allow`, `drop`), checking and
        /// setting. Default: this order.
        pipeline_order: Option<Vec<String>>,
        /// Headers that both ends of the boundary remove from requests and responses, in addition to the hop-by-hop headers of
        /// HTTP, which are always removed.
        drop_hop_by_hop: Option<Vec<String>>,
    }
}

/// Which headers cross a boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// The order of the steps, as the file has it.
    pub pipeline_order: Option<Vec<String>>,
    /// What both ends remove.
    pub drop_hop_by_hop: HeaderLists,
    /// The lists by direction.
    pub directions: NamedValues<HeaderLists>,
}

/// The name of the list that is not a direction.
pub(crate) const HOP_BY_HOP: &str = "drop_hop_by_hop";

impl FromJson for Headers {
    fn schema() -> Schema {
        let others = Box::new(HeaderLists::schema());
        Schema::Map { members: HeaderSteps::members(), others }
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        let directions = read_except(at, HeaderSteps::NAMES, context)?;
        let HeaderSteps { pipeline_order, drop_hop_by_hop } = HeaderSteps::read_members(at, context);
        let drop_hop_by_hop = HeaderLists { allow: None, drop: drop_hop_by_hop };
        Ok(Self { pipeline_order, drop_hop_by_hop, directions })
    }
}

impl Headers {
    /// Returns every list with its direction; [`HOP_BY_HOP`] for the one that has none.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (&str, &HeaderLists)> {
        let hop_by_hop = self.drop_hop_by_hop.drop.is_some().then_some((HOP_BY_HOP, &self.drop_hop_by_hop));
        self.directions.iter().chain(hop_by_hop)
    }
}

/// Returns the JSON pointer to a member of a direction's lists.
pub(crate) fn list_pointer(direction: &str, member: &str) -> String {
    match direction {
        HOP_BY_HOP => format!("/headers/{HOP_BY_HOP}"),
        _ => format!("/headers/{}/{member}", escape(direction)),
    }
}

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

/// Finds the entries of lists of headers that cannot be a header name.
///
/// Returns their pointers, and what is wrong.
///
/// Such an entry matches nothing: a list that names ` idempotency-key` passes no key, and one that drops `*-id` drops
/// nothing.
pub(crate) fn malformed_names(members: &Members) -> Vec<(String, String)> {
    let by_direction = members.headers.lists().flat_map(|(direction, lists)| {
        [("allow", &lists.allow), ("drop", &lists.drop)]
            .map(|(member, list)| (list_pointer(direction, member), list))
    });
    let by_cors = members.cors.iter().flat_map(|cors| {
        let lists = [("allowed_headers", &cors.allowed_headers), ("exposed_headers", &cors.exposed_headers)];
        lists.map(|(name, list)| (format!("/cors/{name}/items"), &list.items))
    });
    let idempotency = &members.http.idempotency;
    let replayed = &idempotency.enabled.response_replay.response_headers_subset_allowlist;
    let pointer =
        format!("{}/response_replay/response_headers_subset_allowlist", idempotency.enabled_pointer());
    let lists = by_direction.chain(by_cors).chain([(pointer, replayed)]);
    let malformed = lists.flat_map(|(pointer, list)| {
        let entries = list.iter().flatten().enumerate().filter(|(_, entry)| !is_name(entry));
        entries.map(move |(index, entry)| (format!("{pointer}/{index}"), not_a_name(entry)))
    });
    malformed.collect()
}

fn not_a_name(entry: &str) -> String {
    let entry: String = entry.chars().take(MAX_SHOWN_CHARS).collect();
    format!(
        "expected a header name such as content-type, or a prefix that ends with `*`, found \"{}\"",
        entry.escape_debug()
    )
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
///
/// Plain `outbound` at the browser is what the BFF answers with: no proxy handles what leaves a browser.
pub(crate) fn traffic(direction: &str, name: Name) -> Traffic {
    let direction = direction.to_ascii_lowercase();
    if direction.contains("response") || is_answer_to_browser(&direction, name) {
        Traffic::Responses
    } else {
        Traffic::Requests
    }
}

fn is_answer_to_browser(direction: &str, name: Name) -> bool {
    name == Name::BrowserToBff && direction.contains("outbound") && named_party(direction).is_none()
}

/// Returns the party that a direction names, in lower case.
fn named_party(direction: &str) -> Option<Party> {
    Party::ALL.into_iter().find(|party| direction.contains(party.as_str()))
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
    let is_ours = match named_party(&direction) {
        Some(owner) => owner == party,
        None if arrives || is_answer_to_browser(&direction, name) => party == name.receiver(),
        None if leaves => party == name.sender(),
        None => party == name.sender() || party == name.receiver(),
    };
    fits_crossing && is_ours
}
