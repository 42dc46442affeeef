//! Rules for the adapter: it declares the caller's identity and what each operation does.
// SPEC C3, C10, F2.

pub(super) mod identity;
pub(super) mod operation;
pub(super) mod path;

use super::Violation;
use crate::member::escape;
use crate::{Boundary, HopChain, Name, NamedValues, Operation};

pub(super) fn adapters<'a>(chain: &HopChain<'a>) -> impl Iterator<Item = &'a Boundary> {
    chain.files().filter(|file| file.name() == Name::Adapter)
}

fn operations(file: &Boundary) -> impl Iterator<Item = (String, &str, &Operation)> {
    let named = file.operations.iter().flat_map(NamedValues::iter);
    named.map(|(name, operation)| (format!("/operations/{}", escape(name)), name, operation))
}
