//! Bookmarks: save links from anywhere, and have them summarised. A service that is built on Ichido (SPEC A).
//!
//! Guarantee: an action of a person has one effect. A save that is sent again, by an impatient finger or by a phone that was in a
//! tunnel, is one bookmark; what was answered is durable; and what is to be done in the background is done, or stands among the
//! dead letters with its reason. Nobody sees what is another's.
//!
//! # How it is built
//!
//! `api` has the endpoints. Saving is behind the layer [`ichido::once`] in transactional mode: the bookmark, the stored answer and the
//! message that has the page read commit together. `jobs` are the handlers that [`ichido::worker`] calls: `extraction` reads the page,
//! `llm_processing` summarises it. How a bookmark stands is read from the engine's own rows (`schema/*.sql`), so that there is no
//! second state that could disagree with the first.
//!
//! Start at [`App`]; reading on, `api/save.rs` is the endpoint that everything is about.

mod access;
mod api;
mod app;
mod assets;
mod bookmark;
mod bookmarks;
mod canonical;
mod credential;
mod database;
mod fetch;
mod job_error;
mod jobs;
mod metrics;
mod people;
mod problem;
mod reading;
mod removal;
mod retries;
mod server;
mod settings;
mod store_url;
mod summary;

pub use app::{App, StartError};
pub use canonical::{UrlError, canonical};
pub use credential::Credential;
pub use fetch::guard::is_public;
pub use people::{Person, PersonError};
pub use retries::{Retried, RetryError};
pub use settings::{Settings, limits};
pub use store_url::StoreUrl;
