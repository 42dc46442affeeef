//! Why a text is refused, and where.

use super::{MAX_DEPTH, MAX_GROWTH, MAX_NUMBER_DIGITS};

/// A refused text.
///
/// It contains nothing of the text, so it may be logged and returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} (at byte {position})")]
pub struct JsonError {
    /// Offset in bytes from the start of the text.
    pub position: usize,
    /// What is wrong there.
    pub fault: JsonErrorKind,
}

/// The reason a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// The text is longer than the caller allows.
    #[error("the text is longer than {max_bytes} bytes")]
    TooLarge {
        /// The limit.
        max_bytes: usize,
    },
    /// The text has no value.
    #[error("the text is empty")]
    Empty,
    /// The text begins with U+FEFF.
    #[error("the text begins with a byte order mark; send plain UTF-8")]
    ByteOrderMark,
    /// The bytes are not UTF-8.
    #[error("the text is not valid UTF-8")]
    NotUtf8,
    /// The text ends inside a value.
    #[error("the text ends in the middle of a value")]
    UnexpectedEnd,
    /// Something follows the value.
    #[error("unexpected characters after the value")]
    TrailingContent,
    /// No value begins here.
    #[error("expected a value")]
    ExpectedValue,
    /// No member name begins here.
    #[error("expected a member name in double quotes")]
    ExpectedName,
    /// A member name is not followed by a colon.
    #[error("expected `:` after the member name")]
    ExpectedColon,
    /// An array continues with an unexpected character.
    #[error("expected `,` or `]` after the array element")]
    ExpectedCommaOrBracket,
    /// An object continues with an unexpected character.
    #[error("expected `,` or `}}` after the member")]
    ExpectedCommaOrBrace,
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`].
    #[error("more than {MAX_DEPTH} nested arrays and objects")]
    TooDeep,
    /// A name appears twice in its object.
    #[error("this member name repeats an earlier one in the same object")]
    DuplicateMember,
    /// A control character is not escaped in a string.
    #[error("a control character in a string must be written as an escape")]
    ControlCharacter,
    /// A backslash is not followed by a JSON escape.
    #[error("this is not a JSON escape")]
    BadEscape,
    /// One half of a surrogate pair without the other.
    #[error("this escape is half of a surrogate pair, and the other half is missing")]
    LoneSurrogate,
    /// A number with leading zeros.
    #[error("a number must not begin with a zero followed by digits")]
    LeadingZero,
    /// A sign, a point or an exponent without the digits it needs.
    #[error("a digit is missing in this number")]
    ExpectedDigit,
    /// `NaN`, `Infinity` or `-Infinity`.
    #[error("NaN and Infinity are not JSON numbers")]
    NotFinite,
    /// An exponent, which the form does not allow.
    #[error("an exponent is not allowed here; write the number in plain digits")]
    Exponent,
    /// The exact form of a number has more digits than [`MAX_NUMBER_DIGITS`].
    #[error("this number has more than {MAX_NUMBER_DIGITS} digits when written in full")]
    NumberTooLong,
    /// A number beyond the greatest double, in a form that uses doubles.
    #[error("this number is too large for a double")]
    NumberTooLarge,
    /// Two names of an object that differ as written are equal in Normalization Form C.
    #[error("this member name equals an earlier one in the same object after NFC normalization")]
    DuplicateAfterNfc,
    /// The canonical form exceeds [`MAX_GROWTH`] times the limit on the text.
    #[error(
        "the text grows to more than {MAX_GROWTH} times its allowed size when numbers are written in full"
    )]
    GrowsTooLong,
}

impl JsonErrorKind {
    /// Returns this error at `position`.
    pub(super) fn at<T>(self, position: usize) -> Result<T, JsonError> {
        Err(JsonError { position, fault: self })
    }
}
