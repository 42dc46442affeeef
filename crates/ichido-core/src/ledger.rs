//! Admission: decides what happens to an incoming request.
//!
//! Guarantee: given a store whose claim is one unique write, at most one claim is live for one (operation, identity,
//! key). A settled key only replays until it expires. A different request under the key is refused and learns nothing.
//! If the effect is unknown and the operation must not take effect twice, nothing runs again. A claimed or unknown
//! record never expires.
//!
//! Start at [`admit`], which takes what the store found, and [`settle`], which takes the outcome of the work. Both
//! follow an operation's [`Policy`], which cannot be built from contradictory values.
// SPEC A3–A5, C3, C5–C7, C10, F2.

mod admission;
mod history;
mod name;
mod policy;
mod profile;
mod settlement;

pub use admission::{Admission, Expiry, Record, RecordPhase, Settled, StoredBody, admit, may_sweep};
pub use history::{KeyEntry, history};
pub use name::RecordName;
pub use policy::{
    Class, KeyNeed, OnUnknown, OperationGuarantee, Policy, PolicyDraft, PolicyError, PolicyErrors,
    client_horizon, limits,
};
pub use profile::{Profile, ProfileNumbers};
pub use settlement::{
    RequestOutcome, Resolution, ResolveError, SettleRight, Settlement, may_settle, not_done_from, resolve,
    settle,
};

#[cfg(test)]
mod tests;
