//! The model: what a boundary file says, member by member, with the file's names.
//!
//! A field has the name of its member. `None`, or a struct with only `None`, means that the file does not say; the
//! methods next to the fields return what then applies.

mod adapter;
mod body;
mod claim;
mod encoding;
mod headers;
mod http;
mod idempotency;
mod identity;
mod input;
mod observability;
mod owner;
mod reaction;
mod redaction;
mod require_key;
mod retry;

pub use adapter::{Guarantee, Identity, IdentitySource, Operation, OperationClass};
pub use body::BodyRulesError;
pub use claim::{ClaimPath, MAX_CLAIM_DEPTH};
pub use encoding::{EncodingRuleMembers, EncodingRules};
pub use headers::{Cors, Crossing, HeaderLists, HeaderSteps, Headers, Items, Traffic};
pub use http::{Http, Methods, Timeouts};
pub use idempotency::{Idempotency, IdempotencyMembers, Mode, ValidateOnly};
pub use identity::{IdentityError, IdentityNames, IdentityRule, MAX_IDENTITY_CLAIMS};
pub use input::{FingerprintInput, InputError, is_portable};
pub use observability::{Observability, RequestId, RequestIdHandling, Traceparent};
pub use owner::{
    BodyHash, ConflictRule, Enabled, Encoding, Fingerprint, InFlightLock, Input, Length, ResponseReplay,
    Storage, Ttl, WhileInFlight,
};
pub use reaction::Reaction;
pub use redaction::Redaction;
pub use require_key::{KeyRequirement, RequireKey, RouteOperations};
pub use retry::{Backoff, Retry, RetryGate, RetryPlan};

pub(super) use headers::{HOP_BY_HOP, applies, is_token, list_pointer, malformed_names, traffic};

use super::member::{NamedValues, object, words};

words! {
    /// The boundary that a file is about, in order from the browser.
    Name {
        /// The browser sends, the BFF receives.
        BrowserToBff = "browser_to_bff",
        /// The BFF sends, the gateway receives.
        BffToGateway = "bff_to_gateway",
        /// The gateway sends, the adapter receives.
        GatewayToAdapter = "gateway_to_adapter",
        /// The adapter sends, the service with the side effect receives.
        Adapter = "adapter",
    }
    "adapter_to_external" = Adapter,
}

ichido_core::words! {
    /// The parties at the two ends of a boundary, with their names in boundaries and directions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Party {
        /// Where the person is and the key is created.
        Browser = "browser",
        /// The backend for the frontend.
        Bff = "bff",
        /// The gateway.
        Gateway = "gateway",
        /// The last component before the side effect: it alone completes idempotency.
        // SPEC C2.
        Adapter = "adapter",
        /// Where the side effect happens.
        Service = "service",
    }
}

impl Name {
    // A boundary is between two neighbours, and both enums start at the browser.
    /// Returns the party that sends across this boundary.
    pub const fn sender(self) -> Party {
        Party::ALL[self as usize]
    }

    /// Returns the party that receives across this boundary.
    pub const fn receiver(self) -> Party {
        Party::ALL[self as usize + 1]
    }
}

object! {
    /// Everything that a file says.
    Members {
        /// The boundary that the file describes.
        boundary: Option<Name>,
        /// Methods, idempotency, retries and timeouts.
        http: Http,
        /// The headers that pass, by direction: `inbound`, `outbound`, `bff_outbound`, `gateway_inbound` and so on. A
        /// direction whose name contains `response`, and `outbound` in `browser_to_bff`, applies to responses, any other to
        /// requests.
        headers: Headers,
        /// The headers that pages on other origins may send and read. Default: only pages of the same origin call.
        cors: Option<Cors>,
        /// Logs and traces.
        observability: Observability,
        /// Adapter only: the caller's identity, for operations without their own.
        identity: Option<Identity>,
        /// Adapter only: the operations, by name.
        operations: Option<NamedValues<Operation>>,
    }
}

impl Members {
    /// Takes the state-changing methods from the key's requirement, if the file lists them only there.
    pub(super) fn derive_methods(&mut self) {
        let required =
            self.http.idempotency.key_requirement().and_then(|required| required.apply_to_methods.clone());
        self.http.methods.state_changing = self.http.methods.state_changing.take().or(required);
    }
}
