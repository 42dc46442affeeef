//! What is logged and traced.

use crate::boundary::member::{At, Misfit, Read, Reading, Shape, object, words};
use crate::json::Value;

object! {
    /// What is logged and traced.
    Observability {
        /// What is kept out of logs: names of headers and fields, in a list or an object of any form.
        redaction: Option<Redaction>,
        /// What becomes of `x-request-id` here: `keep` (make one where none came) or `new`. Without it, `keep`.
        request_id: Option<RequestId>,
        /// What becomes of `traceparent` and `tracestate` here: `pass` or `drop`. Without it, `pass`.
        traceparent: Option<Traceparent>,
    }
}

words! {
    /// What becomes of `x-request-id`.
    RequestId {
        /// The one that came is passed on; where none came, one is made.
        Keep = "keep",
        /// One is made for every request, whatever came.
        New = "new",
    }
}

words! {
    /// What becomes of `traceparent` and `tracestate`.
    Traceparent {
        /// They are passed on as they came.
        Pass = "pass",
        /// They are taken out.
        Drop = "drop",
    }
}

/// What is kept out of logs: every text and every name that stands anywhere in the member.
///
/// Files write this in many forms; which of them a logger reads is not ours to say, so only the names are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction(pub Vec<String>);

impl Redaction {
    /// Whether it names the header or field. Case does not matter.
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().any(|one| one.eq_ignore_ascii_case(name))
    }
}

impl Read for Redaction {
    fn shape() -> Shape {
        Shape::Any
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        let mut found = Vec::new();
        gather(at.value(), &mut found);
        at.count(found.len())?;
        Ok(Self(found))
    }
}

/// Recurses no deeper than the reader of JSON lets a text go.
fn gather(value: Value<'_, '_>, found: &mut Vec<String>) {
    found.extend(value.as_str().map(std::borrow::Cow::into_owned));
    for (name, member) in value.members() {
        found.push(name.into_owned());
        gather(member, found);
    }
    for element in value.elements() {
        gather(element, found);
    }
}
