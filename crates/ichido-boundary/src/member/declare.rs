//! How the model declares its objects and words: the type, its shape and its reader in one place.

/// The name of a field that Rust reserves (`r#type`), as JSON has it.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at("r#".len()).1,
        _ => name,
    }
}

/// The members of an object of the dialect: a struct whose fields they are, and how they are read.
macro_rules! members {
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

            fn members() -> Vec<$crate::member::Member> {
                vec![$( $crate::member::Member {
                    name: $crate::member::plain(stringify!($member)),
                    doc: concat!($($member_doc),+).trim_ascii(),
                    shape: <$type as $crate::member::Read>::shape(),
                } ),+]
            }

            fn read_members(
                at: $crate::member::At<'_>,
                reading: &mut $crate::member::Reading,
            ) -> Result<Self, $crate::member::Misfit> {
                Ok(Self { $(
                    $member: $crate::member::Read::read_member(at, $crate::member::plain(stringify!($member)), reading)?,
                )+ })
            }
        }
    };
}

/// An object of the dialect that is read member by member.
macro_rules! object {
    ($(#[doc = $doc:literal])+ $name:ident $members:tt) => {
        $crate::member::members! { $(#[doc = $doc])+ $name $members }

        impl $crate::member::Read for $name {
            fn shape() -> $crate::member::Shape {
                $crate::member::Shape::Object(Self::members())
            }

            fn read(
                at: $crate::member::At<'_>,
                reading: &mut $crate::member::Reading,
            ) -> Result<Self, $crate::member::Misfit> {
                at.object(Self::NAMES, reading)?;
                Self::read_members(at, reading)
            }
        }
    };
}

/// A closed set of words: an enum, and how each is spelled.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident $words:tt) => {
        ichido_core::words! {
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name $words
        }
        $crate::member::one_of! { $name }
    };
}

/// How an enum of words is read.
macro_rules! one_of {
    ($name:ty) => {
        impl $crate::member::Read for $name {
            fn shape() -> $crate::member::Shape {
                $crate::member::Shape::OneOf(&Self::WORDS)
            }

            fn read(
                at: $crate::member::At<'_>,
                _: &mut $crate::member::Reading,
            ) -> Result<Self, $crate::member::Misfit> {
                at.one_of(&Self::ALL, Self::as_str)
            }
        }
    };
}

pub(crate) use {members, object, one_of, words};
