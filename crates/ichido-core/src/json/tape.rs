//! The tape: every value of a document in text order, by position.
//!
//! Guarantee: only the reader writes it, and only for a well-formed text. So a span lies on character boundaries, a
//! string's span includes its quotes, and a member's value follows its name.
//!
//! A node takes 12 bytes and represents at least two bytes of text (`0,`), which limits the tape to a small multiple of
//! the text.

use super::string::StringText;

/// Positions and values of one document.
#[derive(Clone, Default)]
pub(super) struct Tape {
    pub(super) nodes: Vec<TapeNode>,
    /// For each object its number of members, then their names (as nodes) in canonical order.
    orders: Vec<u32>,
}

/// One value, or one member name.
#[derive(Clone, Copy)]
pub(super) enum TapeNode {
    Null,
    Bool(bool),
    Number {
        span: TextSpan,
        /// Whether the spelling is already the exact form.
        normal: bool,
    },
    String {
        span: TextSpan,
        escaping: Escaping,
    },
    Array {
        /// The node after the last element.
        after: u32,
    },
    Object {
        /// The node after the last member.
        after: u32,
        /// Where its names are in `orders`.
        order: u32,
    },
}

/// A part of the text, by its byte offsets.
#[derive(Clone, Copy)]
pub(super) struct TextSpan {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// How a string is escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escaping {
    /// Without escapes, which is also its canonical spelling.
    Plain,
    /// With escapes, each of them canonical.
    EscapedNormal,
    /// With an escape that the canonical form writes differently.
    Escaped,
}

impl Tape {
    /// Appends a node and returns its index.
    pub(super) fn push(&mut self, node: TapeNode) -> u32 {
        let at = narrow(self.nodes.len());
        self.nodes.push(node);
        at
    }

    pub(super) fn node(&self, at: u32) -> TapeNode {
        self.nodes[at as usize]
    }

    /// Returns the node after the value at `at` and everything in it.
    pub(super) fn after(&self, at: u32) -> u32 {
        match self.node(at) {
            TapeNode::Array { after } | TapeNode::Object { after, .. } => after,
            TapeNode::Null | TapeNode::Bool(_) | TapeNode::Number { .. } | TapeNode::String { .. } => at + 1,
        }
    }

    /// Returns the string at `at`, without its quotes.
    ///
    /// Names are strings; anything else reads as the empty string.
    pub(super) fn string<'a>(&self, text: &'a str, at: u32) -> StringText<'a> {
        if let TapeNode::String { span, escaping } = self.node(at) {
            StringText::new(span.slice(text), escaping)
        } else {
            StringText::default()
        }
    }

    /// Returns where in the text the string or number at `at` begins.
    pub(super) fn position(&self, at: u32) -> usize {
        match self.node(at) {
            TapeNode::String { span, .. } | TapeNode::Number { span, .. } => span.start as usize,
            TapeNode::Null | TapeNode::Bool(_) | TapeNode::Array { .. } | TapeNode::Object { .. } => 0,
        }
    }

    /// Returns where in the text the value or name at `at` begins.
    ///
    /// Only strings and numbers have a span. The others are located from the nearest of those before them: between two
    /// tokens there are only white space and punctuation. It is slow, so it is only for messages.
    pub(super) fn start(&self, text: &str, at: u32) -> usize {
        let is_spanned = |node: &TapeNode| matches!(node, TapeNode::String { .. } | TapeNode::Number { .. });
        let nodes = &self.nodes[..=at as usize];
        let anchor = nodes.iter().rposition(is_spanned);
        let mut end = 0;
        let mut start = 0;
        for node in &nodes[anchor.unwrap_or(0)..] {
            let is_between =
                |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b']' | b'}');
            let skipped = text.as_bytes()[end..].iter().take_while(|byte| is_between(byte)).count();
            (start, end) = match node {
                TapeNode::String { span, .. } | TapeNode::Number { span, .. } => {
                    (span.start as usize, span.end as usize)
                }
                TapeNode::Null | TapeNode::Bool(true) => (end + skipped, end + skipped + "null".len()),
                TapeNode::Bool(false) => (end + skipped, end + skipped + "false".len()),
                TapeNode::Array { .. } | TapeNode::Object { .. } => (end + skipped, end + skipped + 1),
            };
        }
        start
    }

    /// Ends the array at `at` after the last node pushed.
    pub(super) fn close_array(&mut self, at: u32) {
        self.nodes[at as usize] = TapeNode::Array { after: narrow(self.nodes.len()) };
    }

    /// Ends the object at `at` after the last node pushed; `names` are its members in canonical order.
    pub(super) fn close_object(&mut self, at: u32, names: &[u32]) {
        let order = narrow(self.orders.len());
        self.orders.push(narrow(names.len()));
        self.orders.extend_from_slice(names);
        self.nodes[at as usize] = TapeNode::Object { after: narrow(self.nodes.len()), order };
    }

    /// Returns the names of the object with this `order`, in canonical order.
    pub(super) fn names(&self, order: u32) -> &[u32] {
        let order = order as usize;
        let count = self.orders[order] as usize;
        &self.orders[order + 1..][..count]
    }
}

impl TextSpan {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start: narrow(start), end: narrow(end) }
    }

    pub(super) fn slice(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }
}

/// Converts an offset for the tape.
///
/// A text has at most `u32::MAX` bytes and fewer nodes and names than bytes, so nothing is lost.
fn narrow(offset: usize) -> u32 {
    debug_assert!(u32::try_from(offset).is_ok());
    u32::try_from(offset).unwrap_or(u32::MAX)
}
