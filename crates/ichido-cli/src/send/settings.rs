//! Resolves the flags of `ichido send`, and reports all errors.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use ichido::worker::QueueConfig;
use ichido_client::queue::SendSettings;
use ichido_core::json::Pointer;
use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;
use ichido_http::clock;
use ichido_server::accept::{QueueName, queue_name};
use ichido_server::config::{Config, did_you_mean};
use ichido_server::schedule::Schedule;
use ichido_server::serve::InProcessApi;
use ichido_server::target::{StoreTarget, Target};

use super::Args;
use super::line::KeyFrom;
use super::sender::{SendTransport, Sender};
use crate::api_client;
use crate::exit::Exit;
use crate::store::open_or_create;
use crate::target::say;

/// Validated settings.
pub(super) struct Settings {
    queue: QueueName,
    identity: Option<HeaderValue>,
    pub(super) schedule: Schedule,
    pub(super) key_from: KeyFrom,
    /// How long the server remembers a key.
    pub(super) keeps_keys_for: Duration,
    to: SendTarget,
}

enum SendTarget {
    Server(SendTransport),
    /// A store that is not open yet.
    Store(Box<StoreTarget>),
}

impl Settings {
    pub(super) async fn resolve(args: &Args) -> Result<Self, ConfigErrors> {
        let mut faults = ConfigErrors::default();
        let target = args.target.find().await?;
        // A server has its own configuration.
        let config = if let Target::Store(found) = &target { found.config.as_ref() } else { None };
        let is_sent = matches!(target, Target::Server { .. });
        let queue = queue(args, config, &mut faults);
        let key_from = match &args.key_from {
            None => Some(KeyFrom::Member),
            Some(text) => faults
                .check("--key-from", Pointer::parse(text))
                .map(|pointer| KeyFrom::Pointer(pointer, text.clone())),
        };
        // Entries wait for one address, and one that was found may change.
        if args.offline_queue.is_some() && !matches!(target, Target::Server { is_named: true, .. }) {
            faults.add("--offline-queue", "needs a server to send to; pass --server or set ICHIDO_SERVER");
        }
        let keeps_keys_for = match &args.keeps_keys_for {
            None => Some(SendSettings::default().keeps_keys_for),
            Some(text) => faults.check("--keeps-keys-for", duration::parse(text)),
        };
        let identity = args.identity.as_deref();
        let identity = identity.and_then(|text| faults.check("--identity", identity_field(text, is_sent)));
        let schedule = Schedule::new(args.priority, args.delay, args.run_at, clock::now());
        let schedule = faults.check("--run-at", schedule);
        let to = match target {
            Target::Server { url, is_named } => {
                let client = api_client::client_settings(url.clone(), is_named, &mut faults)
                    .and_then(|settings| api_client::build_client(settings, &mut faults));
                client
                    .map(|client| SendTarget::Server(SendTransport::Server { url, client: Arc::new(client) }))
            }
            Target::Store(found) => Some(SendTarget::Store(found)),
        };
        let built = (|| {
            Some(Self {
                queue: queue?,
                identity,
                schedule: schedule?,
                key_from: key_from?,
                keeps_keys_for: keeps_keys_for?,
                to: to?,
            })
        })();
        faults.or(built)
    }

    /// Returns the queue's configuration, if there is one.
    pub(super) fn queue_config(&self) -> Option<&QueueConfig> {
        let SendTarget::Store(found) = &self.to else { return None };
        found.config.as_ref()?.queues.iter().find(|known| known.name == self.queue.as_str())
    }

    /// Creates a sender. Opens a store, but does not call a server yet.
    pub(super) async fn sender(&self, args: &Args) -> Result<Sender, Exit> {
        let transport = match &self.to {
            SendTarget::Server(transport) => transport.clone(),
            SendTarget::Store(found) => {
                say(Some(found.config_note()));
                let store = open_or_create(found).await.map_err(|exit| match exit {
                    Exit::Unreachable(why) => Exit::Unreachable(format!("{why}; nothing was enqueued")),
                    exit => exit,
                })?;
                let api = InProcessApi::taking(store, found.config.as_ref(), &self.queue).await;
                let api = api.map_err(|error| Exit::Failed(format!("cannot look up the queue: {error}")))?;
                SendTransport::Store(Arc::new(api))
            }
        };
        // A queue name contains no character that has a meaning in a path.
        let path = format!("/v1/queues/{}/messages", self.queue.as_str());
        let (content_type, identity, schedule) =
            (args.content_type.clone(), self.identity.clone(), self.schedule);
        Ok(Sender { path, content_type, identity, schedule, transport })
    }
}

fn queue(args: &Args, config: Option<&Config>, faults: &mut ConfigErrors) -> Option<QueueName> {
    let queue = faults.check("QUEUE", queue_name(&args.queue));
    let known: Option<Vec<&str>> =
        config.map(|config| config.queues.iter().map(|known| known.name.as_str()).collect());
    if let Some(known) = known.filter(|known| !known.contains(&args.queue.as_str())) {
        let meant = did_you_mean(&args.queue, known, "add it");
        let why = "so the message would never be delivered";
        faults.add("QUEUE", format!("the configuration has no [queues.{}], {why}{meant}", args.queue));
    }
    queue
}

/// Encodes an identity as a header value that the server reads back unchanged.
fn identity_field(identity: &str, is_sent: bool) -> Result<HeaderValue, &'static str> {
    // Spaces around a header value are not part of it.
    let is_plain = identity.bytes().all(|byte| matches!(byte, b' '..=b'~')) && identity.trim() == identity;
    if is_sent && (!is_plain || identity.is_empty()) {
        return Err("is sent as a header: use visible ASCII, with spaces only in between");
    }
    HeaderValue::from_bytes(identity.as_bytes()).map_err(|_| "contains a control character; remove it")
}
