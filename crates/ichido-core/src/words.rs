//! Closed sets of words: enums whose values have stable names.

/// Declares an enum whose values have stable names, with `ALL`, `WORDS`, `as_str`, `parse` and [`Display`](std::fmt::Display).
///
/// ```
/// ichido_core::words! {
///     /// What came of it.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Answer {
///         /// It was done.
///         Written = "yes",
///         /// It was not.
///         No = "no",
///     }
/// }
/// assert_eq!(Answer::ALL.map(Answer::as_str), Answer::WORDS);
/// assert_eq!(Answer::No.to_string(), "no");
/// assert_eq!((Answer::parse("no"), Answer::parse("No")), (Some(Answer::No), None));
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])+ $vis:vis enum $name:ident { $( $(#[$about:meta])* $variant:ident = $word:literal, )+ }) => {
        $(#[$meta])+
        $vis enum $name { $( $(#[$about])* $variant, )+ }

        #[allow(dead_code, reason = "not every set of words is listed and read")]
        impl $name {
            /// All values, in order.
            $vis const ALL: [Self; [$( $word ),+].len()] = [$( Self::$variant ),+];

            /// The names, in the same order.
            $vis const WORDS: [&'static str; [$( $word ),+].len()] = [$( $word ),+];

            /// Returns the stable name.
            $vis const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }

            /// Returns the value with this name, or `None` for any other text.
            $vis fn parse(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
