//! Members: how a value of JSON becomes a value of the model, or one error that says where and why.
//!
//! Every type of the model says its [`Shape`] beside how it is read, so that the published schema, the list of
//! members and the reader cannot drift apart.

mod declare;
mod spelling;
mod values;

pub(super) use declare::{members, object, one_of, plain, words};
pub use values::Named;

use std::borrow::Cow;

use ichido_core::json::{Kind, Value};

/// The longest name of a direction or an operation: what an HTTP header or a metric label still bears.
pub const NAME_BYTES_MAX: usize = 255;

/// How many elements a list may have, and how many names the file may choose in one place.
pub const COUNT_MAX: usize = 1_000;

/// How many unknown members are remembered; a file with more is not a boundary file.
pub const UNKNOWN_MAX: usize = 100;

/// The greatest whole number: what every JSON library reads exactly.
pub const WHOLE_MAX: u64 = (1 << 53) - 1;

/// How much of a word that is not known is shown.
pub(super) const SHOWN_CHARS_MAX: usize = 40;

/// What a member may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Truth,
    /// A whole number within these bounds, both included.
    Whole {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// Any text.
    Text,
    /// One of these words and no other.
    OneOf(&'static [&'static str]),
    /// An array of these.
    List(Box<Shape>),
    /// An object with these members; others are kept and ignored.
    Object(Vec<Member>),
    /// An object whose members' names are the file's own choice.
    Named(Box<Shape>),
    /// One of these shapes.
    Either(Vec<Shape>),
    /// Anything.
    Any,
}

/// One member of an object, as the dialect has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What it may hold.
    pub shape: Shape,
}

/// A value that does not have the shape its place asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Where it stands, in bytes.
    pub(super) position: usize,
    /// The JSON pointer to it.
    pub(super) pointer: String,
    /// What is wrong with it.
    pub(super) what: String,
}

/// A member that the dialect does not know, and that is spelled almost like one that it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misspelt {
    /// The JSON pointer to it.
    pub pointer: String,
    /// What it may be meant to be.
    pub meant: &'static str,
}

/// What is gathered while a file is read.
#[derive(Default)]
pub(super) struct Reading {
    /// Pointers to the members that the dialect does not know, [`UNKNOWN_MAX`] at most.
    pub(super) unknown: Vec<String>,
    /// Those of them that are spelled almost like one that it knows, [`UNKNOWN_MAX`] at most.
    pub(super) misspelt: Vec<Misspelt>,
}

/// A value and the way that led to it.
#[derive(Clone, Copy)]
pub(super) struct At<'d> {
    value: Value<'d, 'd>,
    /// What holds it, and its name or its index there; `None` for the whole file.
    holder: Option<(&'d At<'d>, Step<'d>)>,
}

#[derive(Clone, Copy)]
enum Step<'d> {
    Name(&'d str),
    Index(usize),
}

/// A type that can be the value of a member.
pub(super) trait Read: Sized {
    fn shape() -> Shape;
    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit>;

    /// Reads the member of this name. An absent one says nothing, as the default does.
    fn read_member(holder: At<'_>, name: &str, reading: &mut Reading) -> Result<Self, Misfit>
    where
        Self: Default,
    {
        match holder.value.get(name) {
            Some(value) => Self::read(holder.member(name, value), reading),
            None => Ok(Self::default()),
        }
    }
}

impl<T: Read> Read for Option<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit> {
        T::read(at, reading).map(Some)
    }
}

impl<'d> At<'d> {
    pub(super) fn root(value: Value<'d, 'd>) -> Self {
        Self { value, holder: None }
    }

    pub(super) fn kind(self) -> Kind {
        self.value.kind()
    }

    pub(super) fn value(self) -> Value<'d, 'd> {
        self.value
    }

    pub(super) fn text(self) -> Option<Cow<'d, str>> {
        self.value.as_str()
    }

    pub(super) fn has(self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// The text form of the pointer to it.
    pub(super) fn pointer(self) -> String {
        match self.holder {
            None => String::new(),
            Some((holder, Step::Name(name))) => format!("{}/{}", holder.pointer(), escape(name)),
            Some((holder, Step::Index(index))) => format!("{}/{index}", holder.pointer()),
        }
    }

    /// Makes sure that it is an object, and remembers the members that are not in `known`.
    pub(super) fn object(self, known: &[&'static str], reading: &mut Reading) -> Result<(), Misfit> {
        if self.kind() != Kind::Object {
            return Err(self.misfit("an object"));
        }
        let members = || self.value.members().map(|(name, _)| name);
        for name in members().filter(|name| !known.contains(&name.as_ref())) {
            let pointer = || format!("{}/{}", self.pointer(), escape(&name));
            if reading.unknown.len() < UNKNOWN_MAX {
                reading.unknown.push(pointer());
            }
            let meant = spelling::meant(&name, known, |known| self.has(known));
            if let Some(meant) = meant.filter(|_| reading.misspelt.len() < UNKNOWN_MAX) {
                reading.misspelt.push(Misspelt { pointer: pointer(), meant });
            }
        }
        Ok(())
    }

    /// Refuses more than [`COUNT_MAX`] of anything.
    pub(super) fn count(self, count: usize) -> Result<(), Misfit> {
        match count {
            0..=COUNT_MAX => Ok(()),
            _ => Err(self.wrong(format!("there are {count} in here; the most is {COUNT_MAX}"))),
        }
    }

    /// The one of these that the text names.
    pub(super) fn one_of<T: Copy>(self, all: &[T], word: fn(T) -> &'static str) -> Result<T, Misfit> {
        let known = || all.iter().map(|one| word(*one)).collect::<Vec<_>>().join(", ");
        let text = self.text().ok_or_else(|| self.misfit(&format!("one of {}", known())))?;
        all.iter().copied().find(|one| word(*one) == text).ok_or_else(|| {
            let found: String = text.chars().take(SHOWN_CHARS_MAX).collect();
            self.wrong(format!("expected one of {}, found \"{}\"", known(), found.escape_debug()))
        })
    }

    pub(super) fn misfit(self, expected: &str) -> Misfit {
        let found = match self.kind() {
            Kind::Null => "null; leave the member out to say nothing",
            Kind::Bool => "true or false",
            Kind::Number => "a number",
            Kind::String => "a text",
            Kind::Array => "an array",
            Kind::Object => "an object",
        };
        self.wrong(format!("expected {expected}, found {found}"))
    }

    pub(super) fn wrong(self, what: String) -> Misfit {
        Misfit { position: self.value.position(), pointer: self.pointer(), what }
    }

    fn member<'m>(&'m self, name: &'m str, value: Value<'m, 'm>) -> At<'m> {
        At { value, holder: Some((self, Step::Name(name))) }
    }

    fn element<'m>(&'m self, index: usize, value: Value<'m, 'm>) -> At<'m> {
        At { value, holder: Some((self, Step::Index(index))) }
    }
}

/// A name as a step of a JSON pointer writes it.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
