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
