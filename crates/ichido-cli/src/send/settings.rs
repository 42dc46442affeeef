//! What `ichido send` is told, and everything that is wrong with it.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use ichido::worker::Queue;
use ichido_client::Client;
use ichido_client::queue::SendTerms;
use ichido_core::json::Pointer;
use ichido_core::retry::Retry;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;

use super::Args;
use super::line::KeyFrom;
use super::sender::{Sender, Way};
use crate::accept::IDENTITY_DEFAULT;
use crate::config::{Config, Intake};
use crate::duration;
use crate::exit::Exit;
use crate::faults::Faults;
use crate::reach::{self, Address};
use crate::store::{CONNECTIONS_MAX, open};

/// Settings that make sense.
pub(super) struct Settings {
    queue: QueueName,
    pub(super) key_from: KeyFrom,
    /// How long the server remembers a key.
    pub(super) keys_kept_for: Duration,
    /// The queue as the configuration has it, if there is one.
    pub(super) known: Option<Queue>,
    intake: Intake,
    to: To,
}

enum To {
    Server { url: String, client: Arc<Client>, identity: Option<HeaderValue> },
    Store { url: String, identity: String },
}

impl Settings {
    pub(super) fn resolve(args: &Args) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let address = Address::given(args.server.as_deref(), args.store.as_deref(), &mut faults);
        let config = match &address {
            // The server has its own configuration.
            Address::Server(_) => None,
            Address::Store(_) | Address::None => reach::configuration(args.config.clone())?,
        };
        let queue = queue(args, config.as_ref(), &mut faults);
        let key_from = match &args.key_from {
            None => Some(KeyFrom::Member),
            Some(text) => faults
                .check("--key-from", Pointer::parse(text))
                .map(|pointer| KeyFrom::Place(pointer, text.clone())),
        };
        if args.offline_queue.is_some() && !matches!(address, Address::Server(_)) {
            faults.add(
                "--offline-queue",
                "keeps what a server does not take yet; say which by --server or ICHIDO_SERVER",
            );
        }
        let keys_kept_for = match &args.keys_kept_for {
            None => Some(SendTerms::default().keys_kept_for),
            Some(text) => faults.check("--keys-kept-for", duration::parse(text)),
        };
        let to = match address {
            Address::Server(url) => server(args, url, &mut faults),
            Address::Store(url) => Some(store(args, url)),
            Address::None => {
                let url = config.as_ref().and_then(|config| config.store.url.clone());
                if url.is_none() {
                    faults.add("--store", NOWHERE);
                }
                url.map(|url| store(args, url))
            }
        };
        let intake = config.as_ref().map(|config| config.intake(&args.queue)).unwrap_or_default();
        let known =
            config.and_then(|config| config.queues.into_iter().find(|known| known.name == args.queue));
        let built = (|| {
            Some(Self {
                queue: queue?,
                key_from: key_from?,
                keys_kept_for: keys_kept_for?,
                known,
                intake,
                to: to?,
            })
        })();
        faults.or(built)
    }

    /// Ready to send. A store is opened, a server is not asked.
    pub(super) async fn sender(&self, args: &Args) -> Result<Sender, Exit> {
        let way = match &self.to {
            To::Server { url, client, identity } => {
                Way::Server { url: url.clone(), client: Arc::clone(client), identity: identity.clone() }
            }
            To::Store { url, identity } => Way::Store {
                store: opened(url).await?,
                identity: identity.clone(),
                tries_allowed: self.known.as_ref().map_or(Retry::OUTBOX.tries, |queue| queue.retry.tries),
                intake: self.intake.clone(),
            },
        };
        Ok(Sender { queue: self.queue.clone(), content_type: args.content_type.clone(), way })
    }
}

const NOWHERE: &str = "no store is given, and no server; say it here, by ICHIDO_STORE, as url under [store], or by --server or ICHIDO_SERVER";

fn queue(args: &Args, config: Option<&Config>, faults: &mut Faults) -> Option<QueueName> {
    let queue = QueueName::parse(&args.queue);
    if queue.is_none() {
        faults.add(
            "QUEUE",
            format!("{:?} is no name of a queue; it has letters, digits, . _ - and :", args.queue),
        );
    }
    if config.is_some_and(|config| !config.queues.iter().any(|known| known.name == args.queue)) {
        faults.add(
            "QUEUE",
            format!("the configuration has no [queues.{}]; nobody would take it out", args.queue),
        );
    }
    queue
}

fn server(args: &Args, url: String, faults: &mut Faults) -> Option<To> {
    let identity = match args.identity.as_deref().map(identity_field) {
        None => Some(None),
        Some(Some(identity)) => Some(Some(identity)),
        Some(None) => {
            faults.add(
                "--identity",
                "a server takes it as a header field: visible ASCII, and blanks only in between",
            );
            None
        }
    };
    let client = reach::settings(url.clone(), faults).and_then(|settings| reach::client(settings, faults));
    Some(To::Server { url, client: Arc::new(client?), identity: identity? })
}

/// The identity as a header field that means the same at the other end.
fn identity_field(identity: &str) -> Option<HeaderValue> {
    // Blanks around a field are no part of it.
    let is_plain = identity.bytes().all(|byte| matches!(byte, b' '..=b'~')) && identity.trim() == identity;
    if is_plain && !identity.is_empty() { HeaderValue::from_str(identity).ok() } else { None }
}

fn store(args: &Args, url: String) -> To {
    let identity = args.identity.clone().unwrap_or_else(|| IDENTITY_DEFAULT.to_owned());
    To::Store { url, identity }
}

/// Opens the store. One that is not to be reached ends the command otherwise than one that is wrong.
async fn opened(url: &str) -> Result<Store, Exit> {
    match Store::open(url, CONNECTIONS_MAX).await {
        Ok(store) => Ok(store),
        Err(StoreError::Unavailable(cause)) => {
            Err(Exit::Unreachable(format!("the store cannot be opened: {cause}; nothing was put in")))
        }
        // Says why, as for every command.
        Err(_) => open(url).await,
    }
}
