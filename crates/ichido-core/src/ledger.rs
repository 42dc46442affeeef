//! Admission: what happens to a request that arrives (SPEC A3–A5, C3, C5–C7, C10, F2).
//!
//! Guarantee: given a store whose claim is one unique write, for one (operation, identity, key) at most one
//! claim is live; a settled key only ever replays until it expires; a different request under the key is
//! refused and shown nothing; and where nobody knows whether the effect happened, and the operation cannot
//! bear it twice, nothing runs again. A claimed or unknown record never expires.
//!
//! Start at [`admit`], given what the store found, and [`settle`], given what came of the work. Both follow
//! an operation's [`Policy`], which cannot be built from values that contradict each other.

mod admission;
mod name;
mod policy;
mod profile;
mod settlement;

pub use admission::{Admission, Expiry, Kept, Phase, Record, Settled, admit, may_sweep};
pub use name::RecordName;
pub use policy::{
    Class, EffectMode, KeyNeed, OnUnknown, Policy, PolicyDraft, PolicyError, PolicyErrors, client_horizon,
    limits,
};
pub use profile::{Profile, ProfileNumbers};
pub use settlement::{Outcome, Resolution, ResolveError, Settlement, Standing, may_settle, resolve, settle};

#[cfg(test)]
mod tests;
