//! How the model declares its objects and words: the type, its schema and its reader in one place.

/// Returns the JSON name of a field whose name Rust reserves (`r#type`).
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at("r#".len()).1,
        _ => name,
    }
}

/// Declares the members of an object of the dialect.
///
/// It generates a struct with a field for each member, and their reader.
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
                    schema: <$type as $crate::member::FromJson>::schema(),
                } ),+]
            }

            fn read_members(
                at: $crate::member::LocatedValue<'_>,
                context: &mut $crate::member::ReadContext,
            ) -> Self {
                Self { $(
                    $member: $crate::member::FromJson::read_member(at, $crate::member::plain(stringify!($member)), context),
                )+ }
            }
        }
    };
}

/// Declares an object of the dialect that is read member by member.
macro_rules! object {
    ($(#[doc = $doc:literal])+ $name:ident $members:tt) => {
        $crate::member::members! { $(#[doc = $doc])+ $name $members }

        impl $crate::member::FromJson for $name {
            fn schema() -> $crate::member::Schema {
                $crate::member::Schema::Object(Self::members())
            }

            fn read(
                at: $crate::member::LocatedValue<'_>,
                context: &mut $crate::member::ReadContext,
            ) -> Result<Self, $crate::member::InvalidValue> {
                at.object(Self::NAMES, context)?;
                Ok(Self::read_members(at, context))
            }
        }
    };
}

/// Declares a closed set of words: an enum, and how each value is spelled, with other words for the same values.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident $words:tt $( $alias:literal = $variant:ident, )*) => {
        ichido_core::words! {
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name $words
        }
        $crate::member::one_of! { $name $(, $alias = $variant )* }
    };
}

/// Implements the reader of an enum of words.
macro_rules! one_of {
    ($name:ty $(, $alias:literal = $variant:ident )*) => {
        impl $crate::member::FromJson for $name {
            fn schema() -> $crate::member::Schema {
                const ALIASES: &[&str] = &[$( $alias ),*];
                let words = $crate::member::Schema::OneOf(&Self::WORDS);
                match ALIASES {
                    [] => words,
                    _ => $crate::member::Schema::AnyOf(vec![words, $crate::member::Schema::OneOf(ALIASES)]),
                }
            }

            fn read(
                at: $crate::member::LocatedValue<'_>,
                _: &mut $crate::member::ReadContext,
            ) -> Result<Self, $crate::member::InvalidValue> {
                at.one_of(&Self::ALL, Self::as_str, &[$( ($alias, Self::$variant) ),*])
            }
        }
    };
}

pub(crate) use {members, object, one_of, words};
