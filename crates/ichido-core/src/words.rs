//! Closed sets of words: an enum whose values have stable names.

/// Declares an enum whose values have stable names, with `ALL`, `WORDS`, `as_str` and [`Display`](std::fmt::Display).
///
/// ```
/// ichido_core::words! {
///     /// What came of it.
///     #[derive(Clone, Copy)]
///     pub enum Answer {
///         /// It was done.
///         Yes = "yes",
///         /// It was not.
///         No = "no",
///     }
/// }
/// assert_eq!(Answer::ALL.map(Answer::as_str), Answer::WORDS);
/// assert_eq!(Answer::No.to_string(), "no");
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])+ pub enum $name:ident { $( $(#[$about:meta])+ $variant:ident = $word:literal, )+ }) => {
        $(#[$meta])+
        pub enum $name { $( $(#[$about])+ $variant, )+ }

        impl $name {
            /// All of them, in order.
            pub const ALL: [Self; [$( $word ),+].len()] = [$( Self::$variant ),+];

            /// Their names, in the same order.
            pub const WORDS: [&'static str; [$( $word ),+].len()] = [$( $word ),+];

            /// The stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
