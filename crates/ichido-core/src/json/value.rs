//! Reads a document: one value, and the path from it to others.

use std::borrow::Cow;
use std::{fmt, iter};

use super::tape::{Tape, TapeNode};
use super::{CanonicalForm, Document, JsonError, names, writer};

/// One value of a document, by its position on the tape.
#[derive(Clone, Copy)]
pub struct JsonValue<'d, 'a> {
    document: &'d Document<'a>,
    node: u32,
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, of any size.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl<'d, 'a> JsonValue<'d, 'a> {
    /// Returns the kind of this value.
    pub fn kind(self) -> Kind {
        match self.node() {
            TapeNode::Null => Kind::Null,
            TapeNode::Bool(_) => Kind::Bool,
            TapeNode::Number { .. } => Kind::Number,
            TapeNode::String { .. } => Kind::String,
            TapeNode::Array { .. } => Kind::Array,
            TapeNode::Object { .. } => Kind::Object,
        }
    }

    /// Returns the text of a string, unescaped.
    ///
    /// It is borrowed from the document if it has no escapes.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        matches!(self.node(), TapeNode::String { .. }).then(|| self.document.text_at(self.node).decode())
    }

    /// Returns the value of a boolean.
    pub fn as_bool(self) -> Option<bool> {
        if let TapeNode::Bool(truth) = self.node() { Some(truth) } else { None }
    }

    /// Returns a number as written in the text.
    pub fn as_number_text(self) -> Option<&'a str> {
        if let TapeNode::Number { span, .. } = self.node() {
            Some(span.slice(self.document.text))
        } else {
            None
        }
    }

    /// Returns the member of an object by its unescaped name.
    pub fn get(self, name: &str) -> Option<Self> {
        let names = self.names();
        let found =
            names.binary_search_by(|&other| names::compare(&self.document.text_at(other).decode(), name));
        found.ok().map(|index| self.member(names[index]))
    }

    /// Returns the elements of an array; nothing for any other value.
    pub fn elements(self) -> impl Iterator<Item = Self> + use<'d, 'a> {
        self.nodes_inside(Kind::Array, Tape::after).map(move |node| Self { node, ..self })
    }

    /// Returns the members of an object in text order; nothing for any other value.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Self)> + use<'d, 'a> {
        // A name is followed by its value, then by the next name.
        self.nodes_inside(Kind::Object, |tape, name| tape.after(name + 1))
            .map(move |name| (self.document.text_at(name).decode(), self.member(name)))
    }

    /// Returns the canonical bytes of this value alone, in `form`.
    pub fn canonical(self, form: &CanonicalForm) -> Result<Vec<u8>, JsonError> {
        writer::canonical(self.document, self.node, form)
    }

    /// Returns where in the text the value begins, in bytes.
    pub fn position(self) -> usize {
        self.document.tape.start(self.document.text, self.node)
    }

    pub(super) fn root(document: &'d Document<'a>) -> Self {
        Self { document, node: 0 }
    }

    /// Returns the member or element for one step of a pointer.
    pub(super) fn step(self, token: &str) -> Option<Self> {
        match self.node() {
            TapeNode::Object { .. } => self.get(token),
            TapeNode::Array { .. } => self.elements().nth(array_index(token)?),
            TapeNode::Null | TapeNode::Bool(_) | TapeNode::Number { .. } | TapeNode::String { .. } => None,
        }
    }

    /// Returns the node of this value.
    pub(super) fn node_index(self) -> u32 {
        self.node
    }

    /// Returns the node of the name, for the value of a member.
    pub(super) fn name_node(self) -> Option<u32> {
        self.node.checked_sub(1)
    }

    fn node(self) -> TapeNode {
        self.document.tape.node(self.node)
    }

    /// Returns the nodes inside a value of kind `kind`, each found from the previous one by `next`.
    fn nodes_inside(
        self,
        kind: Kind,
        next: fn(&Tape, u32) -> u32,
    ) -> impl Iterator<Item = u32> + use<'d, 'a> {
        let tape = &self.document.tape;
        let end = if self.kind() == kind { tape.after(self.node) } else { 0 };
        let inside = move |&node: &u32| node < end;
        iter::successors(Some(self.node + 1).filter(inside), move |&node| {
            Some(next(tape, node)).filter(inside)
        })
    }

    /// Returns the names of an object in canonical order; nothing for any other value.
    fn names(self) -> &'d [u32] {
        if let TapeNode::Object { order, .. } = self.node() { self.document.tape.names(order) } else { &[] }
    }

    /// Returns the value of the member whose name is the node `name`.
    fn member(self, name: u32) -> Self {
        Self { node: name + 1, ..self }
    }
}

/// Shows only the kind.
///
/// A body may contain secrets, and debug output ends up in logs.
impl fmt::Debug for JsonValue<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Value").field(&self.kind()).finish()
    }
}

/// Parses an array index as RFC 6901 writes it: digits without a leading zero.
pub(super) fn array_index(token: &str) -> Option<usize> {
    match token.as_bytes() {
        [b'0'] => Some(0),
        [b'1'..=b'9', ..] if token.bytes().all(|byte| byte.is_ascii_digit()) => token.parse().ok(),
        _ => None,
    }
}
