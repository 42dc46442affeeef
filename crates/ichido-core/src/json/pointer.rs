//! JSON Pointer (RFC 6901): the path to one value in a document.

use std::fmt;

use super::MAX_DEPTH;

/// A path of one or more steps, such as `/meta/trace_id`.
///
/// The empty pointer, which means the whole document in RFC 6901, is refused: here a pointer always names something
/// inside a document, and a digest of nothing must not be a setting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pointer(Vec<String>); // Invariant: 1..=MAX_DEPTH tokens, unescaped, MAX_BYTES bytes at most.

/// Why a text is not a [`Pointer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The text is empty, which would mean the whole document.
    #[error("a pointer must name something inside the document, such as `/meta/trace_id`")]
    Empty,
    /// The text is longer than [`Pointer::MAX_BYTES`].
    #[error("a pointer must not be longer than {} bytes", Pointer::MAX_BYTES)]
    TooLong,
    /// It has more steps than a document has levels.
    #[error("a pointer must not have more than {MAX_DEPTH} steps")]
    TooDeep,
    /// The text does not begin with a slash.
    #[error("a pointer must begin with `/`")]
    NoSlash,
    /// A tilde that is neither `~0` nor `~1`.
    #[error("`~` must be written `~0`, and `/` inside a name `~1` (at byte {position})")]
    BadEscape {
        /// Offset of the tilde.
        position: usize,
    },
}

impl Pointer {
    /// The maximum length of a pointer.
    pub const MAX_BYTES: usize = 1_024;

    /// Parses the text form.
    ///
    /// `~1` stands for a slash inside a name, and `~0` for a tilde.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        if Self::MAX_BYTES < text.len() {
            return Err(PointerError::TooLong);
        }
        let Some(steps) = text.strip_prefix('/') else {
            return Err(if text.is_empty() { PointerError::Empty } else { PointerError::NoSlash });
        };
        if MAX_DEPTH < steps.split('/').count() {
            return Err(PointerError::TooDeep);
        }
        let bad = text.match_indices('~').find(|(at, _)| !text[at + 1..].starts_with(['0', '1']));
        if let Some((position, _)) = bad {
            return Err(PointerError::BadEscape { position });
        }
        // In this order, as RFC 6901 says: `~01` is a tilde and a one, not a slash.
        Ok(Self(steps.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// Returns the steps from the root: member names, or array indices as text.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the steps to the target's parent, and the target's own name.
    pub(super) fn split_last(&self) -> Option<(&str, &[String])> {
        self.0.split_last().map(|(last, parents)| (last.as_str(), parents))
    }
}

/// Writes the text form that [`Pointer::parse`] reads.
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in self.tokens() {
            write!(f, "/{}", token.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}
