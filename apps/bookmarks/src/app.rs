//! The service as a whole: open, serve, stop.

use std::sync::Arc;

use ichido::prelude::*;
use ichido::{once, worker};
use ichido_http::server::{ServerEnd, Stops, serve};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::access::Guesses;
use crate::credential::Credential;
use crate::database::{AppDatabase, on};
use crate::people::{self, Person, PersonError};
use crate::retries::{Retried, RetryError};
use crate::server::{BookmarkServer, LIMITS};
use crate::settings::{Settings, limits};
use crate::store_url::StoreUrl;
use crate::{api, bookmarks, jobs, metrics, removal, retries};

/// The service and its database.
pub struct App {
    pub(crate) settings: Settings,
    /// The engine's part of the database: keys and messages.
    pub(crate) store: Store,
    /// The app's part of the same database: people and bookmarks.
    pub(crate) database: AppDatabase,
    pub(crate) guesses: Guesses,
    /// One import at a time: it holds a large file in memory.
    pub(crate) imports: Semaphore,
    pub(crate) worker_lives: watch::Sender<bool>,
}

/// Why the service does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database failed.
    #[error("cannot open the store: {store_url}: {}", .error.with_causes())]
    Store {
        /// Which database.
        store_url: StoreUrl,
        /// The cause.
        #[source]
        error: StoreError,
    },
    /// The protected operations are misconfigured.
    #[error("cannot protect the endpoints: {0}")]
    Once(#[from] once::OnceConfigErrors),
    /// The worker is misconfigured.
    #[error("cannot start the worker: {0}")]
    Worker(#[from] worker::WorkerConfigErrors),
    /// The metrics could not be set up.
    #[error("cannot set up metrics: {0}")]
    Metrics(String),
    /// The database file was lost while the service ran.
    #[error("stopped: {0}")]
    Lost(StoreError),
}

impl App {
    /// Opens the database and creates missing tables.
    pub async fn open(settings: Settings) -> Result<Arc<Self>, StartError> {
        let store_url = StoreUrl::new(&settings.store);
        let cannot = |error| StartError::Store { store_url: store_url.clone(), error };
        let database = AppDatabase::open(&settings.store).await.map_err(cannot)?;
        let store = on!(&database, ichido => ichido.store().clone());
        let worker_lives = watch::Sender::new(false);
        Ok(Arc::new(Self {
            settings,
            store,
            database,
            guesses: Guesses::default(),
            imports: Semaphore::new(1),
            worker_lives,
        }))
    }

    /// Returns the engine's store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Adds a person. The returned token is shown once and never again.
    pub async fn add_person(&self, name: &str) -> Result<Credential, PersonError> {
        people::add(&self.database, &self.store, name).await
    }

    /// Replaces a person's token, shown once; the old token and every session end.
    pub async fn renew_person(&self, name: &str) -> Result<Credential, PersonError> {
        people::renew(&self.database, name).await
    }

    /// Returns how many bookmarks a person has.
    pub async fn bookmarks_of(&self, name: &str) -> Result<u64, PersonError> {
        let person = people::by_name(&self.database, name).await?;
        let mut pooled = self.database.connect().await?;
        Ok(bookmarks::count(&mut pooled.connection(), person.id).await?)
    }

    /// Deletes a person and all their data.
    pub async fn remove_person(&self, name: &str) -> Result<(), PersonError> {
        removal::remove(&self.database, &self.store, name).await
    }

    /// Requeues failed jobs: those with a code, or all that a retry can help. Or only counts them.
    pub async fn retry_failed(&self, code: Option<&str>, only_count: bool) -> Result<Retried, RetryError> {
        retries::retry_failed(&self.store, code, only_count).await
    }

    /// Lists people by name.
    pub async fn people(&self) -> Result<Vec<Person>, StoreError> {
        Ok(people::list(&self.database).await?)
    }

    /// Serves until asked to stop.
    ///
    /// Then it accepts nothing new, answers requests in flight, and the worker releases what it has not started.
    pub async fn serve(self: &Arc<Self>, listener: TcpListener, stops: &Stops) -> Result<(), StartError> {
        metrics::begin().map_err(StartError::Metrics)?;
        let server = Arc::new(BookmarkServer(api::router(self)?));
        let worker = jobs::start(self)?;
        self.worker_lives.send_replace(true);
        let lives = self.worker_lives.clone();
        let watching = async {
            worker.ended().await;
            lives.send_replace(false);
            std::future::pending().await
        };
        let loss = async { _ = self.store.files_lost().await };
        let drained = on!(&self.database, ichido => ichido.keeper()).drained();
        let ended = tokio::select! {
            // Work continues when its client has gone.
            ended = serve(listener, server, LIMITS, stops, loss, drained) => ended,
            never = watching => never,
            () = metrics::tend() => ServerEnd::Drained,
        };
        if let ServerEnd::Interrupted { connections, .. } = ended {
            // Their leases expire, and a retry under the same key gets the outcome.
            tracing::warn!(connections, "shutdown closed connections with requests in flight");
        }
        worker.stop();
        let files = self.store.check_files().map_err(StartError::Lost);
        if files.is_err() {
            // At once, because nothing it does could be stored.
            worker.stop();
        }
        worker.ended().await;
        files
    }

    /// Closes the database; a file is then complete without its side files.
    pub async fn close(&self) {
        self.database.close().await;
        self.store.close(limits::DRAIN_WITHIN).await;
    }
}
