//! The API client of the commands.
//!
//! It calls a running server over HTTP, or the API in this process on the store.
//!
//! Guarantee: a command is written once, against the API, and means the same with both transports. A read is retried
//! if that helps. A change is sent once, and if its outcome is unknown, the error says so. Tokens are read from the
//! environment or `.env` only, and never shown.

pub(crate) mod format;
mod outcome;

use std::net::SocketAddr;
use std::num::NonZeroU32;

use clap::Subcommand;
use form_urlencoded::Serializer;
use http::{HeaderName, HeaderValue, Method, Uri};
use ichido_client::{Action, Client, ClientConfigErrors, ClientSettings, MAX_ANSWER_BYTES, Response, Token};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

use ichido_core::settings::ConfigErrors;
use ichido_core::text::table::Column;
use ichido_server::environment;
use ichido_server::serve::InProcessApi;
use ichido_server::target::Target;
pub(crate) use outcome::{ApiProblem, describe_failure, describe_redirect};

use crate::exit::Exit;
use crate::out;
use crate::store::open_existing;
use crate::target::TargetArgs;

/// The caller's token. It is never a flag: every user of a machine can read a program's flags.
const TOKEN: &str = "ICHIDO_TOKEN";

/// Names the person to a server without tokens.
const ACTOR: HeaderName = HeaderName::from_static("ichido-actor");

/// The arguments of a command whose subcommands are requests to the API.
#[derive(Debug, clap::Args)]
pub(crate) struct ApiArgs<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: C,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// How to reach the API, and as which user.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Your name for the audit trail; a server with tokens uses the token's [default: USER, LOGNAME or the user id]
    #[arg(long, global = true, value_name = "NAME", default_value_t = environment::user(), hide_default_value = true)]
    by: String,

    /// Print JSON, one object per line
    #[arg(long, global = true)]
    json: bool,
}

/// A client of the API.
pub(crate) struct ApiClient {
    /// Whether output is JSON.
    pub(crate) json: bool,
    transport: Transport,
}

enum Transport {
    Server {
        /// Retries if that helps.
        reads: Box<Client>,
        /// Sends once: operator requests have no key, so a retry could act twice.
        changes: Box<Client>,
        /// Who changes something, for a server without tokens.
        by: HeaderValue,
    },
    Store {
        api: InProcessApi,
    },
}

impl Transport {
    fn server(settings: ClientSettings, by: &str, faults: &mut ConfigErrors) -> Option<Self> {
        // A page of messages, or the body of one, is longer than the response to an enqueue.
        let settings = ClientSettings { max_response_bytes: MAX_ANSWER_BYTES, ..settings };
        let once = Retry { max_attempts: NonZeroU32::MIN, ..Retry::CLIENT };
        let changes = build_client(ClientSettings { retry: once, ..settings.clone() }, faults);
        let reads = build_client(settings, faults);
        let by = faults
            .check("--by", HeaderValue::from_bytes(by.as_bytes()).map_err(|_| "has control characters"));
        Some(Self::Server { reads: Box::new(reads?), changes: Box::new(changes?), by: by? })
    }
}

impl ApiClient {
    /// Creates a client of a server that runs in this process and needs no token.
    pub(crate) fn local(address: SocketAddr) -> Result<Self, Exit> {
        let mut faults = ConfigErrors::default();
        let settings = ClientSettings::new(format!("http://{address}"));
        let transport = Transport::server(settings, "local", &mut faults);
        Ok(Self { json: false, transport: faults.or(transport)? })
    }

    /// Opens a store, or prepares to call a server without calling it yet.
    pub(crate) async fn open(args: ConnectArgs) -> Result<Self, Exit> {
        let mut faults = ConfigErrors::default();
        let transport = match args.target.find().await? {
            Target::Server { url, is_named } => {
                let transport = client_settings(url, is_named, &mut faults)
                    .and_then(|settings| Transport::server(settings, &args.by, &mut faults));
                faults.or(transport)?
            }
            Target::Store(found) => {
                let store = open_existing(&found).await?;
                Transport::Store { api: InProcessApi::new(store, found.config.as_ref(), args.by) }
            }
        };
        Ok(Self { json: args.json, transport })
    }

    /// Reads a target: a path of the API, with a query if there is one.
    pub(crate) async fn get(&self, target: &str) -> Result<Response, Exit> {
        Ok(self.try_get(target).await??)
    }

    /// Reads a target for a command that handles the problem itself.
    pub(crate) async fn try_get(&self, target: &str) -> Result<Result<Response, ApiProblem>, Exit> {
        let answer = match &self.transport {
            Transport::Server { reads, .. } => outcome::of_read(reads.read(target).await.map_err(failed)?)?,
            Transport::Store { api } => {
                api.ask(Method::GET, uri(target)?, String::new()).await.map_err(Exit::Failed)?
            }
        };
        outcome::into_result(answer)
    }

    /// Sends a body unchanged, under a key.
    pub(crate) async fn submit(
        &self,
        target: &str,
        key: IdempotencyKey,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Result<Response, ApiProblem>, Exit> {
        let answer = match &self.transport {
            Transport::Server { changes, by, .. } => {
                let action = Action::new(Method::POST, target, key, content_type, body);
                let action = action.and_then(|action| action.with_header(ACTOR, by.clone()));
                outcome::of_change(changes.send(&action.map_err(failed)?).await)?
            }
            Transport::Store { api } => {
                let put = api.put_in(uri(target)?, &key, content_type, None, body).await;
                put.map_err(Exit::Failed)?
            }
        };
        outcome::into_result(answer)
    }

    /// Requests a change with a JSON body.
    pub(crate) async fn post(&self, target: &str, body: &Value) -> Result<Response, Exit> {
        self.change(Method::POST, target, body).await
    }

    /// Requests a change with another method.
    pub(crate) async fn change(&self, method: Method, target: &str, body: &Value) -> Result<Response, Exit> {
        let body = body.to_string();
        let answer = match &self.transport {
            Transport::Server { changes, by, .. } => {
                outcome::of_change(changes.send(&action(method, target, body, by)?).await)?
            }
            Transport::Store { api } => api.ask(method, uri(target)?, body).await.map_err(Exit::Failed)?,
        };
        Ok(outcome::into_result(answer)??)
    }

    /// Reads a list that the API returns in one page.
    pub(crate) async fn items<T: DeserializeOwned>(&self, path: &str, member: &str) -> Result<Vec<T>, Exit> {
        let mut page: Map<String, Value> = decode(&self.get(path).await?)?;
        decode_value(page.remove(member).unwrap_or_default())
    }

    /// Prints the result of a request: the response as JSON, or a line for people.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        answer: &Response,
        words: impl FnOnce(T) -> String,
    ) -> Result<(), Exit> {
        if self.json {
            out::print_line(decode::<Value>(answer)?)
        } else {
            out::print_line(words(decode(answer)?))
        }
    }

    /// Prints a list page by page, up to `limit` items.
    ///
    /// JSON items are printed as each page arrives. Standard error says how to go on, if there may be more.
    pub(crate) async fn list<T: DeserializeOwned, const N: usize>(
        &self,
        list: List<'_, N>,
        row: impl Fn(T) -> [String; N],
    ) -> Result<(), Exit> {
        let (mut left, mut next, mut rows): (_, Option<String>, _) = (list.limit, list.after, Vec::new());
        loop {
            let mut query = Serializer::new(String::new());
            query.extend_pairs(&list.query);
            query.extend_pairs(list.max_page.map(|most| ("limit", left.min(most).to_string())));
            let is_cursor_given = next.is_some();
            query.extend_pairs(next.map(|cursor| ("cursor", cursor)));
            let target = format!("{}?{}", list.path, query.finish());
            let answer = match self.try_get(target.trim_end_matches('?')).await? {
                // The API names its parameter, not our flag.
                Err(problem) if is_cursor_given && problem.message().starts_with("cursor ") => {
                    let what = "is not a valid cursor; pass the one printed after the previous page";
                    return Err(Exit::invalid("--after", what));
                }
                answer => answer?,
            };
            let mut page: Map<String, Value> = decode(&answer)?;
            let items: Vec<Value> = decode_value(page.remove(list.member).unwrap_or_default())?;
            // A server that returns more items than requested does not make the list longer.
            for item in items.into_iter().take(left as usize) {
                left -= 1;
                if self.json {
                    out::print_line((list.to_json)(decode_value(item)?))?;
                } else {
                    rows.push(row(decode_value(item)?));
                }
            }
            next = decode_value(page.remove("next").unwrap_or_default())?;
            if left == 0 || next.is_none() {
                break;
            }
        }
        if !rows.is_empty() {
            out::print_table(list.head, rows)?;
        } else if !self.json {
            out::print_line(list.none)?;
        }
        if let Some(next) = next {
            // On standard error, so JSON output contains only objects.
            let how = if list.has_after {
                format!("continue with --after {next}")
            } else {
                "raise --limit".to_owned()
            };
            out::eprint(&format!("there may be more; {how}\n"));
        }
        Ok(())
    }

    /// Stops what still runs in this process. Work at a server continues.
    pub(crate) async fn close(&self) {
        match &self.transport {
            Transport::Server { .. } => (),
            Transport::Store { api } => api.close().await,
        }
    }
}

/// A list of the API, and how it is printed.
pub(crate) struct List<'a, const N: usize> {
    pub(crate) path: &'a str,
    /// The member of the response that holds the items.
    pub(crate) member: &'static str,
    pub(crate) query: Vec<(&'static str, String)>,
    /// The API's limit on a page; `None` if it returns all at once.
    pub(crate) max_page: Option<u32>,
    /// The maximum number of items in total.
    pub(crate) limit: u32,
    /// The cursor to start at.
    pub(crate) after: Option<String>,
    /// Whether the command can start at a cursor.
    pub(crate) has_after: bool,
    pub(crate) head: [Column; N],
    /// The text to print if the list is empty.
    pub(crate) none: &'static str,
    /// Converts an item to its JSON output.
    pub(crate) to_json: fn(Map<String, Value>) -> Value,
}

impl<'a, const N: usize> List<'a, N> {
    /// Creates a list that the API returns in one page.
    pub(crate) const fn new(path: &'a str, member: &'static str, head: [Column; N]) -> Self {
        Self {
            path,
            member,
            query: Vec::new(),
            max_page: None,
            limit: u32::MAX,
            after: None,
            has_after: false,
            head,
            none: "no results",
            to_json: Value::Object,
        }
    }
}

/// Decodes the body of a response.
pub(crate) fn decode<T: DeserializeOwned>(answer: &Response) -> Result<T, Exit> {
    serde_json::from_slice(&answer.body).map_err(outcome::unexpected_response)
}

/// Decodes a part of a response.
pub(crate) fn decode_value<T: DeserializeOwned>(part: Value) -> Result<T, Exit> {
    serde_json::from_value(part).map_err(outcome::unexpected_response)
}

fn action(method: Method, target: &str, body: String, by: &HeaderValue) -> Result<Action, Exit> {
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).map_err(failed)?;
    let action = Action::new(method, target, key, "application/json", body);
    action.and_then(|action| action.with_header(ACTOR, by.clone())).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Exit {
    Exit::Failed(error.to_string())
}

fn uri(target: &str) -> Result<Uri, Exit> {
    target.parse().map_err(|error| Exit::Failed(format!("{target} is not a valid request target: {error}")))
}

/// Returns the settings of a client, with the token of the environment if the caller named the server.
pub(crate) fn client_settings(
    url: String,
    is_named: bool,
    faults: &mut ConfigErrors,
) -> Option<ClientSettings> {
    let token = match environment::variable(TOKEN) {
        _ if !is_named => Some(None),
        Ok(text) => faults.check(TOKEN, Token::parse(&text)).map(Some),
        Err(std::env::VarError::NotPresent) => Some(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            faults.add(TOKEN, "is not valid UTF-8");
            None
        }
    };
    // A person waits for the command, and the command itself bounds how much it sends at once. A line that the budget
    // gave up would be sent again by hand.
    Some(ClientSettings { token: token?, budget: None, ..ClientSettings::new(url) })
}

/// Builds a client from its settings.
pub(crate) fn build_client(settings: ClientSettings, faults: &mut ConfigErrors) -> Option<Client> {
    let resolved = settings.resolve();
    resolved
        .map_err(|ClientConfigErrors(problems)| {
            for problem in problems {
                faults.add("--server", problem.trim_start_matches("base_url "));
            }
        })
        .ok()
}
