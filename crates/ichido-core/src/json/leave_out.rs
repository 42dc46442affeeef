//! Finds the members of a document that are ignored.
//!
//! Guarantee: finding them takes time proportional to the text, times [`MAX_LEAVE_OUT`] at most; names are normalized
//! to NFC once, however many pointers use them.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Document, JsonValue, Kind, MAX_LEAVE_OUT, Pointer, Unicode, string};

/// Pointers to the members that a [`CanonicalForm`](super::CanonicalForm) leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaveOut(Vec<Pointer>); // Invariant: MAX_LEAVE_OUT pointers at most.

/// More pointers than [`MAX_LEAVE_OUT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} members to leave out; name at most {MAX_LEAVE_OUT}, or one object that contains them all")]
pub struct TooManyLeftOut {
    /// The number of pointers.
    pub count: usize,
}

impl LeaveOut {
    /// Ignores no member.
    pub const NONE: Self = Self(Vec::new());

    /// Ignores the members at these pointers.
    pub fn new(pointers: Vec<Pointer>) -> Result<Self, TooManyLeftOut> {
        match pointers.len() {
            0..=MAX_LEAVE_OUT => Ok(Self(pointers)),
            count => Err(TooManyLeftOut { count }),
        }
    }

    /// Returns the ignored member names of `document`, as nodes in ascending order.
    pub(super) fn names(&self, document: &Document<'_>, unicode: Unicode) -> Vec<u32> {
        let mut steps = Steps { unicode, normal: HashMap::new() };
        let mut names: Vec<u32> = self
            .0
            .iter()
            .filter_map(|pointer| {
                let (last, parents) = pointer.split_last()?;
                let holder =
                    parents.iter().try_fold(document.root(), |value, token| steps.step(value, token))?;
                // An array element has no name to ignore.
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
    /// The members of each object seen so far, by node: their names in Normalization Form C.
    normal: HashMap<u32, HashMap<Cow<'a, str>, JsonValue<'d, 'a>>>,
}

impl<'d, 'a> Steps<'d, 'a> {
    fn step(&mut self, value: JsonValue<'d, 'a>, token: &str) -> Option<JsonValue<'d, 'a>> {
        match (self.unicode, value.kind()) {
            (Unicode::Nfc, Kind::Object) => {
                let members = self.normal.entry(value.node_index()).or_insert_with(|| {
                    value.members().map(|(name, member)| (string::nfc(name), member)).collect()
                });
                members.get(&string::nfc(token.into())).copied()
            }
            _ => value.step(token),
        }
    }
}
