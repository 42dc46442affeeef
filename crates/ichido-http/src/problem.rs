//! Refusals as problem details (RFC 9457) with stable codes.
//!
//! Guarantee: every code has one name, one status and one title, and no cache stores a problem. A service declares
//! its codes with [`problems!`](crate::problems), which defines its own `Problem` type, so it can implement `From`
//! and `IntoResponse` for it.

use std::time::Duration;

pub use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
pub use http::{Extensions, HeaderName, HeaderValue, Response, StatusCode};
use ichido_core::key::KeyError;
pub use ichido_core::words;
pub use serde_json::Value;
use serde_json::json;

/// The value of `X-Content-Type-Options`: the content type is what it says.
pub const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Picks the code of a key error: missing, different from the body's, or invalid.
pub const fn code_of_key<C: Copy>(error: KeyError, missing: C, disagrees: C, invalid: C) -> C {
    match error {
        KeyError::Missing => missing,
        KeyError::BodyDisagrees => disagrees,
        KeyError::Empty
        | KeyError::TooLong { .. }
        | KeyError::FieldTooLong { .. }
        | KeyError::NotVisible { .. }
        | KeyError::BadQuoting
        | KeyError::ManyLines { .. }
        | KeyError::HeadersDisagree => invalid,
    }
}

/// Builds the members that every problem has.
pub fn members(space: &str, code: &str, title: &str, status: StatusCode, detail: &str) -> Value {
    json!({
        "type": format!("{space}{code}"),
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
        "code": code,
    })
}

/// Builds a `Retry-After` field in whole seconds, at least one and never less than `wait`.
pub fn retry_after(wait: Duration) -> (HeaderName, HeaderValue) {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() != 0));
    (RETRY_AFTER, HeaderValue::from(seconds.max(1)))
}

/// Builds the response with this body. A 401 without a challenge asks for a bearer token.
pub fn response(status: StatusCode, body: &Value, fields: Vec<(HeaderName, HeaderValue)>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.extend(fields);
    if status == StatusCode::UNAUTHORIZED {
        headers.entry(WWW_AUTHENTICATE).or_insert(HeaderValue::from_static("Bearer"));
    }
    response
}

/// Declares the `Code` and `Problem` types of a service.
///
/// Each code has a name, a status and a title; the prefix of `type` is common to all.
///
/// ```
/// ichido_http::problems! {
///     pub enum Code in "urn:shop:problem:" {
///         /// There is no such order.
///         OrderUnknown = "order_unknown", NOT_FOUND, "There is no such order";
///     }
/// }
/// let problem = Problem::new(Code::OrderUnknown, "no order has this id").with("id", 7.into());
/// assert_eq!((problem.status.as_u16(), &problem.to_json()["type"]), (404, &"urn:shop:problem:order_unknown".into()));
/// assert_eq!(problem.response().headers()["content-type"], "application/problem+json");
/// ```
#[macro_export]
macro_rules! problems {
    ($vis:vis enum Code in $space:literal {
        $( $(#[$about:meta])* $name:ident = $word:literal, $status:ident, $title:literal; )+
    }) => {
        $crate::problem::words! {
            /// Why a request is refused, as one word that programs compare.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            $vis enum Code { $( $(#[$about])* $name = $word, )+ }
        }

        impl Code {
            /// The status of the response, unless a problem says otherwise.
            $vis const fn status(self) -> $crate::problem::StatusCode {
                match self { $( Self::$name => $crate::problem::StatusCode::$status, )+ }
            }

            /// The code in words; it does not change from case to case.
            $vis const fn title(self) -> &'static str {
                match self { $( Self::$name => $title, )+ }
            }
        }

        /// One refusal.
        #[derive(Clone, Debug)]
        $vis struct Problem {
            /// The status of the response.
            $vis status: $crate::problem::StatusCode,
            /// Its code.
            $vis code: Code,
            /// What is wrong with this request, and how to fix it. It shows nothing of what is stored.
            $vis detail: ::std::borrow::Cow<'static, str>,
            /// Further members, for programs.
            $vis members: ::std::vec::Vec<(&'static str, $crate::problem::Value)>,
            /// Further header fields.
            $vis fields: ::std::vec::Vec<($crate::problem::HeaderName, $crate::problem::HeaderValue)>,
            /// The extensions of the response, for layers around the handler.
            $vis extensions: $crate::problem::Extensions,
        }

        #[allow(dead_code, reason = "not every service adds to its problems")]
        impl Problem {
            /// A refusal with the status of its code.
            $vis fn new(code: Code, detail: impl Into<::std::borrow::Cow<'static, str>>) -> Self {
                let (members, fields) = (::std::vec::Vec::new(), ::std::vec::Vec::new());
                let extensions = $crate::problem::Extensions::new();
                Self { status: code.status(), code, detail: detail.into(), members, fields, extensions }
            }

            /// Replaces the status.
            $vis fn under(self, status: $crate::problem::StatusCode) -> Self {
                Self { status, ..self }
            }

            /// Adds a member, or replaces it.
            $vis fn with(mut self, name: &'static str, value: $crate::problem::Value) -> Self {
                self.members.push((name, value));
                self
            }

            /// Adds a header field.
            $vis fn with_field(
                mut self,
                name: $crate::problem::HeaderName,
                value: $crate::problem::HeaderValue,
            ) -> Self {
                self.fields.push((name, value));
                self
            }

            /// Says when to send the request again.
            $vis fn after(mut self, wait: ::std::time::Duration) -> Self {
                self.fields.push($crate::problem::retry_after(wait));
                self
            }

            /// The body.
            $vis fn to_json(&self) -> $crate::problem::Value {
                let (code, title) = (self.code.as_str(), self.code.title());
                let mut body = $crate::problem::members($space, code, title, self.status, &self.detail);
                for (name, value) in &self.members {
                    body[*name] = value.clone();
                }
                body
            }

            /// The response, which no cache stores.
            $vis fn response(self) -> $crate::problem::Response<$crate::problem::Bytes> {
                let mut response = $crate::problem::response(self.status, &self.to_json(), self.fields);
                *response.extensions_mut() = self.extensions;
                response
            }
        }

        impl ::std::fmt::Display for Problem {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.detail)
            }
        }

        impl ::std::error::Error for Problem {}
    };
}
