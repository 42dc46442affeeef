//! Startup: asks the server for the subject's stream and its memory of ids.
//!
//! Guarantee: a [`Nats`] is only created if a stream acknowledges publishes and remembers ids for longer than a publish may
//! be in flight. Its guarantee is read from that stream.

use std::error::Error as _;
use std::time::Duration;

use async_nats::jetstream::context::{
    GetStreamByNameErrorKind, GetStreamErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{Context, ContextBuilder};
use ichido_core::retry::Guarantee;
use tokio::time::Instant;

use super::connection::{NatsClient, NatsConnection, NatsServers, TransportError};
use super::{Nats, max_time_in_flight};
use crate::destination::DeliveryTerms;

/// A NATS destination with valid settings, whose server was not contacted yet.
#[derive(Clone)]
#[must_use = "a plan does nothing until `connect` is called"]
pub struct NatsPlan {
    pub(super) nats_servers: NatsServers,
    pub(super) subject: String,
    pub(super) timeout: Duration,
    pub(super) settle_grace: Duration,
}

ichido_core::debug_only! {
    /// Shows nothing of the credentials.
    NatsPlan as nats_plan { servers: nats_plan.nats_servers.names(), subject }
}

/// Why a server cannot be a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NatsStartError {
    /// It is unreachable.
    #[error("{why}; the stream's duplicate window is read at startup: start the server or fix urls")]
    Unreachable {
        /// The server, and what happened.
        why: String,
    },
    /// It refuses our credentials.
    #[error("{why}; fix credentials or the server's users")]
    Unauthorized {
        /// The server, and what happened.
        why: String,
    },
    /// It has no `JetStream`, or none for us.
    #[error(
        "the server at {servers} has no JetStream for this account, and without it nothing is acknowledged; \
            enable it on the server (jetstream {{}})"
    )]
    NoJetStream {
        /// The servers.
        servers: String,
    },
    /// No stream stores what is published to the subject.
    #[error(
        "no stream at {servers} covers the subject {subject}, so messages would be lost; create one (nats \
            stream add --subjects {subject}) or fix subject"
    )]
    NoStream {
        /// The servers.
        servers: String,
        /// The subject.
        subject: String,
    },
    /// The stream cannot be read.
    #[error(
        "cannot read the stream for {subject} at {servers}: {why}; allow the user $JS.API.STREAM.NAMES, \
            $JS.API.STREAM.INFO.> and _INBOX.>"
    )]
    Unreadable {
        /// The servers.
        servers: String,
        /// The subject.
        subject: String,
        /// What happened.
        why: String,
    },
    /// The stream does not acknowledge messages.
    #[error(
        "stream {stream} does not acknowledge messages (no_ack), so every effect would be unknown; turn no_ack off"
    )]
    NoAck {
        /// The stream.
        stream: String,
    },
    /// The stream accepts no more messages.
    #[error("stream {stream} is sealed and accepts no messages; publish to another subject")]
    Sealed {
        /// The stream.
        stream: String,
    },
    /// The stream forgets ids while a publish may be in flight.
    #[error(
        "stream {stream} remembers ids for {window:?} (duplicate_window), but a publish may be in flight for \
            {in_flight:?} (timeout and settle_grace); lengthen duplicate_window or shorten those"
    )]
    ShortWindow {
        /// The stream.
        stream: String,
        /// Its `duplicate_window`.
        window: Duration,
        /// How long a publish may be in flight.
        in_flight: Duration,
    },
}

impl NatsPlan {
    /// Returns the servers' names for display.
    pub fn servers(&self) -> String {
        self.nats_servers.names()
    }

    /// Returns the timeout of a call.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Connects, and reads from the stream how long it remembers ids.
    ///
    /// It ends within three times the timeout.
    pub async fn connect(self) -> Result<Nats, NatsStartError> {
        let Self { nats_servers, subject, timeout, settle_grace } = self;
        let servers = nats_servers.names();
        let client = NatsClient::new(nats_servers, subject.clone());
        let connection = client.take(Instant::now() + timeout).await.map_err(NatsStartError::from)?;
        let lookup = StreamLookup { connection: &connection, servers, subject: &subject, timeout };
        let found = lookup.stream().await?;
        if found.no_ack {
            return Err(NatsStartError::NoAck { stream: found.name });
        }
        if found.sealed {
            return Err(NatsStartError::Sealed { stream: found.name });
        }
        let mut promise = DeliveryTerms { guarantee: Guarantee::None, timeout, settle_grace };
        let (window, in_flight) = (found.duplicate_window, max_time_in_flight(&promise));
        if window <= in_flight {
            return Err(NatsStartError::ShortWindow { stream: found.name, window, in_flight });
        }
        promise.guarantee = Guarantee::Keyed { keeps_for: window };
        Ok(Nats { client, subject, stream: found.name, promise })
    }
}

impl From<TransportError> for NatsStartError {
    fn from(TransportError { is_unauthorized, why }: TransportError) -> Self {
        if is_unauthorized { Self::Unauthorized { why } } else { Self::Unreachable { why } }
    }
}

struct StreamLookup<'a> {
    connection: &'a NatsConnection,
    servers: String,
    subject: &'a str,
    timeout: Duration,
}

impl StreamLookup<'_> {
    /// Returns the configuration of the stream that covers the subject.
    async fn stream(&self) -> Result<Config, NatsStartError> {
        let context = ContextBuilder::new().timeout(self.timeout).build(self.connection.client.clone());
        let name = self.name(&context).await?;
        let found = context.get_stream(&name).await.map_err(|error| match error.kind() {
            GetStreamErrorKind::JetStream(said) => self.unreadable(said),
            _ => self.unreadable(error),
        })?;
        Ok(found.cached_info().config.clone())
    }

    async fn name(&self, context: &Context) -> Result<String, NatsStartError> {
        let error = match context.stream_by_subject(self.subject).await {
            Ok(name) => return Ok(name),
            Err(error) => error,
        };
        let is_absent = std::iter::successors(error.source(), |&source| source.source())
            .filter_map(|source| source.downcast_ref::<RequestError>())
            .any(|source| source.kind() == RequestErrorKind::NoResponders);
        let servers = self.servers.clone();
        Err(match error.kind() {
            GetStreamByNameErrorKind::NotFound => {
                NatsStartError::NoStream { servers, subject: self.subject.to_owned() }
            }
            _ if is_absent => NatsStartError::NoJetStream { servers },
            _ => self.unreadable(error),
        })
    }

    fn unreadable(&self, why: impl std::fmt::Display) -> NatsStartError {
        let said =
            self.connection.complaint().map(|text| format!(" (the server says: {text})")).unwrap_or_default();
        NatsStartError::Unreadable {
            servers: self.servers.clone(),
            subject: self.subject.to_owned(),
            why: format!("{why}{said}"),
        }
    }
}
