//! Reads requests: caller, path, query and body, each within its limit.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use ichido_core::settings::size;
use ichido_http::server::body::{BodyError, BoxError};
use ichido_http::server::permits::Permit;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use uuid::Uuid;

use super::api::ApiState;
use super::caller::ApiCaller;
use super::problem::{Code, Problem};

/// The variable segment of a path, decoded.
pub(super) struct Segment(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(segment)| Self(segment)).map_err(|_| unknown_route())
    }
}

pub(super) fn unknown_route() -> Problem {
    Problem::new(Code::RouteUnknown, "the path does not exist; /openapi.json lists all paths")
}

/// A request whose caller has the role `R`, with the query parameters `Q`.
pub(super) struct AuthorizedRequest<R, Q = NoParameters> {
    pub(super) api: Arc<ApiState>,
    pub(super) caller: ApiCaller,
    pub(super) query: Q,
    right: PhantomData<R>,
}

/// The role that a caller needs before more of its request is read.
pub(super) trait RequiredRole {
    fn check(caller: &ApiCaller) -> Result<(), Problem>;
}

/// Any caller: the handler checks the permissions itself.
pub(super) struct Anyone;
/// A caller who may see everything.
pub(super) struct Viewer;
/// A caller who may change things.
pub(super) struct Operator;

impl RequiredRole for Anyone {
    fn check(_: &ApiCaller) -> Result<(), Problem> {
        Ok(())
    }
}

impl RequiredRole for Viewer {
    fn check(caller: &ApiCaller) -> Result<(), Problem> {
        caller.require_viewer()
    }
}

impl RequiredRole for Operator {
    fn check(caller: &ApiCaller) -> Result<(), Problem> {
        caller.require_operator()
    }
}

/// The query of an operation without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

impl<R: RequiredRole, Q: DeserializeOwned> FromRequestParts<Arc<ApiState>> for AuthorizedRequest<R, Q> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<ApiState>) -> Result<Self, Problem> {
        // `guard` inserts it before every route except the public ones.
        let caller = parts.extensions.get::<ApiCaller>().cloned().ok_or_else(unknown_route)?;
        R::check(&caller)?;
        let query = parse_query(&parts.uri)?;
        Ok(Self { api: Arc::clone(api), caller, query, right: PhantomData })
    }
}

/// Parses the parameters of a query, each known and given once.
pub(super) fn parse_query<Q: DeserializeOwned>(uri: &Uri) -> Result<Q, Problem> {
    Q::deserialize(MapAccessDeserializer::new(Parameters { rest: query_pairs(uri)?.into_iter(), next: None }))
}

struct Parameters {
    rest: std::vec::IntoIter<(String, String)>,
    next: Option<(String, String)>,
}

impl<'de> MapAccess<'de> for Parameters {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        self.next = self.rest.next();
        let name = self.next.as_ref().map(|(name, _)| name.as_str().into_deserializer());
        name.map(|name: StrDeserializer<'_, Problem>| seed.deserialize(name)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let (name, value) = self.next.take().unwrap_or_default();
        seed.deserialize(Parameter(value)).map_err(|problem| problem.about(&name))
    }
}

/// The value of a parameter.
struct Parameter(String);

impl<'de> Deserializer<'de> for Parameter {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_bool(self.0.parse().map_err(|_| Problem::custom("must be true or false"))?)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// Returns the names and values of a query.
///
/// Invalid UTF-8 is refused: with replacement characters, it would match something else.
pub(super) fn query_pairs(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let query = uri.query().unwrap_or_default();
    let mut pairs = Vec::new();
    let mut at = 0;
    for part in query.split('&') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        if !part.is_empty() {
            pairs.push((percent_decode(name, at)?, percent_decode(value, at + name.len() + 1)?));
        }
        at += part.len() + 1;
    }
    Ok(pairs)
}

/// Decodes one name or value of a form; `at` is its position in the query.
fn percent_decode(text: &str, at: usize) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    // The position in the text of each decoded byte.
    let mut places = Vec::with_capacity(text.len());
    let mut index = 0;
    while let Some(byte) = text.as_bytes().get(index) {
        places.push(index);
        let escaped = text.get(index + 1..index + 3).filter(|_| *byte == b'%');
        let escaped = escaped.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let plain = if *byte == b'+' { b' ' } else { *byte };
        bytes.push(escaped.unwrap_or(plain));
        index += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8(bytes).map_err(|error| {
        let wrong = places.get(error.utf8_error().valid_up_to()).copied().unwrap_or_default();
        let detail = format!(
            "the decoded query is not UTF-8 from character {} on; encode text as UTF-8 before percent-encoding it",
            at + wrong + 1
        );
        Problem::new(Code::ParameterInvalid, detail)
    })
}

/// Refuses an encoded body, which is never decoded here.
pub(super) fn reject_encoded(headers: &HeaderMap) -> Result<(), Problem> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let detail = "the body has a Content-Encoding, which is not supported; send the body without encoding";
    Err(Problem::new(Code::MediaTypeUnsupported, detail))
}

/// Reads a whole body.
///
/// A body that announces that it is too large is refused at once, and one without enough memory is not read; a small one may do
/// without a permit for its memory.
pub(super) async fn read_body(
    headers: &HeaderMap,
    mut body: Body,
    max_bytes: usize,
    mut permit: Option<&mut Permit<Uuid>>,
) -> Result<Vec<u8>, Problem> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > max_bytes as u64) {
        return Err(too_large(max_bytes));
    }
    let mut take = |bytes: usize| match &mut permit {
        Some(permit) => permit.try_grow(bytes).map_err(|full| Problem::from_body(BodyError::NoMemory(full))),
        None => Ok(()),
    };
    // Takes the announced size at once, so a body that was begun can be finished.
    let mut permitted = body.size_hint().exact().and_then(|exact| usize::try_from(exact).ok()).unwrap_or(0);
    take(permitted)?;
    // Copied into one buffer as it arrives: each small piece would keep the whole buffer alive that it arrived in.
    let mut buffer = Vec::with_capacity(permitted);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::from_body(body_fault(error.into())))?;
        let data = frame.into_data().unwrap_or_default();
        let length = buffer.len() + data.len();
        if max_bytes < length {
            return Err(too_large(max_bytes));
        }
        take(length.saturating_sub(permitted))?;
        permitted = permitted.max(length);
        buffer.extend_from_slice(&data);
    }
    Ok(buffer)
}

pub(super) fn too_large(max_bytes: usize) -> Problem {
    let most = size::format_in_text(max_bytes);
    let detail = format!("the body has more than {most}; nothing was done; send less, or a reference to it");
    Problem::new(Code::BodyTooLarge, detail)
}

/// Returns what went wrong with a body, unwrapped from axum's error.
pub(super) fn body_fault(error: BoxError) -> BodyError {
    let inner = match error.downcast::<axum::Error>() {
        Ok(wrapped) => wrapped.into_inner(),
        Err(error) => error,
    };
    // A body returns no other errors; if it did, the body would be incomplete too.
    inner.downcast::<BodyError>().map_or(BodyError::Cut, |fault| *fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Vec<(String, String)>, Problem> {
        query_pairs(&format!("/v1/messages?{query}").parse().expect("a target"))
    }

    #[test]
    fn a_query_is_parsed_like_a_form() {
        for query in [
            "",
            "a",
            "a=",
            "=b",
            "a=b=c&&a=%26&b",
            "a+b=%2B+%2b",
            "%C3%A4=%e2%82%ac",
            "a=%",
            "a=%4",
            "a=%zz%41",
        ] {
            let other: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect();
            assert_eq!(read(query).expect("text"), other, "{query:?}");
        }
    }

    #[test]
    fn invalid_utf8_in_a_query_is_refused_with_its_position() {
        for (query, place) in [
            ("identity=%ff", 10),
            ("limit=1&identity=a%C3", 19),
            ("%c3%28=1", 1),
            ("a=%e2%82", 3),
            ("a=1&%ff", 5),
        ] {
            let problem = read(query).expect_err("no text");
            assert_eq!(problem.code, Code::ParameterInvalid);
            assert!(
                problem.detail.contains(&format!(" character {place} on")),
                "{query}: {}",
                problem.detail
            );
        }
    }
}
