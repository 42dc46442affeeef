//! Once: an endpoint that takes effect once, however often it is called (SPEC A1 to A6, C1 to C7, C9, C10, D11, F2).
//!
//! Guarantee: of all the requests with one key, operation and identity, one runs; the others get its outcome, wait for it, or
//! are told what stands in the way, and a different request under the same key is refused and shown nothing. The handler
//! runs in a task of its own: a client that goes away takes nothing with it, so a request leaves either no effect and a free
//! key, or its effect and a stored outcome. What cannot be known is never guessed. No key and no payload is ever logged.
//!
//! ```
//! # use axum::{Router, http::HeaderName, routing::post};
//! # use ichido::once::{Class, Effect, Keeper, Once, Tx};
//! # use ichido_store::Store;
//! # use sqlx::{Postgres, PgPool};
//! # async fn app(store: Store, pool: PgPool) -> Result<Router, Box<dyn std::error::Error>> {
//! async fn create(tx: Tx<Postgres>) -> Result<&'static str, String> {
//!     let mut connection = tx.lock().await.map_err(|error| error.to_string())?;
//!     let insert = sqlx::query("INSERT INTO bookmarks (url) VALUES ('https://example.org')");
//!     insert.execute(&mut *connection).await.map_err(|error| error.to_string())?;
//!     Ok("saved")
//! }
//!
//! let keeper = Keeper::of(store);
//! let once = Once::operation("bookmarks.create")
//!     .class(Class::Mutate)
//!     .effect(Effect::Transactional(pool.into()))
//!     .identity_header(HeaderName::from_static("x-user-id"))
//!     .build(&keeper)?;
//! let app = Router::new().route("/v1/bookmarks", post(create).layer(once));
//! # Ok(app)
//! # }
//! ```
//!
//! # What a handler may say
//!
//! What is stored follows from the status ([`ichido_core::ledger::settle`]). A handler, or a service that forwards the request,
//! that knows more puts it into its response's extensions: an [`Outcome`], a [`RunAgain`], a [`Made`] message. It finds its
//! [`Claim`] among the request's extensions, and in transactional mode its [`Tx`]; with the feature `axum`, which is on by default, both are
//! arguments of handlers.
//!
//! # In transactional mode
//!
//! The layer opens the transaction and ends it: it commits with a response of 2xx or 3xx, and rolls back with all others. The
//! lease of the claim is renewed while the handler runs, on a row that the commit writes too: where the handler raises the
//! isolation above READ COMMITTED, keep it well below a third of the lease, or the commit meets the renewal and runs again.
//! On SQLite the open transaction keeps everybody else from writing: keep it short, and await nothing of the store inside it.
//!
//! # When a service stops, and between times
//!
//! A handler goes on when its client has gone, so a service that stops waits for [`Keeper::drained`] after its server has shut
//! down. Expired keys are forgotten by nobody but the service: one node calls `Keys::sweep` now and then
//! ([`ichido_store::node`] shows the upkeep). A key expires by the clock that `key_sweep` advances, so a wall clock that is set ahead
//! makes none new. What a crash left behind in opaque or keyed mode is found by the next request under its
//! key, or by `Keys::lapse`, which brings it before a person.
//!
//! Start at [`Once`]; reading on, `service` is what happens to a request, `attempt` how one runs.

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
mod metrics;
mod problem;
mod reconcile;
mod response;
mod service;
mod settings;
mod transaction;
mod transactional;

pub use body::Body;
pub use builder::{BuildError, BuildErrors, Once};
pub use claim::{Claim, Made, RunAgain};
#[cfg(feature = "axum")]
pub use extract::NotProtected;
pub use fields::STATUS;
pub use ichido_core::ledger::{Class, KeyNeed, OnUnknown, Outcome, PolicyDraft, Profile};
pub use keeper::Keeper;
pub use problem::{Code, Problem};
pub use reconcile::Reconciled;
pub use service::{OnceLayer, OnceService};
pub use settings::{Caller, Effect, NoIdentity, Pool, limits};
pub use transaction::{Tx, TxError, TxGuard};

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
