//! Members: how a value of JSON becomes a value of the model, or one error that says where and why.
//!
//! Every type of the model says its [`Shape`] beside how it is read, so that the published schema, the list of
//! members and the reader cannot drift apart.

use std::borrow::Cow;

use crate::json::{Kind, Value};

/// The longest name of a direction or an operation: what an HTTP header or a metric label still bears.
pub const NAME_BYTES_MAX: usize = 255;

/// How many elements a list may have, and how many names the file may choose in one place.
pub const COUNT_MAX: usize = 1_000;

/// How many unknown members are remembered; a file with more is not a boundary file.
pub const UNKNOWN_MAX: usize = 100;

/// The greatest whole number: what every JSON library reads exactly.
pub const WHOLE_MAX: u64 = (1 << 53) - 1;

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

/// What is gathered while a file is read.
#[derive(Default)]
pub(super) struct Reading {
    /// Pointers to the members that the dialect does not know, [`UNKNOWN_MAX`] at most.
    pub(super) unknown: Vec<String>,
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

/// A type that can stand as the value of a member.
pub(super) trait Read: Sized {
    fn shape() -> Shape;
    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit>;
}

/// A type that can be a field of the model: it knows what its absence means.
pub(super) trait Field: Sized {
    fn shape() -> Shape;
    fn read_member(holder: At<'_>, name: &str, reading: &mut Reading) -> Result<Self, Misfit>;
}

impl<T: Read> Field for Option<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn read_member(holder: At<'_>, name: &str, reading: &mut Reading) -> Result<Self, Misfit> {
        holder.value.get(name).map(|value| T::read(holder.member(name, value), reading)).transpose()
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
    pub(super) fn object(self, known: &[&str], reading: &mut Reading) -> Result<(), Misfit> {
        if self.kind() != Kind::Object {
            return Err(self.misfit("an object"));
        }
        for (name, _) in self.value.members() {
            if !known.contains(&name.as_ref()) && reading.unknown.len() < UNKNOWN_MAX {
                reading.unknown.push(format!("{}/{}", self.pointer(), escape(&name)));
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

impl Read for bool {
    fn shape() -> Shape {
        Shape::Truth
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        at.value.as_bool().ok_or_else(|| at.misfit("true or false"))
    }
}

impl Read for String {
    fn shape() -> Shape {
        Shape::Text
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        at.text().map(Cow::into_owned).ok_or_else(|| at.misfit("a text"))
    }
}

/// A count, a size or a time.
impl Read for u64 {
    fn shape() -> Shape {
        Shape::Whole { min: 0, max: WHOLE_MAX }
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        whole(at, 0, WHOLE_MAX, "a whole number")
    }
}

/// A status of HTTP: nothing else in the model takes 16 bits.
impl Read for u16 {
    fn shape() -> Shape {
        Shape::Whole { min: 100, max: 599 }
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        // The bounds fit, so nothing is lost.
        whole(at, 100, 599, "an HTTP status (100 to 599)").map(|status| u16::try_from(status).unwrap_or(599))
    }
}

fn whole(at: At<'_>, min: u64, max: u64, expected: &str) -> Result<u64, Misfit> {
    let Some(digits) = at.value.as_number_text() else {
        return Err(at.misfit(expected));
    };
    let number = digits.parse().ok().filter(|number| (min..=max).contains(number));
    // The spelling is bounded, because the text of a file can be one long number.
    number.ok_or_else(|| at.wrong(format!("expected {expected}, found {digits:.20}")))
}

impl<T: Read> Read for Vec<T> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }

    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit> {
        if at.kind() != Kind::Array {
            return Err(at.misfit("an array"));
        }
        at.count(at.value.elements().count())?;
        let elements = at.value.elements().enumerate();
        elements.map(|(index, value)| T::read(at.element(index, value), reading)).collect()
    }
}

/// Values under names that the file chooses, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    /// The names and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T: Read> Read for Named<T> {
    fn shape() -> Shape {
        Shape::Named(Box::new(T::shape()))
    }

    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit> {
        if at.kind() != Kind::Object {
            return Err(at.misfit("an object"));
        }
        at.count(at.value.members().count())?;
        let mut named = Vec::new();
        for (name, value) in at.value.members() {
            if NAME_BYTES_MAX < name.len() {
                return Err(at.wrong(format!("a name in here is longer than {NAME_BYTES_MAX} bytes")));
            }
            let value = T::read(at.member(&name, value), reading)?;
            named.push((name.into_owned(), value));
        }
        Ok(Self(named))
    }
}

/// A name as a step of a JSON pointer writes it.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The name of a field that Rust reserves (`r#type`), as JSON has it.
pub(super) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at("r#".len()).1,
        _ => name,
    }
}

/// An object of the dialect: a struct whose fields are its members, and how it is read.
macro_rules! object {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $( $(#[doc = $member_doc:literal])+ $member:ident: $type:ty, )+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name { $( $(#[doc = $member_doc])+ pub $member: $type, )+ }

        impl $name {
            /// The names of its members.
            pub const NAMES: &'static [&'static str] = &[$( $crate::boundary::member::plain(stringify!($member)) ),+];
        }

        impl $crate::boundary::member::Read for $name {
            fn shape() -> $crate::boundary::member::Shape {
                $crate::boundary::member::Shape::Object(vec![$( $crate::boundary::member::Member {
                    name: $crate::boundary::member::plain(stringify!($member)),
                    doc: concat!($($member_doc),+).trim_ascii(),
                    shape: <$type as $crate::boundary::member::Field>::shape(),
                } ),+])
            }

            fn read(
                at: $crate::boundary::member::At<'_>,
                reading: &mut $crate::boundary::member::Reading,
            ) -> Result<Self, $crate::boundary::member::Misfit> {
                at.object(Self::NAMES, reading)?;
                Ok(Self { $(
                    $member: $crate::boundary::member::Field::read_member(at, $crate::boundary::member::plain(stringify!($member)), reading)?,
                )+ })
            }
        }

        /// Absent, it says nothing.
        impl $crate::boundary::member::Field for $name {
            fn shape() -> $crate::boundary::member::Shape {
                <Self as $crate::boundary::member::Read>::shape()
            }

            fn read_member(
                holder: $crate::boundary::member::At<'_>,
                name: &str,
                reading: &mut $crate::boundary::member::Reading,
            ) -> Result<Self, $crate::boundary::member::Misfit> {
                let found = <Option<Self> as $crate::boundary::member::Field>::read_member(holder, name, reading)?;
                Ok(found.unwrap_or_default())
            }
        }
    };
}

/// A closed set of words: an enum, and how each is spelled.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $( $(#[doc = $word_doc:literal])+ $variant:ident = $word:literal, )+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[doc = $word_doc])+ $variant, )+ }

        impl $name {
            /// The words, in order.
            pub const WORDS: &'static [&'static str] = &[$( $word ),+];

            /// The word as a file spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::boundary::member::Read for $name {
            fn shape() -> $crate::boundary::member::Shape {
                $crate::boundary::member::Shape::OneOf(Self::WORDS)
            }

            fn read(
                at: $crate::boundary::member::At<'_>,
                _: &mut $crate::boundary::member::Reading,
            ) -> Result<Self, $crate::boundary::member::Misfit> {
                match at.text().as_deref() {
                    $( Some($word) => Ok(Self::$variant), )+
                    Some(other) => Err(at.wrong(format!(
                        "expected one of {}, found \"{}\"",
                        Self::WORDS.join(", "),
                        other.chars().take(40).collect::<String>().escape_debug(),
                    ))),
                    None => Err(at.misfit(&format!("one of {}", Self::WORDS.join(", ")))),
                }
            }
        }
    };
}

pub(super) use {object, words};
