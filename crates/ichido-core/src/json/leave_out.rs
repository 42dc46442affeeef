//! Members that do not count: which of them a document has.
//!
//! Guarantee: finding them takes time in proportion to the text, times [`LEAVE_OUT_MAX`] at most; names are
//! brought to Normalization Form C once, however many pointers ask for them.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Document, Kind, LEAVE_OUT_MAX, Pointer, Unicode, Value, string};

/// Pointers to the members that a [`Form`](super::Form) leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaveOut(Vec<Pointer>); // Invariant: LEAVE_OUT_MAX pointers at most.

/// More pointers than [`LEAVE_OUT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} members to leave out; name {LEAVE_OUT_MAX} at most, or one object that holds them all")]
pub struct TooManyLeftOut {
    /// How many there are.
    pub count: usize,
}

impl LeaveOut {
    /// Every member counts.
    pub const NONE: Self = Self(Vec::new());

    /// Leaves out what these pointers lead to.
    pub fn new(pointers: Vec<Pointer>) -> Result<Self, TooManyLeftOut> {
        match pointers.len() {
            0..=LEAVE_OUT_MAX => Ok(Self(pointers)),
            count => Err(TooManyLeftOut { count }),
        }
    }

    /// The names of the members of `document` that are left out, as nodes in rising order.
    pub(super) fn names(&self, document: &Document<'_>, unicode: Unicode) -> Vec<u32> {
        let mut steps = Steps { unicode, normal: HashMap::new() };
        let mut names: Vec<u32> = self
            .0
            .iter()
            .filter_map(|pointer| {
                let (last, way) = pointer.split_last()?;
                let holder = way.iter().try_fold(document.root(), |value, token| steps.step(value, token))?;
                // An element of an array has no name to leave out.
                if holder.kind() == Kind::Object { steps.step(holder, last)?.name_node() } else { None }
            })
            .collect();
        names.sort_unstable();
        names
    }
}

/// The steps of all pointers through one document.
struct Steps<'d, 'a> {
    unicode: Unicode,
    /// Of each object met so far, by its node: its members by their names in Normalization Form C.
    normal: HashMap<u32, HashMap<Cow<'a, str>, Value<'d, 'a>>>,
}

impl<'d, 'a> Steps<'d, 'a> {
    fn step(&mut self, value: Value<'d, 'a>, token: &str) -> Option<Value<'d, 'a>> {
        match (self.unicode, value.kind()) {
            (Unicode::Nfc, Kind::Object) => {
                let members = self.normal.entry(value.place()).or_insert_with(|| {
                    value.members().map(|(name, member)| (string::nfc(name), member)).collect()
                });
                members.get(&string::nfc(token.into())).copied()
            }
            _ => value.step(token),
        }
    }
}
