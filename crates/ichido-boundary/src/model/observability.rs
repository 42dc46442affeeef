//! What is logged and traced.

use super::Redaction;
use crate::member::{object, words};

object! {
    /// What is logged and traced.
    Observability {
        /// The headers and fields that are kept out of the logs: their names, in a list or in an object of any form.
        redaction: Option<Redaction>,
        /// What happens to `x-request-id`: `keep` (create one if it is missing) or `new`. Default: `keep`.
        request_id: Option<RequestId>,
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

words! {
    /// What happens to `traceparent` and `tracestate`.
    Traceparent {
        /// They are passed on unchanged.
        Pass = "pass",
        /// They are removed.
        Drop = "drop",
    }
}
