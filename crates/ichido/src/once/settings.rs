//! The settings of one protected operation, complete and free of contradictions.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Method};
use ichido_core::digest::BodyRules;
use ichido_core::fingerprint::Inputs;
use ichido_core::ledger::{Policy, ProfileNumbers};
use ichido_store::Store;
use sqlx::{PgPool, SqlitePool};

use super::keeper::Keeper;
use super::reconcile::ReconcileFn;

/// The bounds of the layer.
pub mod limits {
    use std::time::Duration;

    /// The largest request body, unless the operation says otherwise. It is held in memory while the handler runs.
    pub const REQUEST_BYTES_MAX_DEFAULT: usize = 1 << 20;
    /// The largest response body that is kept, unless the operation says otherwise.
    pub const RESPONSE_BYTES_MAX_DEFAULT: usize = 1 << 20;
    /// The largest bound that may be set on either.
    pub const BYTES_MAX: usize = 64 << 20;
    /// How long a response of unknown length may take to end; one that goes on is a stream, and its body is not kept.
    pub const RESPONSE_WHOLE_WITHIN_DEFAULT: Duration = Duration::from_secs(1);
    /// The longest name of an operation.
    pub const OPERATION_BYTES_MAX: usize = 256;
    /// The longest name of an identity.
    pub const IDENTITY_BYTES_MAX: usize = 256;
    /// How often a handler is run in all when its transaction meets others.
    pub const RUNS_MAX: u32 = 4;
    /// How long a handler's transaction is waited for when the handler has ended and somebody still holds it.
    pub const TRANSACTION_WAIT: Duration = Duration::from_secs(2);
    /// How long a handler waits for its own transaction while another part of it holds it.
    pub const LOCK_WAIT: Duration = Duration::from_secs(30);
    /// How long the store may take to say anything before the request is answered without it: so long, or the lease if that is
    /// shorter.
    pub const STORE_WAIT_MAX: Duration = Duration::from_secs(10);
    /// How often a settle is tried when the store is away after the effect.
    pub const SETTLE_TRIES_MAX: u32 = 200;
    /// The longest wait between two of these tries.
    pub const SETTLE_WAIT_MAX: Duration = Duration::from_secs(5);
    /// How often one of the duplicates that wait for a key looks for all of them, should no wake-up reach it.
    pub const LOOK_EVERY: Duration = Duration::from_millis(250);
    /// How often a request that keeps meeting others on its key starts over.
    pub const ROUNDS_MAX: u32 = 8;
}

/// How an operation's outcome becomes durable (see [`ichido_core::ledger::EffectMode`]).
#[derive(Clone, Debug)]
pub enum Effect {
    /// The handler writes in the transaction that it is given, in the store's own database; outcome and writes commit together.
    Transactional(Pool),
    /// What the handler calls honours the key: a lost outcome is had by running again with the same key.
    Keyed,
    /// Neither: a lost outcome is unknown, and held.
    Opaque,
}

/// Connections of the service's own, to the database that the store is in.
#[derive(Clone, Debug)]
pub enum Pool {
    /// To PostgreSQL.
    Postgres(PgPool),
    /// To an SQLite file.
    Sqlite(SqlitePool),
}

impl From<PgPool> for Pool {
    fn from(pool: PgPool) -> Self {
        Self::Postgres(pool)
    }
}

impl From<SqlitePool> for Pool {
    fn from(pool: SqlitePool) -> Self {
        Self::Sqlite(pool)
    }
}

/// Why nobody knows who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoIdentity {
    /// The caller did not prove who it is: 401.
    Unauthenticated {
        /// How it could (`WWW-Authenticate`).
        challenge: HeaderValue,
    },
    /// The caller may not ask: 403.
    Forbidden,
}

/// Who sent a request, and what else tells it from others under the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// A stable name of the caller, never an address or the bytes of a token.
    pub identity: String,
    /// What is compared beyond what every fingerprint has; a request that differs in it is a different request.
    pub inputs: Option<Inputs>,
}

pub(crate) type CallerFn = Arc<dyn Fn(&Parts) -> Result<Caller, NoIdentity> + Send + Sync>;
pub(crate) type OperationFn = Arc<dyn Fn(&Parts) -> Cow<'static, str> + Send + Sync>;

/// What an operation is called.
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
    pub(crate) keeper: Keeper,
    pub(crate) operation: OperationName,
    pub(crate) caller: CallerFn,
    pub(crate) policy: Arc<Policy>,
    /// Set in transactional mode, and only there.
    pub(crate) pool: Option<Pool>,
    /// Set where the policy says to reconcile, and only there.
    pub(crate) reconcile: Option<ReconcileFn>,
    pub(crate) methods: Vec<Method>,
    pub(crate) rules: BodyRules,
    pub(crate) response_bytes_max: usize,
    pub(crate) response_whole_within: Duration,
    pub(crate) echo_key: bool,
}

impl Settings {
    pub(crate) fn store(&self) -> &Store {
        self.keeper.store()
    }

    /// How long a request waits for the store. After its lease a claim would be of no use.
    pub(crate) fn store_wait(&self) -> Duration {
        self.policy.lease().min(limits::STORE_WAIT_MAX)
    }

    pub(crate) fn numbers(&self) -> ProfileNumbers {
        self.policy.profile().numbers()
    }
}

ichido_core::debug_only! {
    Settings as settings { policy }
}
