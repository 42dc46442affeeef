//! Each member of the dialect: a change of it that loosens and what is said of it, or why none does.

mod hops;
mod promises;

/// What a change of a member means for the guarantees.
#[derive(Clone, Copy)]
pub(super) enum ChangeEffect {
    /// It loosens, when it is like this one.
    Loosens(Loosening),
    /// It never loosens by itself, for this reason.
    Free(&'static str),
}

/// A change to the starting set, the rule that it is about, and words of what is said of it.
#[derive(Clone, Copy)]
pub(super) struct Loosening {
    pub(super) rule: &'static str,
    pub(super) file: &'static str,
    /// Where the member stands, if a name of its own leads there.
    pub(super) pointer: Option<&'static str>,
    /// What stands there before; `None` for what the starting set has.
    pub(super) from: Option<&'static str>,
    /// What stands there after; `None` for nothing.
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

/// Why names of answers are free.
const NAME_ONLY: &str = "Clients go by the status; the code is a name for people and logs.";

const fn free(reason: &'static str) -> ChangeEffect {
    ChangeEffect::Free(reason)
}

/// The member becomes another.
const fn put(rule: &'static str, file: &'static str, to: &'static str, says: &'static str) -> ChangeEffect {
    ChangeEffect::Loosens(Loosening { rule, file, pointer: None, from: None, to: Some(to), says })
}

/// The member is taken out.
const fn gone(rule: &'static str, file: &'static str, says: &'static str) -> ChangeEffect {
    ChangeEffect::Loosens(Loosening { rule, file, pointer: None, from: None, to: None, says })
}

/// The same, for a member under a name of its own.
const fn at(pointer: &'static str, effect: ChangeEffect) -> ChangeEffect {
    match effect {
        ChangeEffect::Loosens(change) => {
            ChangeEffect::Loosens(Loosening { pointer: Some(pointer), ..change })
        }
        free @ ChangeEffect::Free(_) => free,
    }
}

/// The same, for a member that the starting set has otherwise.
const fn after(from: &'static str, effect: ChangeEffect) -> ChangeEffect {
    match effect {
        ChangeEffect::Loosens(change) => ChangeEffect::Loosens(Loosening { from: Some(from), ..change }),
        free @ ChangeEffect::Free(_) => free,
    }
}
