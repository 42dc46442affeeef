//! Debug output that shows only some parts of a value and keeps the others out of logs.

/// Implements [`Debug`](std::fmt::Debug) with only the listed parts.
///
/// An unlisted field is never shown, so a secret that is added later stays out of logs.
///
/// ```
/// struct Request {
///     id: u32,
///     token: String,
/// }
///
/// ichido_core::debug_only! {
///     /// Of the token only its length.
///     Request as request { id, token_bytes: request.token.len() }
/// }
/// let request = Request { id: 7, token: "secret".to_owned() };
/// assert_eq!(format!("{request:?}"), "Request { id: 7, token_bytes: 6, .. }");
/// ```
#[macro_export]
macro_rules! debug_only {
    (@part $this:ident $part:ident) => { $this.$part };
    (@part $this:ident $part:ident $value:expr) => { $value };
    ($(#[$about:meta])* $name:ident $(<$lifetime:lifetime>)? as $this:ident { $( $part:ident $(: $value:expr)? ),+ $(,)? }) => {
        $(#[$about])*
        impl ::std::fmt::Debug for $name $(<$lifetime>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $this = self;
                f.debug_struct(::std::stringify!($name))
                    $( .field(::std::stringify!($part), &$crate::debug_only!(@part $this $part $($value)?)) )+
                    .finish_non_exhaustive()
            }
        }
    };
}
