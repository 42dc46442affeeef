//! An endpoint that takes effect once, however often it is called.
//!
//! Guarantee: of all requests with the same key, operation and identity, one takes effect. The others receive its outcome, wait for
//! it, or learn why they cannot have it. A different request under the same key is refused and learns nothing. The handler
//! runs in its own task, so a client that disconnects does not interrupt it: a request leaves either no effect and a free
//! key, or its effect and a stored outcome. An unknown outcome is never guessed. Keys and payloads are never logged.
//!
//! ```
//! # use axum::{Router, http::HeaderName, routing::post};
//! # use ichido::prelude::*;
//! # async fn app(ichido: Ichido<Postgres>) -> Result<Router, Box<dyn std::error::Error>> {
//! async fn create(tx: Tx<Postgres>) -> Result<&'static str, String> {
//!     let mut connection = tx.lock().await.map_err(|error| error.to_string())?;
//!     let insert = sqlx::query("INSERT INTO bookmarks (url) VALUES ('https://example.org')");
//!     insert.execute(&mut *connection).await.map_err(|error| error.to_string())?;
//!     Ok("saved")
//! }
//!
//! let once = Once::operation("bookmarks.create")
//!     .class(Class::Mutate)
//!     .guarantee(ichido.transactional())
//!     .identity_header(HeaderName::from_static("x-user-id"))
//!     .build(&ichido)?;
//! let app = Router::new().route("/v1/bookmarks", post(create).layer(once));
//! # Ok(app)
//! # }
//! ```
//!
//! # Report more than a status
//!
//! The status decides what is stored ([`ichido_core::ledger::settle`]). A handler or a forwarding service that knows more
//! adds it to its response's extensions: a [`RequestOutcome`], a [`RetryTransaction`], an [`EnqueuedMessage`] or
//! [`SameContent`]. The request's extensions hold its [`Claim`] and, in transactional mode, its [`Tx`]. With the feature `axum`, on by default, handlers can take both as
//! arguments.
//!
//! # Transactional mode
//!
//! The transaction begins when the handler first locks it, and the layer ends it: it commits on a 2xx or 3xx response and
//! rolls back on any other. The key is not claimed. Its outcome is the last statement of the transaction, and a unique index
//! decides between two nodes that run one request at the same time: one commits, the other rolls back and replays it. So
//! do everything in the transaction, or use [`Once::claim_first`]. On SQLite the open transaction blocks every other writer:
//! keep it short, and do not await the store inside it.
//!
//! With [`Once::claim_first`], the claim's lease is renewed while the handler runs, on a row that the commit also writes. If
//! the handler raises the isolation level above READ COMMITTED, keep it well below a third of the lease; otherwise the
//! commit conflicts with the renewal and the handler runs again.
//!
//! # Shutdown and maintenance
//!
//! A handler continues after its client disconnects, so await [`LeaseKeeper::drained`] on shutdown, after the server has
//! stopped. The keeper deletes expired keys, one process at a time, and leaves that to a worker or proxy that already does
//! it. A key expires by the clock that this advances, so setting the wall clock ahead does not expire keys. With the
//! guarantee none or keyed, the keeper also lists what a crash left behind, for a person to decide, and sets the metrics of
//! such keys; a worker on the same store raises the alert `unknown_outcome`. An operation whose name is derived from the
//! request ([`Once::operation_by`]) is listed when its key arrives again.
//!
//! Start at [`Once`]; then read `service`, which handles a request, and `attempt`, which runs one.
// Spec: A1 to A6, C1 to C7, C9, C10, D11, F2.

mod arrival;
mod attempt;
mod body;
mod builder;
mod claim;
mod claim_guard;
#[cfg(feature = "axum")]
mod extract;
mod fields;
mod handler;
mod keeper;
mod maintenance;
mod metrics;
mod problem;
mod reconcile;
mod response;
mod service;
mod settings;
mod transactional;
mod unclaimed;

pub use body::Body;
pub use builder::{Once, OnceConfigError, OnceConfigErrors};
pub use claim::{Claim, EnqueuedMessage, RetryTransaction, SameContent};
#[cfg(feature = "axum")]
pub use extract::MissingLayer;
pub use fields::STATUS;
pub use ichido_core::ledger::{Class, KeyNeed, OnUnknown, PolicyDraft, Profile, RequestOutcome};
pub use keeper::LeaseKeeper;
pub use metrics::describe_metrics;
pub use problem::{Code, Problem};
pub use reconcile::ReconciledRequest;
pub use service::{OnceLayer, OnceService};
pub use settings::{CallerIdentity, Guarantee, IdentityError, limits};

pub use crate::handler_tx::{Pool, Tx, TxError, TxGuard};

/// The `tracing` target of the span around each request with a key.
///
/// Its level is TRACE and its fields are `operation`, `idempotency.key`, `trace` (the request's `traceparent`) and `result`. It is
/// for traces, which carry the key: keep it out of logs, whose own span `once` has the hash.
// Spec: C5.
pub const REQUEST: &str = "ichido::request";

/// An error of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
