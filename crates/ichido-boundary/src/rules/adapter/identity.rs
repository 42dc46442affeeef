//! Rules for the caller's identity: declared, not forged, and not lost between hops.

use ichido_core::key::NAMES;

use super::{Violation, adapters, operations};
use crate::member::escape;
use crate::rules::fingerprint::input::changes_by_name;
use crate::{Boundary, Crossing, HopChain, Identity, IdentityRule, Name, Operation, Party, Traffic};

/// Returns what is wrong with an identity.
///
/// Returns `None` if it is complete and stable across tokens.
fn identity_problem(identity: &Identity) -> Option<String> {
    match identity.rule() {
        Err(error) => Some(error.to_string()),
        Ok(IdentityRule::Claims(claims)) => {
            let changing = claims.iter().find(|claim| changes_by_name(claim.last()))?;
            Some(format!("`{}` differs in every token", changing.last()))
        }
        // An API key may be in `authorization`.
        Ok(IdentityRule::Header(name) | IdentityRule::ApiKey(name)) => {
            (!name.eq_ignore_ascii_case("authorization") && differs(&name))
                .then(|| format!("`{name}` differs in every request"))
        }
        Ok(IdentityRule::Single(_)) => None,
    }
}

fn differs(header: &str) -> bool {
    changes_by_name(header) || NAMES.iter().any(|name| name.eq_ignore_ascii_case(header))
}

pub(in crate::rules) fn is_declared<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in adapters(chain) {
        let own = |(_, _, operation): &(_, _, &Operation)| operation.identity.is_some();
        if file.identity.is_none()
            && (operations(file).next().is_none() || !operations(file).all(|one| own(&one)))
        {
            found.push(Violation::new(file, "/identity", "`identity` is missing"));
        }
        found.extend(identities(file).filter_map(|(pointer, identity)| {
            Some(Violation::new(file, pointer, identity_problem(identity)?))
        }));
    }
    found
}

/// Returns every identity of an adapter's file, with its pointer.
pub(in crate::rules) fn identities(file: &Boundary) -> impl Iterator<Item = (String, &Identity)> {
    let of_file = file.identity.iter().map(|identity| ("/identity".to_owned(), identity));
    let of_operations = operations(file).filter_map(|(pointer, _, operation)| {
        Some((format!("{pointer}/identity"), operation.identity.as_ref()?))
    });
    of_file.chain(of_operations)
}

pub(in crate::rules) fn is_not_forged<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let Some(browser) = chain.file(Name::BrowserToBff) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for file in adapters(chain) {
        for (pointer, identity) in identities(file) {
            let Ok(IdentityRule::Header(header)) = identity.rule() else {
                continue;
            };
            if browser.passes(Party::Bff, Crossing::Arriving, Traffic::Requests, &header) {
                let (above, below) = (browser.name(), file.name());
                let what = format!(
                    "{above} lets a browser send `{header}`, with which {below} identifies the caller"
                );
                found.push(Violation::new(file, format!("{pointer}/name"), what));
            }
        }
    }
    found
}

/// Finds the lists between the BFF and the adapter that a header does not pass.
pub(in crate::rules) fn stopping<'a>(
    chain: &HopChain<'a>,
    header: &str,
) -> impl Iterator<Item = (&'a Boundary, &'a str)> {
    let below = chain
        .lists(Traffic::Requests)
        .filter(|(file, ..)| matches!(file.name(), Name::BffToGateway | Name::GatewayToAdapter));
    below.filter(move |(_, _, lists)| !lists.passes(header)).map(|(file, direction, _)| (file, direction))
}

pub(in crate::rules) fn arrives<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    let sources =
        adapters(chain).flat_map(identities).filter_map(|(_, identity)| match identity.rule().ok()? {
            IdentityRule::Header(name) | IdentityRule::ApiKey(name) => Some(name),
            IdentityRule::Claims(_) => Some("authorization".to_owned()),
            IdentityRule::Single(_) => None,
        });
    let mut headers: Vec<String> = sources.collect();
    headers.sort();
    headers.dedup();
    for header in headers {
        for (file, direction) in stopping(chain, &header) {
            let pointer = format!("/headers/{}", escape(direction));
            found.push(Violation::new(
                file,
                pointer,
                format!("`{header}`, with which the adapter identifies the caller, does not pass"),
            ));
        }
    }
    found
}
