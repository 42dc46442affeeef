//! JSON: a strict reader, and one spelling for every value.
//!
//! Guarantee: two documents have equal canonical bytes exactly when their values are equal, whatever
//! their white space, member order, escapes and number spellings; and a text whose value is open to doubt
//! (a repeated member, a lone surrogate, `01`, `NaN`) has no canonical bytes at all. Nothing here panics on
//! any input, recurses deeper than [`DEPTH_MAX`], or takes memory beyond a small multiple of the bound the
//! caller sets.
//!
//! The idea: [`Document::parse`] checks the text once and leaves a flat tape of positions, with the members
//! of each object already in canonical order. [`Document::canonical`] walks the tape and copies spans of the
//! caller's text; only a string or a number that is not yet in its normal form is spelled anew.
//!
//! # The reader
//!
//! The grammar is RFC 8259 and no more: UTF-8 without a byte order mark, one value, white space of space,
//! tab, line feed and carriage return only, no raw control character in a string. Names are compared after
//! unescaping, and a name that repeats is refused where it stands the second time. `\u0000` and Unicode
//! noncharacters are legal.
//!
//! # The canonical form
//!
//! - No white space; members sorted by the UTF-16 code units of their names, as RFC 8785 sorts them.
//! - Strings as RFC 8785 spells them: `\b \t \n \f \r \" \\`, `\u00xx` in lower case for the other control
//!   characters, everything else literally.
//! - Numbers by [`Numbers`]. The exact form keeps the value whatever its size: plain digits, no exponent, no
//!   zeros at the end of a fraction, no sign on zero, at most [`NUMBER_DIGITS_MAX`] digits counted in that
//!   form, the zero before a point included.
//! - Short spellings of long numbers (`1e999`) may make the form longer than the text, but not longer than
//!   [`GROWTH_MAX`] times the bound given to [`Document::parse`] plus one number; beyond that it is refused.
//! - [`Form::leave_out`] takes members of objects out before the form is written. What is left out is not
//!   looked at beyond being well-formed JSON.
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
mod string;
mod tape;
mod value;
mod writer;

pub use error::{JsonError, JsonErrorKind};
pub use leave_out::{LeaveOut, TooManyLeftOut};
pub use line_column::LineColumn;
pub use pointer::{Pointer, PointerError};
pub use value::{Kind, Value};

use string::StringText;
use tape::Tape;

/// How many arrays and objects may stand inside each other.
pub const DEPTH_MAX: usize = 64;

/// How many digits the exact form of a number may have.
pub const NUMBER_DIGITS_MAX: usize = 1_000;

/// How many times the bound on the text the canonical form may be long.
///
/// Sixfold covers what honest numbers do (`1e21` becomes 22 digits) and threefold what NFC does.
pub const GROWTH_MAX: usize = 8;

/// How many pointers may name members to leave out.
pub const LEAVE_OUT_MAX: usize = 64;

/// A text that is JSON without doubt, and where its values stand.
#[derive(Clone)]
pub struct Document<'a> {
    text: &'a str,
    tape: Tape,
    bytes_max: usize,
}

/// Which canonical form is meant. The default is exact numbers, text as written, nothing left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// What makes two numbers equal.
    pub numbers: Numbers,
    /// What makes two strings equal.
    pub unicode: Unicode,
    /// Members that do not count.
    ///
    /// Only members of objects are left out: a pointer to an array element, or to nothing, leaves the
    /// document as it is, because taking an element out would give its place to the next.
    pub leave_out: LeaveOut,
}

/// What makes two numbers equal, and how they are spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Their decimal value: `1`, `1.0`, `1e0` and `10e-1` are one number, 9007199254740993 is itself.
    #[default]
    Exact,
    /// As [`Numbers::Exact`], but a number with an exponent is refused.
    ExactNoExponent,
    /// The nearest IEEE 754 double, spelled as ECMAScript does: the numbers of RFC 8785.
    ///
    /// This merges integers beyond 2^53 (9007199254740993 becomes 9007199254740992) and takes what is
    /// nearer to zero than any double for zero. A number beyond the greatest double is refused.
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
    /// Refused when it makes two members of an object equal. The tokens of [`Form::leave_out`] are
    /// compared in this form too.
    Nfc,
}

impl<'a> Document<'a> {
    /// Reads `text` strictly, refusing more than `bytes_max` bytes before looking at any of them.
    ///
    /// No text may be longer than `u32::MAX` bytes, whatever `bytes_max` says.
    pub fn parse(text: &'a [u8], bytes_max: usize) -> Result<Self, JsonError> {
        let bytes_max = bytes_max.min(u32::MAX as usize);
        if bytes_max < text.len() {
            return Err(JsonError { position: bytes_max, fault: JsonErrorKind::TooLarge { bytes_max } });
        }
        if text.starts_with("\u{feff}".as_bytes()) {
            return Err(JsonError { position: 0, fault: JsonErrorKind::ByteOrderMark });
        }
        let text = str::from_utf8(text)
            .map_err(|error| JsonError { position: error.valid_up_to(), fault: JsonErrorKind::NotUtf8 })?;
        let tape = reader::read(text)?;
        Ok(Self { text, tape, bytes_max })
    }

    /// The canonical bytes of the document in `form`.
    pub fn canonical(&self, form: &Form) -> Result<Vec<u8>, JsonError> {
        self.root().canonical(form)
    }

    /// The value of the whole document.
    pub fn root(&self) -> Value<'_, 'a> {
        Value::root(self)
    }

    /// The value `pointer` leads to, through members and array elements alike.
    pub fn at(&self, pointer: &Pointer) -> Option<Value<'_, 'a>> {
        pointer.tokens().try_fold(self.root(), Value::step)
    }

    /// The text of the string or the name at `node`.
    fn text_at(&self, node: u32) -> StringText<'a> {
        self.tape.string(self.text, node)
    }
}

crate::debug_only! {
    /// Shows sizes only: a body may hold secrets, and debug output ends in logs.
    Document<'_> as document { bytes: document.text.len() }
}
