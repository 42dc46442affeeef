//! JSON: a strict reader, and one canonical form for every value.
//!
//! Guarantee: two documents have equal canonical bytes exactly when their values are equal, whatever their white space,
//! member order, escapes and number spellings. A text whose value is ambiguous (a repeated member, a lone surrogate,
//! `01`, `NaN`) has no canonical bytes. Nothing here panics on any input, recurses deeper than [`MAX_DEPTH`], or uses
//! memory beyond a small multiple of the caller's limit.
//!
//! The idea: [`Document::parse`] checks the text once and produces a flat tape of positions, with the members of each
//! object already in canonical order. [`Document::canonical`] walks the tape and copies spans of the caller's text; it
//! rewrites only strings and numbers that are not yet in normal form.
//!
//! # The reader
//!
//! The grammar is exactly RFC 8259: UTF-8 without a byte order mark, one value, white space of space, tab, line feed
//! and carriage return only, no raw control character in a string. Names are compared after unescaping, and a repeated
//! name is refused at its second occurrence. `\u0000` and Unicode noncharacters are legal.
//!
//! # The canonical form
//!
//! - No white space; members sorted by the UTF-16 code units of their names, as in RFC 8785.
//! - Strings as in RFC 8785: `\b \t \n \f \r \" \\`, `\u00xx` in lower case for the other control characters,
//!   everything else literally.
//! - Numbers by [`Numbers`]. The exact form keeps the value whatever its size: plain digits, no exponent, no trailing
//!   zeros in a fraction, no sign on zero, at most [`MAX_NUMBER_DIGITS`] digits counted in that form, including the
//!   zero before a point.
//! - Short spellings of long numbers (`1e999`) may make the form longer than the text, but not longer than
//!   [`MAX_GROWTH`] times the limit given to [`Document::parse`] plus one number; anything longer is refused.
//! - [`CanonicalForm::leave_out`] removes members of objects before the form is written. Removed members only have to be
//!   well-formed JSON.
//!
//! Where to start: [`Document::parse`] for what is accepted, [`Document::canonical`] for what is written.

mod decimal;
mod error;
mod escape;
mod leave_out;
mod line_column;
mod names;
mod number;
mod pointer;
mod reader;
mod redaction;
mod string;
mod tape;
mod value;
mod writer;

pub use error::{JsonError, JsonErrorKind};
pub use leave_out::{LeaveOut, TooManyLeftOut};
pub use line_column::LineColumn;
pub use pointer::{Pointer, PointerError};
pub use redaction::{MAX_REDACTED, NothingToRestore, REDACTED, Redaction, RedactionError, Redactor};
pub use value::{JsonValue, Kind};

use string::StringText;
use tape::Tape;

/// The maximum nesting of arrays and objects.
pub const MAX_DEPTH: usize = 64;

/// The maximum number of digits in the exact form of a number.
pub const MAX_NUMBER_DIGITS: usize = 1_000;

/// The maximum length of the canonical form, as a multiple of the limit on the text.
///
/// Real numbers need a factor of six (`1e21` becomes 22 digits), NFC a factor of three.
pub const MAX_GROWTH: usize = 8;

/// The maximum number of pointers to members to leave out.
pub const MAX_LEAVE_OUT: usize = 64;

/// A valid JSON text and the positions of its values.
#[derive(Clone)]
pub struct Document<'a> {
    text: &'a str,
    tape: Tape,
    max_bytes: usize,
}

/// A canonical form. The default is exact numbers, text as written, nothing left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CanonicalForm {
    /// What makes two numbers equal.
    pub numbers: Numbers,
    /// What makes two strings equal.
    pub unicode: Unicode,
    /// Members that are ignored.
    ///
    /// Only members of objects are left out: a pointer to an array element, or to nothing, leaves the document
    /// unchanged, because removing an element would shift the next ones.
    pub leave_out: LeaveOut,
}

/// What makes two numbers equal, and how they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Their decimal value: `1`, `1.0`, `1e0` and `10e-1` are one number; 9007199254740993 keeps its value.
    #[default]
    Exact,
    /// Like [`Numbers::Exact`], but a number with an exponent is refused.
    ExactNoExponent,
    /// The nearest IEEE 754 double, written as in ECMAScript: the numbers of RFC 8785.
    ///
    /// This merges integers beyond 2^53 (9007199254740993 becomes 9007199254740992), and values closer to zero than any
    /// double become zero. A number beyond the greatest double is refused.
    Double,
}

/// What makes two strings equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unicode {
    /// Their code points.
    #[default]
    AsWritten,
    /// Their code points in Normalization Form C.
    ///
    /// Refused if it makes two members of an object equal. The tokens of [`CanonicalForm::leave_out`] are compared in this form
    /// too.
    Nfc,
}

impl<'a> Document<'a> {
    /// Parses `text` strictly, refusing more than `max_bytes` bytes before reading any of them.
    ///
    /// No text may be longer than `u32::MAX` bytes, whatever `max_bytes` says.
    pub fn parse(text: &'a [u8], max_bytes: usize) -> Result<Self, JsonError> {
        let max_bytes = max_bytes.min(u32::MAX as usize);
        if max_bytes < text.len() {
            return Err(JsonError { position: max_bytes, fault: JsonErrorKind::TooLarge { max_bytes } });
        }
        if text.starts_with("\u{feff}".as_bytes()) {
            return Err(JsonError { position: 0, fault: JsonErrorKind::ByteOrderMark });
        }
        let text = str::from_utf8(text)
            .map_err(|error| JsonError { position: error.valid_up_to(), fault: JsonErrorKind::NotUtf8 })?;
        let tape = reader::read(text)?;
        Ok(Self { text, tape, max_bytes })
    }

    /// Returns the canonical bytes of the document in `form`.
    pub fn canonical(&self, form: &CanonicalForm) -> Result<Vec<u8>, JsonError> {
        self.root().canonical(form)
    }

    /// Returns the value of the whole document.
    pub fn root(&self) -> JsonValue<'_, 'a> {
        JsonValue::root(self)
    }

    /// Returns the value at `pointer`, through members and array elements alike.
    pub fn at(&self, pointer: &Pointer) -> Option<JsonValue<'_, 'a>> {
        pointer.tokens().try_fold(self.root(), JsonValue::step)
    }

    /// Returns the text of the string or name at `node`.
    fn text_at(&self, node: u32) -> StringText<'a> {
        self.tape.string(self.text, node)
    }
}

crate::debug_only! {
    /// Shows only sizes: a body may contain secrets, and debug output ends up in logs.
    Document<'_> as document { bytes: document.text.len() }
}
