//! The adapter says who asks and what each operation does (SPEC C3, C10, F2).

pub(super) mod identity;
mod operation;
mod path;

use super::{Found, Rule, declare};
use crate::member::escape;
use crate::{Boundary, Name, Named, Operation, Way};

pub(super) const RULES: &[Rule] = &[
    declare! {
        "ICH-B080", Error, "C3",
        "The adapter says how it knows who asks",
        why: "A key is its owner's alone. Without a stable name of the caller, one customer's key answers with another's \
              data; guessed from an address, a token's bytes or its `jti`, a retry after a refresh is a new customer.",
        mend: "Say `\"identity\": {\"source\": \"jwt_claim\", \"name\": \"sub\"}`; sources are header, jwt_claim, api_key and \
               single. Where a subject is unique within its tenant only, name both claims: `[\"tenant_id\", \"sub\"]`.",
        example: "adapter.json" at "/identity",
        check: identity::is_said,
    },
    declare! {
        "ICH-B081", Error, "C10, F2",
        "Every operation says its path, its methods, its class and its effect",
        why: "The class sets how long keys live; the effect decides whether a call without an answer may be repeated. What is \
              not said is taken for an opaque external effect, and held for a person more often than it needs to be. A \
              service that honours keys does so for some time, and past it a repetition is a second effect. An operation whose \
              path or method no request has protects nothing.",
        mend: "Say `path` (`/v1/orders/{id}`), `methods` as HTTP spells them (`POST`), `class` (read, mutate, irreversible, external_effect, billing) and `effect` (keyed, opaque); for \
               `keyed` also `upstream_keeps_keys_for`.",
        example: "adapter.json" at "/operations/orders.create",
        check: operation::are_said,
    },
    declare! {
        "ICH-B082", Error, "C7, C10",
        "What an operation asks for can be kept",
        why: "An effect behind a network call cannot commit in the adapter's own transaction, and a service that forgets a key \
              within seconds does not honour it.",
        mend: "Declare `keyed` or `opaque`, and a time for `upstream_keeps_keys_for` that the service keeps to.",
        example: "adapter.json" at "/operations/profiles.update",
        check: operation::can_be_kept,
    },
    declare! {
        "ICH-B083", Error, "C3",
        "A browser cannot send the header that says who asks",
        why: "Whoever may set it is whoever they say they are: another customer's answers are one header away.",
        mend: "Name the header in `headers.inbound.drop` of `browser_to_bff`, and in no `allow` there.",
        example: "adapter.json" at "/identity",
        check: identity::is_not_forged,
    },
    declare! {
        "ICH-B084", Error, "C3, C8",
        "What says who asks reaches the adapter",
        why: "If a list on the way takes it off, the adapter refuses every request, or takes all callers for one.",
        mend: "Name the header (`authorization` for a JWT) in every `allow` from the BFF on.",
        example: "gateway_to_adapter.json" at "/headers/adapter_inbound",
        check: identity::arrives,
    },
    declare! {
        "ICH-B085", Error, "C3",
        "No two operations share a path and a method",
        why: "The same request would be one operation today and another tomorrow, and its key another key. A name and a \
              literal may meet (`/orders/{id}` and `/orders/search`), if one of the two is the closer in every step.",
        mend: "Give each its own path or methods.",
        example: "adapter.json" at "/operations/profiles.update",
        check: path::differ,
    },
    declare! {
        "ICH-B086", Warning, "C10, C11",
        "An operation of class `read` has safe methods alone",
        why: "A read is passed on without a record: if a POST changes something after all, its repetition changes it again.",
        mend: "Give it another class, or say only GET and HEAD; for a search by POST, allow this finding with its reason.",
        example: "adapter.json" at "/operations/orders.find",
        check: operation::reads_are_safe,
    },
];

fn adapters<'a>(way: &Way<'a>) -> impl Iterator<Item = &'a Boundary> {
    way.files().filter(|file| file.name() == Name::Adapter)
}

fn operations(file: &Boundary) -> impl Iterator<Item = (String, &str, &Operation)> {
    let named = file.operations.iter().flat_map(Named::iter);
    named.map(|(name, operation)| (format!("/operations/{}", escape(name)), name, operation))
}
