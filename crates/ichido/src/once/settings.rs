//! The validated settings of one protected operation.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};
use ichido_core::digest::BodyRules;
use ichido_core::fingerprint::Inputs;
use ichido_core::ledger::{OnUnknown, Policy, ProfileNumbers};
use ichido_store::Store;

use super::keeper::LeaseKeeper;
use super::reconcile::ReconcileFn;
use crate::handler_tx::Pool;

/// The limits of the layer.
pub mod limits {
    use std::time::Duration;

    /// The default for the largest request body.
    ///
    /// It is held in memory while the handler runs.
    pub const DEFAULT_MAX_REQUEST_BYTES: usize = 1 << 20;
    /// The default for the largest stored response body.
    pub const DEFAULT_MAX_RESPONSE_BYTES: usize = 1 << 20;
    /// The largest value of either setting.
    pub const MAX_BYTES: usize = 64 << 20;
    /// How long a response of unknown length may take by default.
    ///
    /// A longer one is a stream, whose body is not stored.
    pub const RESPONSE_WHOLE_WITHIN_DEFAULT: Duration = Duration::from_secs(1);
    /// The longest name of an operation.
    pub const MAX_OPERATION_BYTES: usize = 256;
    /// The longest name of an identity.
    pub const MAX_IDENTITY_BYTES: usize = 256;
    /// The most runs of a handler whose transaction conflicts with others.
    pub const MAX_RUNS: u32 = 4;
    /// How long to wait for a transaction that is locked after its handler ended.
    pub const TRANSACTION_WAIT: Duration = crate::handler_tx::TRANSACTION_WAIT;
    /// How long a handler waits for its transaction while another part of it holds the lock.
    pub const LOCK_WAIT: Duration = crate::handler_tx::LOCK_WAIT;
    /// How long the store may take before the request is answered without it.
    ///
    /// At most the lease.
    pub const MAX_STORE_WAIT: Duration = Duration::from_secs(10);
    /// The most attempts to settle while the store is unreachable after the effect.
    pub const MAX_SETTLE_ATTEMPTS: u32 = 200;
    /// The longest wait between two of these attempts.
    pub const MAX_SETTLE_WAIT: Duration = Duration::from_secs(5);
    /// How often one waiting duplicate polls for all of them, in case no wake-up arrives.
    pub const POLL_INTERVAL: Duration = Duration::from_millis(250);
    /// How often a request restarts when others keep changing its key.
    pub const MAX_ROUNDS: u32 = 8;
}

/// How an operation's outcome becomes durable (see [`ichido_core::ledger::OperationGuarantee`]).
#[derive(Clone, Debug)]
pub enum Guarantee {
    /// The handler writes in the provided transaction, in the store's own database.
    ///
    /// Outcome and writes commit together.
    Transactional(Pool),
    /// A repetition does no harm.
    ///
    /// After a lost outcome, the key is released, and the next request runs.
    Idempotent,
    /// The upstream deduplicates by key.
    ///
    /// A lost outcome is recovered by running again with the same key.
    Keyed,
    /// Neither: a lost outcome is unknown, and its key is held.
    None,
}

/// Why a request has no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// The caller is not authenticated: 401.
    Unauthenticated {
        /// How to authenticate (`WWW-Authenticate`).
        challenge: HeaderValue,
    },
    /// The caller is not allowed: 403.
    Forbidden,
    /// The header that names the identity is missing, empty or repeated: 403.
    HeaderMissing {
        /// The header.
        name: HeaderName,
    },
}

/// The identity of a request, and further inputs that are compared under the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    /// A stable name of the caller, never an address or the bytes of a token.
    pub identity: String,
    /// Inputs compared beyond the usual fingerprint.
    ///
    /// A request that differs in them is a different request.
    pub inputs: Option<Inputs>,
}

pub(crate) type CallerFn = Arc<dyn Fn(&Parts) -> Result<CallerIdentity, IdentityError> + Send + Sync>;
pub(crate) type OperationFn = Arc<dyn Fn(&Parts) -> Cow<'static, str> + Send + Sync>;

/// The name of an operation.
#[derive(Clone)]
pub(crate) enum OperationName {
    Named(Arc<str>),
    By(OperationFn),
}

impl OperationName {
    pub(crate) fn name_for(&self, parts: &Parts) -> String {
        match self {
            Self::Named(name) => (**name).to_owned(),
            Self::By(name_for) => name_for(parts).into_owned(),
        }
    }
}

pub(crate) struct Settings {
    pub(crate) keeper: LeaseKeeper,
    pub(crate) operation: OperationName,
    pub(crate) caller: CallerFn,
    pub(crate) policy: Arc<Policy>,
    /// Set only in transactional mode.
    pub(crate) pool: Option<Pool>,
    /// Whether the pool is known to lead to the store's database.
    pub(crate) pool_is_checked: AtomicBool,
    /// Whether a transactional handler needs a claim.
    pub(crate) claim_first: bool,
    /// Set only if the policy reconciles.
    pub(crate) reconcile: Option<ReconcileFn>,
    pub(crate) methods: Vec<Method>,
    pub(crate) rules: BodyRules,
    pub(crate) max_response_bytes: usize,
    pub(crate) response_whole_within: Duration,
    pub(crate) echo_key: bool,
}

impl Settings {
    pub(crate) fn store(&self) -> &Store {
        self.keeper.store()
    }

    /// Returns whether a key of unknown outcome is held: the next request under it does not run.
    pub(crate) fn holds_unknown(&self) -> bool {
        self.policy.on_unknown() != OnUnknown::RunAgain
    }

    /// Returns how long a request waits for the store.
    ///
    /// After the lease, a claim is useless.
    pub(crate) fn store_wait(&self) -> Duration {
        self.policy.lease().min(limits::MAX_STORE_WAIT)
    }

    pub(crate) fn numbers(&self) -> ProfileNumbers {
        self.policy.profile().numbers()
    }
}

ichido_core::debug_only! {
    Settings as settings { policy }
}
