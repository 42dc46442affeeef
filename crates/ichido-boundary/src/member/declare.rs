//! How the model declares its objects and words: the type, its shape and its reader in one place.

/// The name of a field that Rust reserves (`r#type`), as JSON has it.
pub(crate) const fn plain(name: &'static str) -> &'static str {
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
            pub const NAMES: &'static [&'static str] = &[$( $crate::member::plain(stringify!($member)) ),+];
        }

        impl $crate::member::Read for $name {
            fn shape() -> $crate::member::Shape {
                $crate::member::Shape::Object(vec![$( $crate::member::Member {
                    name: $crate::member::plain(stringify!($member)),
                    doc: concat!($($member_doc),+).trim_ascii(),
                    shape: <$type as $crate::member::Field>::shape(),
                } ),+])
            }

            fn read(
                at: $crate::member::At<'_>,
                reading: &mut $crate::member::Reading,
            ) -> Result<Self, $crate::member::Misfit> {
                at.object(Self::NAMES, reading)?;
                Ok(Self { $(
                    $member: $crate::member::Field::read_member(at, $crate::member::plain(stringify!($member)), reading)?,
                )+ })
            }
        }

        /// Absent, it says nothing.
        impl $crate::member::Field for $name {
            fn shape() -> $crate::member::Shape {
                <Self as $crate::member::Read>::shape()
            }

            fn read_member(
                holder: $crate::member::At<'_>,
                name: &str,
                reading: &mut $crate::member::Reading,
            ) -> Result<Self, $crate::member::Misfit> {
                let found = <Option<Self> as $crate::member::Field>::read_member(holder, name, reading)?;
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

        impl $crate::member::Read for $name {
            fn shape() -> $crate::member::Shape {
                $crate::member::Shape::OneOf(Self::WORDS)
            }

            fn read(
                at: $crate::member::At<'_>,
                _: &mut $crate::member::Reading,
            ) -> Result<Self, $crate::member::Misfit> {
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

pub(crate) use {object, words};
