//! What `ichido send` is told, and everything that is wrong with it.

use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use ichido::worker::Queue;
use ichido_client::{Client, ClientSettings, Problems, Token};
use ichido_core::json::Pointer;
use ichido_core::retry::Retry;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;

use super::Args;
use super::line::KeyFrom;
use super::sender::{Sender, Way};
use crate::accept::IDENTITY_DEFAULT;
use crate::config::{self, Config, FILE_NAME};
use crate::exit::Exit;
use crate::faults::Faults;
use crate::schema::Schema;
use crate::store::{CONNECTIONS_MAX, open};

/// Where to, by the environment. Flags go before it.
const SERVER: &str = "ICHIDO_SERVER";
const STORE: &str = "ICHIDO_STORE";
/// Who asks. By the environment alone: everybody on a machine can read the flags of a program.
const TOKEN: &str = "ICHIDO_TOKEN";

/// Settings that make sense.
pub(super) struct Settings {
    queue: QueueName,
    pub(super) key_from: KeyFrom,
    /// The queue as the configuration has it, if there is one.
    pub(super) known: Option<Queue>,
    schema: Option<Arc<Schema>>,
    to: To,
}

enum To {
    Server { client: Arc<Client>, identity: Option<HeaderValue> },
    Store { url: String, identity: String },
}

/// The addresses that were given, as they were given.
enum Address {
    Server(String),
    Store(String),
    /// Neither by a flag nor by the environment.
    None,
}

impl Settings {
    pub(super) fn resolve(args: &Args) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let address =
            address(args, |name| std::env::var(name).ok().filter(|value| !value.is_empty()), &mut faults);
        let config = match &address {
            // The server has its own configuration.
            Address::Server(_) => None,
            Address::Store(_) | Address::None => configuration(args)?,
        };
        let queue = queue(args, config.as_ref(), &mut faults);
        let key_from = match &args.key_from {
            None => Some(KeyFrom::Member),
            Some(text) => faults
                .check("--key-from", Pointer::parse(text))
                .map(|pointer| KeyFrom::Place(pointer, text.clone())),
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
        let schema = config.as_ref().and_then(|config| config.intake(&args.queue).schema);
        let known =
            config.and_then(|config| config.queues.into_iter().find(|known| known.name == args.queue));
        let built = (|| Some(Self { queue: queue?, key_from: key_from?, known, schema, to: to? }))();
        faults.or(built)
    }

    /// Ready to send. A store is opened, a server is not asked.
    pub(super) async fn sender(&self, args: &Args) -> Result<Sender, Exit> {
        let way = match &self.to {
            To::Server { client, identity } => {
                Way::Server { client: Arc::clone(client), identity: identity.clone() }
            }
            To::Store { url, identity } => Way::Store {
                store: opened(url).await?,
                identity: identity.clone(),
                tries_allowed: self.known.as_ref().map_or(Retry::OUTBOX.tries, |queue| queue.retry.tries),
                schema: self.schema.clone(),
            },
        };
        Ok(Sender { queue: self.queue.clone(), content_type: args.content_type.clone(), way })
    }
}

const NOWHERE: &str = "no store is given, and no server; say it here, by ICHIDO_STORE, as url under [store], or by --server or ICHIDO_SERVER";

/// Flags before the environment; of each, one of the two.
fn address(args: &Args, environment: impl Fn(&str) -> Option<String>, faults: &mut Faults) -> Address {
    let both = |faults: &mut Faults, place: &str, mend: &str| {
        faults
            .add(place, format!("a server and a store are given, and a message goes to one of them; {mend}"));
    };
    match (&args.server, &args.store) {
        (Some(server), Some(_)) => {
            both(faults, "--server", "leave --server or --store out");
            Address::Server(server.clone())
        }
        (Some(server), None) => Address::Server(server.clone()),
        (None, Some(store)) => Address::Store(store.clone()),
        (None, None) => match (environment(SERVER), environment(STORE)) {
            (Some(server), Some(_)) => {
                both(
                    faults,
                    SERVER,
                    "say which by --server or --store, or unset ICHIDO_SERVER or ICHIDO_STORE",
                );
                Address::Server(server)
            }
            (Some(server), None) => Address::Server(server),
            (None, Some(store)) => Address::Store(store),
            (None, None) => Address::None,
        },
    }
}

/// The configuration that was named, or the one that is there.
fn configuration(args: &Args) -> Result<Option<Config>, Faults> {
    match &args.config {
        Some(path) => config::load(path).map(Some),
        None if PathBuf::from(FILE_NAME).exists() => config::load(FILE_NAME.as_ref()).map(Some),
        None => Ok(None),
    }
}

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
    let token = match std::env::var(TOKEN) {
        Ok(text) => faults.check(TOKEN, Token::parse(&text)).map(Some),
        Err(std::env::VarError::NotPresent) => Some(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            faults.add(TOKEN, "is no text");
            None
        }
    };
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
    let settings = ClientSettings { token: token?, ..ClientSettings::new(url) };
    let client = settings.resolve().map_err(|Problems(problems)| {
        for problem in problems {
            faults.add("--server", problem.trim_start_matches("base_url "));
        }
    });
    Some(To::Server { client: Arc::new(client.ok()?), identity: identity? })
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn at(flags: &[&str], environment: &[(&str, &str)]) -> (&'static str, String) {
        let line = ["send", "orders", "--key", "k"].iter().chain(flags);
        let args = Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}")).args;
        let mut faults = Faults::default();
        let find =
            |name: &str| environment.iter().find(|(set, _)| *set == name).map(|(_, url)| (*url).to_owned());
        let address = address(&args, find, &mut faults);
        if faults.or(Some(())).is_err() {
            return ("both", String::new());
        }
        match address {
            Address::Server(url) => ("server", url),
            Address::Store(url) => ("store", url),
            Address::None => ("none", String::new()),
        }
    }

    #[test]
    fn flags_go_before_the_environment_and_two_ways_are_one_too_many() {
        let (server, store) = (("ICHIDO_SERVER", "http://env"), ("ICHIDO_STORE", "sqlite:env"));
        let (by_server, by_store) = (["--server", "http://flag"], ["--store", "sqlite:flag"]);
        let is = |way, url: &str| (way, url.to_owned());
        assert_eq!(at(&[], &[]), is("none", ""));
        assert_eq!(at(&[], &[server]), is("server", "http://env"));
        assert_eq!(at(&[], &[store]), is("store", "sqlite:env"));
        assert_eq!(at(&by_server, &[server, store]), is("server", "http://flag"));
        assert_eq!(at(&by_store, &[server, store]), is("store", "sqlite:flag"));
        assert_eq!(at(&[], &[server, store]).0, "both");
        assert_eq!(at(&[by_server, by_store].concat(), &[]).0, "both");
    }
}
