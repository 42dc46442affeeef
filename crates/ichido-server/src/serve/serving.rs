//! Runs a server: the worker, the API on the same store, and their metrics.
//!
//! Guarantee: no request is served before the worker runs. After the first stop nothing new is accepted, requests in flight are
//! finished, and then the worker ends without losing anything; after the second both end immediately. Losing the database file is
//! a stop too, after which the worker ends immediately: nothing that it does could be stored.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ichido::worker::{DestinationConfig, WorkerHandle};
use ichido_core::settings::ConfigErrors;
use ichido_http::server::limits::{Limits, MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE};
use ichido_http::server::permits::Permits;
use ichido_http::server::tls::ServerTls;
use ichido_http::server::{ServerEnd, Stops, serve_encrypted};
use ichido_store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::access::Access;
use super::admission::Admission;
use super::api::ApiState;
use super::bulk_runner;
use super::check_encrypted;
use super::in_process;
use super::metrics;
use super::server::{self, ApiServer};
use super::waiting::OutcomeWaiters;
use crate::Error;
use crate::config::Config;
use crate::limits::{WAITERS_SHARE, WORKER_START_TIMEOUT};
use crate::server_file::ServerFile;
use crate::worker;

/// A server that is ready to serve requests.
pub struct Serving {
    server: Arc<ApiServer>,
    store: Store,
    limits: Limits,
    worker: Arc<WorkerHandle>,
    operations: Arc<bulk_runner::BulkRunner>,
    upkeep: JoinHandle<()>,
    tls: Option<Arc<ServerTls>>,
    /// Reads the certificate again when it changes.
    reload: Option<JoinHandle<()>>,
    /// The longest lease of a queue, for the message after an immediate stop.
    max_lease: Duration,
}

impl Serving {
    /// Starts the worker and prepares the API.
    pub async fn start(
        config: &Config,
        store: &Store,
        targets: Vec<DestinationConfig>,
        access: Access,
        limits: Limits,
    ) -> Result<Self, Error> {
        check_encrypted(&config.serve, access.is_loopback())?;
        let tls = config.serve.tls.clone().map(ServerTls::load).transpose();
        let tls = tls.map_err(|error| {
            Error::Misconfigured(ConfigErrors::one(
                "[serve] tls",
                format!("{error}; fix the file, or name another"),
            ))
        })?;
        let tls = tls.map(Arc::new);
        let reload = tls.clone().map(|tls| tokio::spawn(tls.keep_current()));
        let recorder = metrics::install_recorder()?;
        server::describe_metrics();
        let upkeep = tokio::spawn(metrics::run_upkeep(recorder.clone()));
        // Built after the recorder is installed, so their calls are counted.
        let targets = worker::on_store(config, store, targets);
        let worker = worker::start(store, config, targets).map_err(Error::Misconfigured)?;
        let worker = Arc::new(worker);
        // Operators' requests need what workers have published. If the store is unreachable now, only they have to wait.
        drop(timeout(WORKER_START_TIMEOUT, worker.started()).await);
        let api = in_process::api(store.clone(), Some(config));
        let operations = Arc::clone(&api.operations);
        let max_waiters = api.request_limits.max_waiters.min(limits.max_connections / WAITERS_SHARE);
        let api = ApiState {
            admission: Admission::start(store.clone(), &api.queues).await,
            waiting: OutcomeWaiters::start(store.clone(), max_waiters),
            bodies: Permits::new(MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE),
            metrics: recorder,
            worker_lives: worker::lives(&worker),
            ..api
        };
        let server = Arc::new(ApiServer::new(api, access, limits));
        let store = store.clone();
        let max_lease = worker::max_lease(config);
        Ok(Self { server, store, limits, worker, operations, upkeep, tls, reload, max_lease })
    }

    /// Returns the id of its worker among the nodes.
    pub fn node(&self) -> Uuid {
        self.worker.id()
    }

    /// Writes the server's address beside its store, so commands there find it.
    ///
    /// `None` as in [`ServerFile::write`], and if the server encrypts: its certificate is for another name than this machine's.
    pub async fn write_file(&self, store_url: &str, address: SocketAddr) -> Option<ServerFile> {
        if self.tls.is_some() {
            return None;
        }
        ServerFile::write(store_url, address, self.node()).await
    }

    /// Serves until it is asked to stop, then ends gracefully unless it is asked again.
    pub async fn until(self, listener: TcpListener, stops: &Stops) -> Result<(), Error> {
        let loss = async { _ = self.store.files_lost().await };
        let ready = std::future::ready(());
        let (tls, server) = (self.tls.clone(), Arc::clone(&self.server));
        let ended = serve_encrypted(listener, tls, server, self.limits, stops, loss, ready).await;
        if !matches!(ended, ServerEnd::Interrupted { .. }) {
            self.operations.wait_until_done().await;
        }
        let stopped = match self.store.check_files() {
            Ok(()) => self.stop_worker(ended, stops).await,
            Err(error) => {
                self.worker.stop();
                self.worker.stop();
                self.worker.ended().await;
                Err(Error::StoreLost(error.to_string()))
            }
        };
        self.upkeep.abort();
        self.reload.iter().for_each(JoinHandle::abort);
        stopped
    }

    /// Stops the worker after the server has ended, gracefully unless there is a second stop.
    async fn stop_worker(&self, ended: ServerEnd, stops: &Stops) -> Result<(), Error> {
        self.worker.stop();
        let is_cut = tokio::select! {
            () = self.worker.ended() => false,
            () = stops.second() => {
                self.worker.stop();
                self.worker.ended().await;
                true
            }
        };
        let connections = match ended {
            ServerEnd::Drained => String::new(),
            ServerEnd::Interrupted { connections, .. } => format!("connections closed: {connections}; "),
        };
        match (is_cut, ended) {
            (true, _) => Err(Error::Interrupted(format!("{connections}{}", worker::cut(self.max_lease)))),
            (false, ServerEnd::Interrupted { .. }) => {
                Err(Error::Interrupted(format!("{connections}the worker stopped gracefully")))
            }
            (false, ServerEnd::Drained) => Ok(()),
        }
    }
}
