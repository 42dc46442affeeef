//! What is logged and traced.

use ichido_core::json::Kind;

use super::{Name, Redaction};
use crate::member::{FromJson, InvalidValue, LocatedValue, ReadContext, Schema, members, object, words};

object! {
    /// What is logged and traced.
    Observability {
        /// The headers and fields that are kept out of the logs: their names, in a list or in an object of any form.
        redaction: Option<Redaction>,
        /// What happens to `x-request-id`: `keep` (create one if it is missing) or `new`, or an object. Default: `new` in
        /// `browser_to_bff`, because a browser is not trusted, and `keep` elsewhere.
        request_id: Option<RequestIdHandling>,
        /// What happens to `traceparent` and `tracestate`: `pass` or `drop`. Default: `pass`.
        traceparent: Option<Traceparent>,
    }
}

words! {
    /// What happens to `x-request-id`.
    RequestId {
        /// The received one is passed on; if there is none, one is created.
        Keep = "keep",
        /// A new one is created for every request.
        New = "new",
    }
}

members! {
    /// What happens to `x-request-id`, in detail.
    RequestIdHandling {
        /// The header: `x-request-id`.
        header: Option<String>,
        /// Whether the sender's id is kept (`keep`) or replaced (`new`). Default: kept, except that of a browser.
        trust_inbound: Option<bool>,
        /// Whether an id is created if there is none: true.
        generate_if_missing: Option<bool>,
    }
}

impl FromJson for RequestIdHandling {
    fn schema() -> Schema {
        Schema::AnyOf(vec![RequestId::schema(), Schema::Object(Self::members())])
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        match at.kind() {
            Kind::String => {
                let trust_inbound = Some(RequestId::read(at, context)? == RequestId::Keep);
                Ok(Self { trust_inbound, ..Self::default() })
            }
            Kind::Object => {
                at.object(Self::NAMES, context)?;
                Ok(Self::read_members(at, context))
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::Array => Err(at.mismatch(&format!(
                "one of {}, or an object with trust_inbound",
                RequestId::WORDS.join(", ")
            ))),
        }
    }
}

impl Observability {
    /// Returns what the receiver at this boundary does with `x-request-id`.
    // SPEC C5.
    pub fn request_id_at(&self, name: Name) -> RequestId {
        let trusts = self.request_id.as_ref().and_then(|handling| handling.trust_inbound);
        if trusts.unwrap_or(name != Name::BrowserToBff) { RequestId::Keep } else { RequestId::New }
    }
}

words! {
    /// What happens to `traceparent` and `tracestate`.
    Traceparent {
        /// They are passed on unchanged.
        Pass = "pass",
        /// They are removed.
        Drop = "drop",
    }
}
