//! Who asks: said, not forged, and not lost on the way.

use super::{Found, adapters, operations};
use crate::boundary::member::escape;
use crate::boundary::model::is_token;
use crate::boundary::rules::fingerprint::input::changes_by_name;
use crate::boundary::{Boundary, Crossing, Identity, IdentitySource, Name, Operation, Party, Traffic, Way};
use crate::key::NAMES;

/// What is wrong with an identity; `None` where it is whole and stays the same from token to token.
fn unfit(identity: &Identity) -> Option<String> {
    match (identity.source, identity.name.as_deref()) {
        (None, _) => Some("`source` is missing".to_owned()),
        (_, None | Some("")) => Some("`name` is missing".to_owned()),
        (Some(IdentitySource::JwtClaim), Some(name)) => {
            changes_by_name(name).then(|| format!("`{name}` is another with every token"))
        }
        (Some(IdentitySource::Header | IdentitySource::ApiKey), Some(name)) => match () {
            () if !is_token(name) => Some(format!("`{name}` is no header's name")),
            // An API key may well come in `authorization`.
            () if !name.eq_ignore_ascii_case("authorization") && differs(name) => {
                Some(format!("`{name}` is another with every request"))
            }
            () => None,
        },
        (Some(IdentitySource::Single), Some(_)) => None,
    }
}

fn differs(header: &str) -> bool {
    changes_by_name(header) || NAMES.iter().any(|name| name.eq_ignore_ascii_case(header))
}

pub(super) fn is_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for file in adapters(way) {
        let own = |(_, _, operation): &(_, _, &Operation)| operation.identity.is_some();
        if file.identity.is_none()
            && (operations(file).next().is_none() || !operations(file).all(|one| own(&one)))
        {
            found.push(Found::at(file, "/identity", "`identity` is missing"));
        }
        found.extend(
            identities(file)
                .filter_map(|(pointer, identity)| Some(Found::at(file, pointer, unfit(identity)?))),
        );
    }
    found
}

/// Every identity of an adapter's file, and where it stands.
fn identities(file: &Boundary) -> impl Iterator<Item = (String, &Identity)> {
    let of_file = file.identity.iter().map(|identity| ("/identity".to_owned(), identity));
    let of_operations = operations(file).filter_map(|(pointer, _, operation)| {
        Some((format!("{pointer}/identity"), operation.identity.as_ref()?))
    });
    of_file.chain(of_operations)
}

pub(super) fn is_not_forged<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let Some(browser) = way.file(Name::BrowserToBff) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for file in adapters(way) {
        for (pointer, identity) in identities(file) {
            let (Some(IdentitySource::Header), Some(header)) = (identity.source, &identity.name) else {
                continue;
            };
            if browser.passes(Party::Bff, Crossing::Arriving, Traffic::Requests, header) {
                let (above, below) = (browser.name(), file.name());
                let what = format!("{above} lets a browser send `{header}`, by which {below} says who asks");
                found.push(Found::at(file, format!("{pointer}/name"), what));
            }
        }
    }
    found
}

pub(super) fn arrives<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    let sources = adapters(way).flat_map(identities).filter_map(|(_, identity)| match identity.source? {
        IdentitySource::Header | IdentitySource::ApiKey => identity.name.clone(),
        IdentitySource::JwtClaim => Some("authorization".to_owned()),
        IdentitySource::Single => None,
    });
    let mut headers: Vec<String> = sources.collect();
    headers.sort();
    headers.dedup();
    for header in headers {
        let below = way
            .lists(Traffic::Requests)
            .filter(|(file, ..)| matches!(file.name(), Name::BffToGateway | Name::GatewayToAdapter));
        for (file, direction, _) in below.filter(|(_, _, lists)| !lists.passes(&header)) {
            let pointer = format!("/headers/{}", escape(direction));
            found.push(Found::at(
                file,
                pointer,
                format!("`{header}`, by which the adapter knows who asks, does not pass"),
            ));
        }
    }
    found
}
