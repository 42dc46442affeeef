//! Members: turns a JSON value into a value of the model.
//!
//! Each invalid value gives one error with its location and reason, and the rest of the file is still read.
//!
//! Every type of the model declares its [`Schema`] next to its reader, so the published schema, the list of members and
//! the reader cannot drift apart.

mod declare;
mod spelling;
mod values;

pub(super) use declare::{members, object, one_of, plain, words};
pub use values::NamedValues;
pub(super) use values::read_except;

use std::borrow::Cow;

use ichido_core::json::{JsonValue, Kind};

/// The longest name of a direction or an operation.
///
/// It is the most that an HTTP header or a metric label holds.
pub const MAX_NAME_BYTES: usize = 255;

/// The maximum number of elements in a list, and of names that a file chooses in one object.
pub const MAX_COUNT: usize = 1_000;

/// The maximum number of unknown members that are recorded.
///
/// A file with more is not a boundary file.
pub const MAX_UNKNOWN: usize = 100;

/// The maximum number of invalid values that are reported for one file.
pub const MAX_INVALID: usize = 100;

/// The greatest integer that every JSON library reads exactly.
pub const MAX_WHOLE: u64 = (1 << 53) - 1;

/// How much of an unknown word is shown.
pub(super) const MAX_SHOWN_CHARS: usize = 40;

/// The values that a member accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schema {
    /// `true` or `false`.
    Bool,
    /// An integer in this range, inclusive.
    Integer {
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// Any string.
    String,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An array of these.
    Array(Box<Schema>),
    /// An object with these members; others are kept and ignored.
    Object(Vec<Member>),
    /// An object whose members may also be next to it, in the object that contains it.
    Flattened(Vec<Member>),
    /// An object whose member names the file chooses, apart from these members.
    Map {
        /// The members with fixed names.
        members: Vec<Member>,
        /// The values under all other names.
        others: Box<Schema>,
    },
    /// One of these schemas.
    AnyOf(Vec<Schema>),
    /// Anything.
    Any,
}

/// One member of an object of the dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// The values it accepts.
    pub schema: Schema,
}

/// A value that does not match the schema of its member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidValue {
    /// Its position, in bytes.
    pub(super) position: usize,
    /// The JSON pointer to it.
    pub(super) pointer: String,
    /// What is wrong with it.
    pub(super) what: String,
}

/// An unknown member whose name is almost that of a known one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisspelledMember {
    /// The JSON pointer to it.
    pub pointer: String,
    /// The known name.
    pub meant: &'static str,
}

/// What is collected while a file is read.
#[derive(Default)]
pub(super) struct ReadContext {
    /// Pointers to unknown members, at most [`MAX_UNKNOWN`].
    pub(super) unknown: Vec<String>,
    /// Those whose name is almost a known one, at most [`MAX_UNKNOWN`].
    pub(super) misspelled: Vec<MisspelledMember>,
    /// Values that do not match their schema, at most [`MAX_INVALID`].
    pub(super) invalid: Vec<InvalidValue>,
}

impl ReadContext {
    /// Records an invalid value, so the rest of the file is read.
    pub(super) fn refuse(&mut self, invalid: InvalidValue) {
        if self.invalid.len() < MAX_INVALID {
            self.invalid.push(invalid);
        }
    }
}

/// A value and the path to it.
#[derive(Clone, Copy)]
pub(super) struct LocatedValue<'d> {
    value: JsonValue<'d, 'd>,
    /// The parent, and the name or index in it; `None` for the whole file.
    holder: Option<(&'d LocatedValue<'d>, PathSegment<'d>)>,
}

#[derive(Clone, Copy)]
enum PathSegment<'d> {
    Name(&'d str),
    Index(usize),
}

/// A type that can be the value of a member.
pub(super) trait FromJson: Sized {
    fn schema() -> Schema;
    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue>;

    /// Reads the member of this name. An absent or invalid member gives the default.
    fn read_member(holder: LocatedValue<'_>, name: &str, context: &mut ReadContext) -> Self
    where
        Self: Default,
    {
        let Some(value) = holder.value.get(name) else { return Self::default() };
        Self::read(holder.member(name, value), context).unwrap_or_else(|invalid| {
            context.refuse(invalid);
            Self::default()
        })
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn schema() -> Schema {
        T::schema()
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        T::read(at, context).map(Some)
    }
}

impl<'d> LocatedValue<'d> {
    pub(super) fn root(value: JsonValue<'d, 'd>) -> Self {
        Self { value, holder: None }
    }

    pub(super) fn kind(self) -> Kind {
        self.value.kind()
    }

    pub(super) fn value(self) -> JsonValue<'d, 'd> {
        self.value
    }

    pub(super) fn text(self) -> Option<Cow<'d, str>> {
        self.value.as_str()
    }

    pub(super) fn has(self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// Returns the text form of its pointer.
    pub(super) fn pointer(self) -> String {
        match self.holder {
            None => String::new(),
            Some((holder, PathSegment::Name(name))) => format!("{}/{}", holder.pointer(), escape(name)),
            Some((holder, PathSegment::Index(index))) => format!("{}/{index}", holder.pointer()),
        }
    }

    /// Checks that it is an object, and records the members that are not in `known`.
    pub(super) fn object(
        self,
        known: &[&'static str],
        context: &mut ReadContext,
    ) -> Result<(), InvalidValue> {
        if self.kind() != Kind::Object {
            return Err(self.mismatch("an object"));
        }
        let members = || self.value.members().map(|(name, _)| name);
        for name in members().filter(|name| !known.contains(&name.as_ref())) {
            let pointer = || format!("{}/{}", self.pointer(), escape(&name));
            if context.unknown.len() < MAX_UNKNOWN {
                context.unknown.push(pointer());
            }
            let meant = spelling::meant(&name, known, |known| self.has(known));
            if let Some(meant) = meant.filter(|_| context.misspelled.len() < MAX_UNKNOWN) {
                context.misspelled.push(MisspelledMember { pointer: pointer(), meant });
            }
        }
        Ok(())
    }

    /// Refuses more than [`MAX_COUNT`] elements or names.
    pub(super) fn count(self, count: usize) -> Result<(), InvalidValue> {
        match count {
            0..=MAX_COUNT => Ok(()),
            _ => Err(self.wrong(format!("found {count} entries; the maximum is {MAX_COUNT}"))),
        }
    }

    /// Returns the value that the text names, by its word or by an alias.
    pub(super) fn one_of<T: Copy>(
        self,
        all: &[T],
        word: fn(T) -> &'static str,
        aliases: &[(&'static str, T)],
    ) -> Result<T, InvalidValue> {
        let words = || all.iter().map(|one| (word(*one), *one)).chain(aliases.iter().copied());
        let known = || words().map(|(word, _)| word).collect::<Vec<_>>().join(", ");
        let text = self.text().ok_or_else(|| self.mismatch(&format!("one of {}", known())))?;
        words().find(|(word, _)| *word == text).map(|(_, one)| one).ok_or_else(|| {
            let found: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            self.wrong(format!("expected one of {}, found \"{}\"", known(), found.escape_debug()))
        })
    }

    pub(super) fn mismatch(self, expected: &str) -> InvalidValue {
        let found = match self.kind() {
            Kind::Null => "null; remove the member to leave it unset",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        };
        self.wrong(format!("expected {expected}, found {found}"))
    }

    pub(super) fn wrong(self, what: String) -> InvalidValue {
        InvalidValue { position: self.value.position(), pointer: self.pointer(), what }
    }

    fn member<'m>(&'m self, name: &'m str, value: JsonValue<'m, 'm>) -> LocatedValue<'m> {
        LocatedValue { value, holder: Some((self, PathSegment::Name(name))) }
    }

    fn element<'m>(&'m self, index: usize, value: JsonValue<'m, 'm>) -> LocatedValue<'m> {
        LocatedValue { value, holder: Some((self, PathSegment::Index(index))) }
    }
}

/// Escapes a name for a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
