//! Each member of the dialect: a change of it that loosens and its finding, or why none does.

mod hops;
mod promises;

/// What a change of a member does to the guarantees.
#[derive(Clone, Copy)]
pub(super) enum ChangeEffect {
    /// It loosens, if it is like this one.
    Loosens(Loosening),
    /// It never loosens on its own, for this reason.
    Free(&'static str),
}

/// A change to the starting set, its rule, and words of its finding.
#[derive(Clone, Copy)]
pub(super) struct Loosening {
    pub(super) rule: &'static str,
    pub(super) file: &'static str,
    /// Where the member is, if it has a chosen name.
    pub(super) pointer: Option<&'static str>,
    /// The value before; `None` for that of the starting set.
    pub(super) from: Option<&'static str>,
    /// The value after; `None` for nothing.
    pub(super) to: Option<&'static str>,
    pub(super) says: &'static str,
}

/// The members in the order in which the code lists them.
pub(super) fn table() -> impl Iterator<Item = (String, ChangeEffect)> {
    let under = |base: &'static str, rows: &'static [(&'static str, ChangeEffect)]| {
        rows.iter().map(move |(member, effect)| (format!("{base}{member}"), *effect))
    };
    under("", hops::FIRST)
        .chain(under("/http/idempotency/enabled", promises::PROMISES))
        .chain(under("", hops::REST))
}

const BROWSER: &str = "browser_to_bff.json";
const BFF: &str = "bff_to_gateway.json";
const GATEWAY: &str = "gateway_to_adapter.json";
const ADAPTER: &str = "adapter.json";

/// Why names in responses are free.
const NAME_ONLY: &str = "Clients depend on the status; the code is for people and logs.";

const fn free(reason: &'static str) -> ChangeEffect {
    ChangeEffect::Free(reason)
}

/// The member changes its value.
const fn put(rule: &'static str, file: &'static str, to: &'static str, says: &'static str) -> ChangeEffect {
    ChangeEffect::Loosens(Loosening { rule, file, pointer: None, from: None, to: Some(to), says })
}

/// The member is removed.
const fn gone(rule: &'static str, file: &'static str, says: &'static str) -> ChangeEffect {
    ChangeEffect::Loosens(Loosening { rule, file, pointer: None, from: None, to: None, says })
}

/// The same, for a member with a chosen name.
const fn at(pointer: &'static str, effect: ChangeEffect) -> ChangeEffect {
    match effect {
        ChangeEffect::Loosens(change) => {
            ChangeEffect::Loosens(Loosening { pointer: Some(pointer), ..change })
        }
        free @ ChangeEffect::Free(_) => free,
    }
}

/// The same, for a member with another value than in the starting set.
const fn after(from: &'static str, effect: ChangeEffect) -> ChangeEffect {
    match effect {
        ChangeEffect::Loosens(change) => ChangeEffect::Loosens(Loosening { from: Some(from), ..change }),
        free @ ChangeEffect::Free(_) => free,
    }
}
