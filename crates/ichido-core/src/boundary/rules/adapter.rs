//! The adapter says who asks and what each operation does (SPEC C3, C10, F2).

use super::fingerprint::input::changes_by_name;
use super::{Found, Rule, declare};
use crate::boundary::member::escape;
use crate::boundary::{
    Boundary, Crossing, Effect, Enabled, Identity, IdentitySource, Name, Named, Operation, OperationClass,
    Party, Traffic, Way,
};
use crate::ledger::{Policy, PolicyError};

pub(super) const RULES: &[Rule] = &[
    declare! {
        "ICH-B080", Error, "C3",
        "The adapter says how it knows who asks",
        why: "A key is its owner's alone. Without a stable name of the caller, one customer's key answers with another's \
              data; guessed from an address, a token's bytes or its `jti`, a retry after a refresh is a new customer.",
        mend: "Say `\"identity\": {\"source\": \"jwt_claim\", \"name\": \"sub\"}`; sources are header, jwt_claim, api_key and \
               single.",
        example: "adapter.json" at "/identity",
        check: identity_is_said,
    },
    declare! {
        "ICH-B081", Error, "C10, F2",
        "Every operation says its path, its class and its effect",
        why: "The class sets how long keys live; the effect decides whether a call without an answer may be repeated. What is \
              not said is taken for an opaque external effect, and held for a person more often than it needs to be. A \
              service that honours keys does so for some time, and past it a repetition is a second effect.",
        mend: "Say `path`, `class` (read, mutate, irreversible, external_effect, billing) and `effect` (keyed, opaque); for \
               `keyed` also `upstream_keeps_keys_for`.",
        example: "adapter.json" at "/operations/orders.create",
        check: operations_are_said,
    },
    declare! {
        "ICH-B082", Error, "C7, C10",
        "What an operation asks for can be kept",
        why: "An effect behind a network call cannot commit in the adapter's own transaction, and a service that forgets a key \
              within seconds does not honour it.",
        mend: "Declare `keyed` or `opaque`, and a time for `upstream_keeps_keys_for` that the service keeps to.",
        example: "adapter.json" at "/operations/profiles.update",
        check: operations_can_be_kept,
    },
    declare! {
        "ICH-B083", Error, "C3",
        "A browser cannot send the header that says who asks",
        why: "Whoever may set it is whoever they say they are: another customer's answers are one header away.",
        mend: "Name the header in `headers.inbound.drop` of `browser_to_bff`, and in no `allow` there.",
        example: "adapter.json" at "/identity",
        check: identity_is_not_forged,
    },
    declare! {
        "ICH-B084", Error, "C3, C8",
        "What says who asks reaches the adapter",
        why: "If a list on the way takes it off, the adapter refuses every request, or takes all callers for one.",
        mend: "Name the header (`authorization` for a JWT) in every `allow` from the BFF on.",
        example: "gateway_to_adapter.json" at "/headers/adapter_inbound",
        check: identity_arrives,
    },
    declare! {
        "ICH-B085", Error, "C3",
        "No two operations share a path and a method",
        why: "The same request would be one operation today and another tomorrow, and its key another key.",
        mend: "Give each its own path or methods.",
        example: "adapter.json" at "/operations/profiles.update",
        check: operations_differ,
    },
];

fn adapters<'a>(way: &Way<'a>) -> impl Iterator<Item = &'a Boundary> {
    way.files().filter(|file| file.name() == Name::Adapter)
}

fn operations(file: &Boundary) -> impl Iterator<Item = (String, &str, &Operation)> {
    let named = file.operations.iter().flat_map(Named::iter);
    named.map(|(name, operation)| (format!("/operations/{}", escape(name)), name, operation))
}

/// What is wrong with an identity; `None` where it is whole and stays the same from token to token.
fn unfit(identity: &Identity) -> Option<String> {
    match (identity.source, identity.name.as_deref()) {
        (None, _) => Some("`source` is missing".to_owned()),
        (_, None | Some("")) => Some("`name` is missing".to_owned()),
        (Some(IdentitySource::JwtClaim), Some(name)) => {
            changes_by_name(name).then(|| format!("`{name}` is another with every token"))
        }
        (Some(_), Some(_)) => None,
    }
}

fn identity_is_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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

fn operations_are_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for file in adapters(way) {
        if operations(file).next().is_none() {
            found.push(Found::at(file, "/operations", "there is none"));
        }
        for (pointer, _, operation) in operations(file) {
            let is_read = operation.class == Some(OperationClass::Read);
            let said = [
                ("methods", operation.methods.as_ref().is_none_or(|methods| !methods.is_empty())),
                ("path", operation.path.as_ref().is_some_and(|path| path.starts_with('/'))),
                ("class", operation.class.is_some()),
                ("effect", operation.effect.is_some() || is_read),
                (
                    "upstream_keeps_keys_for",
                    operation.effect != Some(Effect::Keyed) || operation.upstream_keeps_keys_for.is_some(),
                ),
            ];
            let silent = said.iter().filter(|(_, is_said)| !is_said);
            found.extend(silent.map(|(member, _)| {
                let what = match *member {
                    "methods" => "it answers to no method",
                    "path" => "it is not said, or does not begin with `/`",
                    _ => "it is not said",
                };
                Found::at(file, format!("{pointer}/{member}"), what)
            }));
        }
    }
    found
}

fn operations_can_be_kept<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let silent = Enabled::default();
    let promises = way.owners().last().map_or(&silent, |(_, promises, _)| promises);
    let mut found = Vec::new();
    for file in adapters(way) {
        for (pointer, _, operation) in operations(file) {
            if operation.class == Some(OperationClass::Read) {
                continue; // Reads are passed on as they are: there is nothing to keep.
            }
            if operation.effect == Some(Effect::Transactional) {
                let what = "an effect behind a network call is not part of the adapter's transaction";
                found.push(Found::at(file, format!("{pointer}/effect"), what));
                continue;
            }
            let errors = Policy::build(operation.draft(promises)).err();
            // How long outcomes are kept, and how long duplicates wait, have rules of their own.
            let own = errors
                .iter()
                .flat_map(|errors| errors.iter())
                .filter(|error| matches!(error, PolicyError::UpstreamForgetsTooSoon { .. }));
            found.extend(own.map(|error| {
                Found::at(file, format!("{pointer}/upstream_keeps_keys_for"), error.to_string())
            }));
        }
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

fn identity_is_not_forged<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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
                let what = format!("a browser can send `{header}` itself");
                found.push(Found::at(file, format!("{pointer}/name"), what));
            }
        }
    }
    found
}

fn identity_arrives<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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

fn operations_differ<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for file in adapters(way) {
        let all: Vec<_> = operations(file).collect();
        for (index, (pointer, _, operation)) in all.iter().enumerate() {
            let twin = all[..index].iter().find(|(_, _, earlier)| {
                let same_path = shape_of(earlier.path.as_deref()) == shape_of(operation.path.as_deref());
                operation.path.is_some() && same_path && methods_meet(earlier, operation)
            });
            if let Some((_, name, _)) = twin {
                found.push(Found::at(
                    file,
                    format!("{pointer}/path"),
                    format!("`{name}` answers to the same requests"),
                ));
            }
        }
    }
    found
}

/// A path's pattern with its parameters' names left out: `/v1/orders/{id}` and `/v1/orders/{order}` are one.
fn shape_of(path: Option<&str>) -> Vec<&str> {
    let parts = path.unwrap_or_default().split('/');
    parts.map(|part| if part.starts_with(['{', ':']) { "{}" } else { part }).collect()
}

fn methods_meet(a: &Operation, b: &Operation) -> bool {
    match (&a.methods, &b.methods) {
        (Some(a), Some(b)) => a.iter().any(|method| b.contains(method)),
        (None, _) | (_, None) => true,
    }
}
