//! One server for a whole test run.

use async_nats::jetstream::context::Context;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, Stream};
use uuid::Uuid;

use crate::NatsServer;

/// The environment variable with the URL of the server that a test run shares: `nats://127.0.0.1:4222`.
pub const SERVER_VARIABLE: &str = "ICHIDO_TEST_NATS";

/// A server for tests that only publish: the one in [`SERVER_VARIABLE`], or else the test's own.
///
/// The names of the stream and the subject belong to the test. What it stores stays until the server's files are
/// removed.
#[derive(Debug)]
pub struct SharedServer {
    url: String,
    subject: String,
    stream: String,
    /// Ends with this one.
    _own: Option<NatsServer>,
}

impl NatsServer {
    /// Returns a server that other tests may use at the same time. A test that stops or configures its server starts
    /// its own.
    pub async fn shared() -> SharedServer {
        let given = std::env::var(SERVER_VARIABLE).ok().filter(|url| !url.is_empty());
        let (url, own) = if let Some(url) = given {
            (url, None)
        } else {
            let own = Self::start().await;
            (own.url(), Some(own))
        };
        let name = Uuid::now_v7().simple();
        let (subject, stream) = (format!("orders-{name}.placed"), format!("ORDERS-{name}"));
        SharedServer { url, subject, stream, _own: own }
    }
}

impl SharedServer {
    /// Returns its URL, as clients write it.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the subject that the test publishes to.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the name of the stream that [`make_stream`](Self::make_stream) creates.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// Connects as an administrator.
    pub async fn admin(&self) -> Context {
        crate::admin(&self.url).await
    }

    /// Creates a stream for the subject.
    pub async fn make_stream(&self) -> Stream {
        self.make_stream_as(|_| ()).await
    }

    /// The same, with changed settings.
    pub async fn make_stream_as(&self, change: impl FnOnce(&mut Config)) -> Stream {
        crate::make_stream(&self.url, &self.stream, &self.subject, change).await
    }

    /// Returns every message in the stream.
    pub async fn stored(&self) -> Vec<StreamMessage> {
        crate::stored(&self.url, &self.stream).await
    }
}
