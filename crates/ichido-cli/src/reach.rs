//! How a command reaches the API: over HTTP at a running server, or in this process, straight on the store.
//!
//! Guarantee: a command is written once, against the API, and means the same both ways. A read is made again where that helps; a change is
//! sent once, and where no outcome was learnt, that is said. Tokens are read from the environment alone, and shown nowhere.

mod address;
mod end;
pub(crate) mod shown;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use http::{Method, Uri};
use ichido_client::{ANSWER_BYTES_MAX, Action, Answer, Client, ClientSettings, Problems, Token};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

pub(crate) use address::Address;
pub(crate) use end::{Refusal, gave_up, redirected};
use ichido_core::settings::Faults;
use ichido_server::config::{self, Config, FILE_NAME};
use ichido_server::serve::Inside;

use crate::exit::Exit;
use crate::store::open_existing;

/// Who asks. By the environment alone: everybody on a machine can read the flags of a program.
const TOKEN: &str = "ICHIDO_TOKEN";
const NOWHERE: &str = "no store is given, and no server; say it here, by ICHIDO_STORE, as url under [store], or by --server or ICHIDO_SERVER";

/// Whom to ask, and in whose name.
#[derive(Debug, clap::Args)]
pub(crate) struct Whom {
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help = "A running server to ask, its token from ICHIDO_TOKEN [env: ICHIDO_SERVER]"
    )]
    server: Option<String>,

    #[arg(
        long,
        global = true,
        value_name = "URL",
        help = "Where messages are kept, to work there without a server: sqlite:FILE or postgres://… [env: ICHIDO_STORE] \
                [default: as the configuration says]"
    )]
    store: Option<String>,

    /// The configuration with the queues, where there is no server [default: ichido.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// Who you are, for the audit, where there is no server; a server goes by the token
    #[arg(long, global = true, value_name = "NAME", env = "USER", default_value = "unknown")]
    by: String,

    /// JSON for programs, one object a line
    #[arg(long, global = true)]
    json: bool,
}

/// The API, ready to be asked.
pub(crate) struct Reach {
    command: &'static str,
    /// For programs rather than people.
    pub(crate) json: bool,
    way: Way,
}

enum Way {
    Server {
        /// Asks again where that helps.
        reads: Box<Client>,
        /// Asks once: an operator's step has no key at the server, so that a second one could do it twice.
        changes: Box<Client>,
    },
    Store {
        api: Inside,
        /// Whether a configuration says what its queues are.
        is_configured: bool,
    },
}

impl Way {
    fn server(settings: ClientSettings, faults: &mut Faults) -> Option<Self> {
        // A page of messages, or the bytes of one, is longer than the answer to one that was put in.
        let settings = ClientSettings { answer_bytes_max: ANSWER_BYTES_MAX, ..settings };
        let once = Retry { tries: NonZeroU32::MIN, ..Retry::CLIENT };
        let changes = client(ClientSettings { retry: once, ..settings.clone() }, faults);
        let reads = client(settings, faults);
        Some(Self::Server { reads: Box::new(reads?), changes: Box::new(changes?) })
    }
}

impl Reach {
    /// A server that this process runs itself, and that asks for no token.
    pub(crate) fn beside(command: &'static str, address: SocketAddr) -> Result<Self, Exit> {
        let mut faults = Faults::default();
        let way = Way::server(ClientSettings::new(format!("http://{address}")), &mut faults);
        let way = faults.or(way).map_err(|faults| Exit::Misconfigured { command, faults })?;
        Ok(Self { command, json: false, way })
    }

    /// Opens a store, or gets ready to call a server, which is not asked yet.
    pub(crate) async fn open(command: &'static str, args: Whom) -> Result<Self, Exit> {
        let misconfigured = |faults| Exit::Misconfigured { command, faults };
        let mut faults = Faults::default();
        let address = Address::given(args.server.as_deref(), args.store.as_deref(), &mut faults);
        let way = match address {
            Address::Server(url) => {
                let way = settings(url, &mut faults).and_then(|settings| Way::server(settings, &mut faults));
                faults.or(way).map_err(misconfigured)?
            }
            address => {
                let config = configuration(args.config).map_err(misconfigured)?;
                let url = store(address, config.as_ref(), &mut faults);
                let url = faults.or(url).map_err(misconfigured)?;
                let api = Inside::new(open_existing(&url).await?, config.as_ref(), args.by);
                Way::Store { api, is_configured: config.is_some() }
            }
        };
        Ok(Self { command, json: args.json, way })
    }

    /// Whether the queues are known: to a server, or by a configuration.
    pub(crate) const fn knows_queues(&self) -> bool {
        matches!(self.way, Way::Server { .. } | Way::Store { is_configured: true, .. })
    }

    /// Why nothing is known of a queue that the API does not know.
    pub(crate) fn why_unknown(&self, queue: &str) -> String {
        match self.way {
            Way::Server { .. } => "not known there: the server does not serve this queue".to_owned(),
            Way::Store { is_configured: true, .. } => format!(
                "not known here: the configuration has no [queues.{queue}]; give the worker's by --config"
            ),
            Way::Store { is_configured: false, .. } => {
                format!("not known here: there is no {FILE_NAME} that says it; give the worker's by --config")
            }
        }
    }

    /// What is at a target: a path of ours, and a query if any.
    pub(crate) async fn get(&self, target: &str) -> Result<Answer, Exit> {
        Ok(self.look(target).await??)
    }

    /// The same, for a command that has words of its own for a refusal.
    pub(crate) async fn look(&self, target: &str) -> Result<Result<Answer, Refusal>, Exit> {
        let answer = match &self.way {
            Way::Server { reads, .. } => {
                end::of_read(reads.read(target).await.map_err(|error| Exit::Failed(error.to_string()))?)?
            }
            Way::Store { api, .. } => {
                api.ask(Method::GET, uri(target)?, String::new()).await.map_err(Exit::Failed)?
            }
        };
        end::taken(self.command, answer)
    }

    /// Puts a body in as it is, under a key.
    pub(crate) async fn put_in(
        &self,
        target: &str,
        key: IdempotencyKey,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Result<Answer, Refusal>, Exit> {
        let failed = |error: &dyn std::fmt::Display| Exit::Failed(error.to_string());
        let answer = match &self.way {
            Way::Server { changes, .. } => {
                let action = Action::new(Method::POST, target, key, content_type, body);
                end::of_change(changes.send(&action.map_err(|error| failed(&error))?).await)?
            }
            Way::Store { api, .. } => {
                let put = api.put_in(uri(target)?, &key, content_type, None, body).await;
                put.map_err(Exit::Failed)?
            }
        };
        end::taken(self.command, answer)
    }

    /// Asks for a change, told as JSON.
    pub(crate) async fn post(&self, target: &str, told: &Value) -> Result<Answer, Exit> {
        self.change(Method::POST, target, told).await
    }

    /// The same by another method.
    pub(crate) async fn change(&self, method: Method, target: &str, told: &Value) -> Result<Answer, Exit> {
        let told = told.to_string();
        let answer = match &self.way {
            Way::Server { changes, .. } => {
                end::of_change(changes.send(&action(method, target, told)?).await)?
            }
            Way::Store { api, .. } => api.ask(method, uri(target)?, told).await.map_err(Exit::Failed)?,
        };
        Ok(end::taken(self.command, answer)??)
    }

    /// Ends what still runs in this process. What runs at a server goes on.
    pub(crate) async fn close(&self) {
        match &self.way {
            Way::Server { .. } => (),
            Way::Store { api, .. } => api.close().await,
        }
    }
}

/// What an answer says.
pub(crate) fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Exit> {
    serde_json::from_slice(&answer.body).map_err(end::not_understood)
}

/// What a part of an answer says.
pub(crate) fn shape<T: DeserializeOwned>(part: Value) -> Result<T, Exit> {
    serde_json::from_value(part).map_err(end::not_understood)
}

fn action(method: Method, target: &str, told: String) -> Result<Action, Exit> {
    let failed = |error: &dyn std::fmt::Display| Exit::Failed(error.to_string());
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).map_err(|error| failed(&error))?;
    Action::new(method, target, key, "application/json", told).map_err(|error| failed(&error))
}

fn uri(target: &str) -> Result<Uri, Exit> {
    target.parse().map_err(|error| Exit::Failed(format!("{target} is no target of a request: {error}")))
}

/// The configuration that was named, or the one that is there.
pub(crate) fn configuration(named: Option<PathBuf>) -> Result<Option<Config>, Faults> {
    let here = || Path::new(FILE_NAME).exists().then(|| PathBuf::from(FILE_NAME));
    named.or_else(here).map(|path| config::load(&path)).transpose()
}

/// The address of the store that was given, or else of the configuration's.
pub(crate) fn store(given: Address, config: Option<&Config>, faults: &mut Faults) -> Option<String> {
    let url = match given {
        Address::Store(url) => Some(url),
        _ => config.and_then(|config| config.store.url.clone()),
    };
    if url.is_none() {
        faults.add("--store", NOWHERE);
    }
    url
}

/// A client of a server, with the token of the environment.
pub(crate) fn settings(url: String, faults: &mut Faults) -> Option<ClientSettings> {
    let token = match std::env::var(TOKEN) {
        Ok(text) => faults.check(TOKEN, Token::parse(&text)).map(Some),
        Err(std::env::VarError::NotPresent) => Some(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            faults.add(TOKEN, "is no text");
            None
        }
    };
    // A command has a person who waits for it, and a bound of its own to what it sends at once: a line that is given up for the sake of
    // others would be sent again by hand.
    Some(ClientSettings { token: token?, budget: None, ..ClientSettings::new(url) })
}

/// The same, ready to be used.
pub(crate) fn client(settings: ClientSettings, faults: &mut Faults) -> Option<Client> {
    let resolved = settings.resolve();
    resolved
        .map_err(|Problems(problems)| {
            for problem in problems {
                faults.add("--server", problem.trim_start_matches("base_url "));
            }
        })
        .ok()
}
