//! Bookmarks: a service built on Ichido that saves links and summarises them.
//!
//! Guarantee: an action of a person takes effect once. A save that is sent again, by an impatient finger or a phone in
//! a tunnel, is one bookmark. A response is durable. Background work is done, or is a dead letter with its reason.
//! Nobody sees another person's data.
//!
//! # How it is built
//!
//! `api` has the endpoints. Saving is behind the layer [`ichido::once`] in transactional mode: the bookmark, the stored
//! response and the message that has the page read commit together. `jobs` has the handlers that [`ichido::worker`]
//! calls: `extraction` reads the page, `llm_processing` summarises it. A bookmark's state is read from the engine's own
//! rows (`schema/*.sql`), so there is no second state that could disagree.
//!
//! Start at [`App`]. Then read `api/save.rs`, the main endpoint.
// SPEC A.

mod access;
mod alert_webhook;
mod api;
mod app;
mod assets;
mod bookmark;
mod bookmarks;
mod canonical;
mod credential;
mod database;
mod fetch;
mod icons;
mod job_error;
mod jobs;
mod metrics;
mod people;
mod problem;
mod reading;
mod removal;
mod retries;
mod saving;
mod search;
mod server;
mod settings;
mod source;
mod stats;
mod store_url;
mod summary;
mod tags;
mod transfer;

pub use alert_webhook::AlertWebhook;
pub use app::{App, StartError};
pub use canonical::{UrlError, canonical};
pub use credential::Credential;
pub use fetch::guard::is_public;
pub use people::{Person, PersonError};
pub use retries::{Retried, RetryError};
pub use settings::{Settings, limits};
pub use store_url::StoreUrl;
