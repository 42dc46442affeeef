//! What is logged and traced.

use super::Redaction;
use crate::member::{object, words};

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
    /// What happens to `x-request-id`.
    RequestId {
        /// The received one is passed on; if there is none, one is created.
        Keep = "keep",
        /// A new one is created for every request.
        New = "new",
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
