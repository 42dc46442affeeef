//! The connection to the server, and the server's messages on it.
//!
//! Guarantee: at most one connection accepts new publishes. A publish is written to the connection it was given to, or
//! never: the client library's own reconnect, which would send its buffer to the next server, is disabled. A connection
//! with a late response is not used again, and is closed within [`CLOSE_WITHIN`] of its last call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Request, RequestErrorKind,
    ServerAddr, ServerError,
};
use bytes::Bytes;
use ichido_core::sync::lock;
use rustls::ClientConfig;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::settings::Credentials;

/// How often an idle connection is pinged.
const PING_EVERY: Duration = Duration::from_secs(5);
/// A connection is closed at the third ping if the first two were not answered.
pub(super) const CLOSE_WITHIN: Duration = PING_EVERY.saturating_mul(3);
/// Where the client library reconnects to: nobody can listen on this port.
const UNREACHABLE_URL: &str = "nats://127.0.0.1:0";
/// The start of the server's error for a denied publish; the quoted subject follows.
const DENIAL_PREFIX: &str = "permissions violation for publish to";

/// The servers, and how to connect to them.
#[derive(Clone)]
pub(super) struct NatsServers {
    pub(super) servers: Vec<ServerAddr>,
    pub(super) credentials: Option<Credentials>,
    pub(super) tls: Option<ClientConfig>,
    pub(super) connect_timeout: Duration,
}

/// There is no connection, and nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TransportError {
    /// Whether our credentials were refused.
    pub(super) is_unauthorized: bool,
    pub(super) why: String,
}

/// Opens and reuses the current connection.
pub(super) struct NatsClient {
    servers: NatsServers,
    subject: String,
    connection: AsyncMutex<Option<Arc<NatsConnection>>>,
}

/// One connection; it never reconnects.
pub(super) struct NatsConnection {
    pub(super) client: Client,
    reports: Arc<ServerReports>,
    is_abandoned: AtomicBool,
}

/// The outcome of a publish on a connection.
#[derive(Debug)]
pub(super) enum PublishOutcome {
    /// A response, which should be an acknowledgement.
    Replied(Bytes),
    /// Nobody listens to the subject.
    NoResponders,
    /// It exceeds the server's limit, and was not sent.
    TooLarge { why: String },
    /// The server does not allow us to publish there.
    Denied,
    /// No response in time.
    Late,
    /// The connection was lost.
    Broken,
}

impl NatsClient {
    pub(super) fn new(servers: NatsServers, subject: String) -> Self {
        Self { servers, subject, connection: AsyncMutex::new(None) }
    }

    /// Returns a usable connection before `deadline`.
    pub(super) async fn take(&self, deadline: Instant) -> Result<Arc<NatsConnection>, TransportError> {
        // One task connects, the others wait for it.
        let connecting = timeout_at(deadline, async {
            let mut current = self.connection.lock().await;
            if let Some(connection) = current.as_ref().filter(|connection| connection.is_usable()) {
                return Ok(Arc::clone(connection));
            }
            *current = None;
            let connection = Arc::new(self.servers.open(&self.subject).await?);
            *current = Some(Arc::clone(&connection));
            Ok(connection)
        });
        connecting.await.unwrap_or_else(|_| Err(self.servers.late()))
    }
}

impl NatsServers {
    /// Returns the servers' names for display.
    pub(super) fn names(&self) -> String {
        self.servers.iter().map(ServerAddr::as_url_str).collect::<Vec<_>>().join(", ")
    }

    async fn open(&self, subject: &str) -> Result<NatsConnection, TransportError> {
        let reports = Arc::new(ServerReports::new(subject));
        let options = self.options(&reports).map_err(|why| self.error(true, why))?;
        let opened = timeout(self.connect_timeout, async {
            let client = options.connect(&self.servers[..]).await.map_err(|error| self.refused(&error))?;
            let unreachable: ServerAddr =
                UNREACHABLE_URL.parse().map_err(|error| self.error(false, error))?;
            client.set_server_pool(unreachable).await.map_err(|error| self.error(false, error))?;
            Ok(client)
        });
        let client = opened.await.unwrap_or_else(|_| Err(self.late()))?;
        Ok(NatsConnection { client, reports, is_abandoned: AtomicBool::new(false) })
    }

    fn options(&self, reports: &Arc<ServerReports>) -> Result<ConnectOptions, &'static str> {
        let count = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        let reports = Arc::clone(reports);
        let mut options = ConnectOptions::new()
            .name(concat!("ichido/", env!("CARGO_PKG_VERSION")))
            // Each server gets a share of the time, so a silent one leaves some for the rest.
            .connection_timeout(self.connect_timeout / count.max(1))
            // This many attempts are needed to find the live server; after that they fail at once.
            .max_reconnects(self.servers.len())
            .reconnect_delay_callback(|_| Duration::ZERO)
            .ignore_discovered_servers()
            .ping_interval(PING_EVERY)
            .event_callback(move |event| {
                reports.note(&event);
                std::future::ready(())
            });
        if let Some(tls) = &self.tls {
            options = options.tls_client_config(tls.clone());
        }
        self.credentials.iter().try_fold(options, |options, credentials| credentials.added_to(options))
    }

    fn error(&self, is_unauthorized: bool, why: impl std::fmt::Display) -> TransportError {
        TransportError { is_unauthorized, why: format!("cannot connect to {}: {why}", self.names()) }
    }

    fn refused(&self, error: &ConnectError) -> TransportError {
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation => {
                self.error(true, "the server rejected the credentials, or needs some")
            }
            ConnectErrorKind::Authentication => {
                self.error(true, "the credentials cannot sign the server's challenge")
            }
            _ => self.error(false, error),
        }
    }

    fn late(&self) -> TransportError {
        self.error(false, "the attempt timed out")
    }
}

impl NatsConnection {
    fn is_usable(&self) -> bool {
        self.client.connection_state() == State::Connected && !self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Publishes once and waits for the response.
    pub(super) async fn publish(
        &self,
        subject: &str,
        headers: HeaderMap,
        body: Bytes,
        deadline: Instant,
    ) -> PublishOutcome {
        let request = Request::new().headers(headers).payload(body).timeout(None);
        let number = self.reports.start_publish();
        let replied = tokio::select! {
            biased;
            replied = timeout_at(deadline, self.client.send_request(subject.to_owned(), request)) => replied,
            () = self.reports.denied(number) => return PublishOutcome::Denied,
        };
        let Ok(replied) = replied else {
            // Data not yet written is dropped with the connection.
            self.is_abandoned.store(true, Ordering::Relaxed);
            return PublishOutcome::Late;
        };
        let outcome = match replied {
            Ok(message) => PublishOutcome::Replied(message.payload),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => PublishOutcome::NoResponders,
                RequestErrorKind::MaxPayloadExceeded => PublishOutcome::TooLarge { why: error.to_string() },
                RequestErrorKind::InvalidSubject | RequestErrorKind::TimedOut | RequestErrorKind::Other => {
                    return PublishOutcome::Broken;
                }
            },
        };
        self.reports.answered();
        outcome
    }

    /// Returns the server's last error message.
    pub(super) fn complaint(&self) -> Option<String> {
        lock(&self.reports.complaint).clone()
    }
}

/// Server messages that do not belong to a request.
///
/// A denial does not say which publish it is about: that is known once all of them are accounted for.
struct ServerReports {
    /// The text of a denial of our subject, in lower case.
    denial: String,
    counts: watch::Sender<PublishCounts>,
    complaint: Mutex<Option<String>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PublishCounts {
    started: u64,
    answered: u64,
    denied: u64,
    /// Every publish up to this one was answered or denied.
    accounted: u64,
}

impl PublishCounts {
    fn count(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        if self.started == self.answered + self.denied {
            self.accounted = self.started;
        }
    }
}

impl ServerReports {
    fn new(subject: &str) -> Self {
        let denial = format!("{DENIAL_PREFIX} {:?}", subject.to_lowercase());
        Self { denial, counts: watch::Sender::default(), complaint: Mutex::default() }
    }

    /// Registers a publish. Returns its number on this connection.
    fn start_publish(&self) -> u64 {
        let mut number = 0;
        self.counts.send_modify(|counts| {
            counts.started += 1;
            number = counts.started;
        });
        number
    }

    /// Registers a response.
    fn answered(&self) {
        self.counts.send_modify(|counts| counts.count(|counts| counts.answered += 1));
    }

    /// Waits until an unanswered publish is certain to be denied.
    async fn denied(&self, number: u64) {
        let mut counts = self.counts.subscribe();
        if counts.wait_for(|counts| number <= counts.accounted).await.is_err() {
            // Unreachable: the sender is ours.
            std::future::pending::<()>().await;
        }
    }

    fn note(&self, event: &Event) {
        let Event::ServerError(ServerError::Other(text)) = event else {
            return;
        };
        if text.to_lowercase().starts_with(&self.denial) {
            self.counts.send_modify(|counts| counts.count(|counts| counts.denied += 1));
        }
        *lock(&self.complaint) = Some(text.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial() -> Event {
        Event::ServerError(ServerError::Other("Permissions Violation for Publish to \"Orders\"".to_owned()))
    }

    fn accounted(reports: &ServerReports) -> u64 {
        reports.counts.borrow().accounted
    }

    #[test]
    fn denial_is_assigned_when_all_publishes_are_accounted_for() {
        let reports = ServerReports::new("Orders");
        assert_eq!((reports.start_publish(), reports.start_publish()), (1, 2));
        reports.note(&denial());
        assert_eq!(accounted(&reports), 0, "it may be either");
        reports.answered();
        assert_eq!(accounted(&reports), 2, "the one without a reply");
        assert_eq!(reports.start_publish(), 3);
        assert_eq!(accounted(&reports), 2, "the next is open");
    }

    #[test]
    fn violation_on_another_subject_is_not_a_denial() {
        let reports = ServerReports::new("orders");
        reports.start_publish();
        for text in [
            "Permissions Violation for Publish to \"orders.eu\"",
            "Permissions Violation for Subscription to \"orders\"",
        ] {
            reports.note(&Event::ServerError(ServerError::Other(text.to_owned())));
        }
        assert_eq!(accounted(&reports), 0);
    }
}
