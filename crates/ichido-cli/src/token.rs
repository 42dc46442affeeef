//! `ichido token`: makes, lists and revokes the tokens by which a server lets somebody in.
//!
//! Guarantee: a token is shown once, when it is made; the store keeps the hash of its secret, and no command shows more.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use ichido_core::digest::Digest;
use ichido_core::settings::Faults;
use ichido_core::settings::duration;
use ichido_core::text::table;
use ichido_http::clock;
use ichido_server::serve::token::{self, SECRET_BYTES};
use ichido_store::Store;
use ichido_store::message::QueueName;
use ichido_store::token::{NewToken, Role, Token};
use serde_json::json;
use uuid::Uuid;

use crate::exit::Exit;
use crate::out;
use crate::store::{address, open, open_existing};

/// What `ichido token` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    /// The configuration that names the store [default: ichido.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// Where tokens are kept: sqlite:FILE or postgres://… [default: as the configuration says, else sqlite:ichido.db]
    #[arg(long, global = true, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,

    /// Who does it, for the audit trail
    #[arg(long, global = true, value_name = "NAME", env = "USER", default_value = "cli")]
    by: String,

    /// JSON for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token, and show it this once
    Create {
        /// Its name, for people
        #[arg(value_name = "NAME")]
        name: String,
        /// What its bearer may do
        #[arg(long, value_enum)]
        role: RoleName,
        /// producer: for whom it puts messages in
        #[arg(long, value_name = "NAME")]
        identity: Option<String>,
        /// producer: the queues it puts messages into; may be repeated
        #[arg(long, value_name = "NAME")]
        queue: Vec<String>,
        /// For how long it is good, such as 90d [default: until it is revoked]
        #[arg(long, value_name = "TIME")]
        lives: Option<String>,
    },
    /// List all tokens, without their secrets
    List,
    /// Revoke a token for good
    Revoke {
        /// Its id, as `ichido token list` shows it
        #[arg(value_name = "ID")]
        #[arg(value_parser = crate::id::parse)]
        id: Uuid,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleName {
    Viewer,
    Operator,
    Admin,
    Producer,
}

/// Does as it is told.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let misconfigured = |faults| Exit::Misconfigured { command: "token", faults };
    let url = address(args.store.clone(), args.config.clone()).map_err(misconfigured)?;
    match args.command {
        Command::Create { name, role, identity, queue, lives } => {
            let token = Wish { name, role, identity, queues: queue, lives };
            let (token, text) = token.resolve().map_err(misconfigured)?;
            let store = open(&url).await?;
            store
                .tokens()
                .add(&token, &args.by)
                .await
                .map_err(|error| failed("the token was not made", &error))?;
            if args.json {
                let (id, role) = (token.id.to_string(), token.role.as_str());
                out::line(json!({ "id": id, "name": token.name, "role": role, "token": text }))
            } else {
                out::line(text)
            }
        }
        Command::List => {
            let store = open_existing(&url).await?;
            let tokens =
                store.tokens().list().await.map_err(|error| failed("tokens cannot be listed", &error))?;
            out::say(&if args.json { listed_for_programs(&tokens) } else { listed(&tokens) })
        }
        Command::Revoke { id } => revoke(&open_existing(&url).await?, id, &args.by, args.json).await,
    }
}

/// What somebody would like a token to be.
struct Wish {
    name: String,
    role: RoleName,
    identity: Option<String>,
    queues: Vec<String>,
    lives: Option<String>,
}

impl Wish {
    /// The token, and its text, which is nowhere else.
    fn resolve(self) -> Result<(NewToken, String), Faults> {
        let mut faults = Faults::default();
        let role = self.role(&mut faults);
        let lives = self.lives.map(|text| faults.check("--lives", duration::parse(&text)));
        if self.name.is_empty() {
            faults.add("NAME", "is empty; give the token a name by which people know it");
        }
        let mut random = [0; SECRET_BYTES];
        if let Err(error) = getrandom::fill(&mut random) {
            faults.add("the system", format!("gives no random bytes: {error}"));
        }
        let mut secret = String::with_capacity(2 * SECRET_BYTES);
        for byte in random {
            // A string takes all that is written to it.
            _ = write!(secret, "{byte:02x}");
        }
        let id = Uuid::now_v7();
        let built = role.map(|role| {
            let hash = *Digest::of_bytes(secret.as_bytes()).as_bytes();
            let token = NewToken { id, name: self.name, role, hash, lives: lives.flatten() };
            (token, token::text(id, &secret))
        });
        faults.or(built)
    }

    fn role(&self, faults: &mut Faults) -> Option<Role> {
        let is_bound = self.identity.is_some() || !self.queues.is_empty();
        if is_bound && self.role != RoleName::Producer {
            faults.add(
                "--role",
                "only a producer has an identity and queues; leave --identity and --queue out",
            );
        }
        match self.role {
            RoleName::Viewer => Some(Role::Viewer),
            RoleName::Operator => Some(Role::Operator),
            RoleName::Admin => Some(Role::Admin),
            RoleName::Producer => {
                if self.identity.is_none() {
                    faults.add("--identity", "say for whom the producer puts messages in");
                }
                if self.queues.is_empty() {
                    faults.add("--queue", "say at least one queue that the producer puts messages into");
                }
                let mut queues = Vec::new();
                for name in &self.queues {
                    match QueueName::parse(name) {
                        Some(queue) => queues.push(queue),
                        None => faults.add(
                            "--queue",
                            format!("{name:?} is no name of a queue; it has letters, digits, . _ - and :"),
                        ),
                    }
                }
                self.identity.clone().map(|identity| Role::Producer { identity, queues })
            }
        }
    }
}

async fn revoke(store: &Store, id: Uuid, by: &str, json: bool) -> Result<(), Exit> {
    let revoked = store.tokens().revoke(id, by).await;
    if revoked.map_err(|error| failed("the token was not revoked", &error))? {
        if json {
            return out::line(json!({ "id": id.to_string(), "revoked": true }));
        }
        return out::line(format_args!("revoked {id}; a server lets nobody in by it within seconds"));
    }
    Err(Exit::Failed(format!("there is no token {id} that still lives; `ichido token list` shows all")))
}

fn failed(what: &str, error: &ichido_store::error::StoreError) -> Exit {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Exit::Failed(format!("{what}: {error}{cause}"))
}

fn standing(token: &Token) -> &'static str {
    match token.revoked_at {
        Some(_) => "revoked",
        None if token.is_live(clock::now()) => "live",
        None => "expired",
    }
}

fn bound_to(role: &Role) -> (Option<&str>, Vec<&str>) {
    match role {
        Role::Producer { identity, queues } => {
            (Some(identity.as_str()), queues.iter().map(QueueName::as_str).collect())
        }
        Role::Viewer | Role::Operator | Role::Admin => (None, Vec::new()),
    }
}

fn listed(tokens: &[Token]) -> String {
    let rows = tokens.iter().map(|token| {
        let (identity, queues) = bound_to(&token.role);
        [
            token.id.to_string(),
            token.name.clone(),
            token.role.as_str().to_owned(),
            standing(token).to_owned(),
            identity.unwrap_or_default().to_owned(),
            queues.join(" "),
            token.created_at.to_string(),
            token.expires_at.map(|at| at.to_string()).unwrap_or_default(),
        ]
    });
    table(["ID", "NAME", "ROLE", "STANDING", "IDENTITY", "QUEUES", "CREATED", "EXPIRES"], rows)
}

fn listed_for_programs(tokens: &[Token]) -> String {
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            let (identity, queues) = bound_to(&token.role);
            json!({
                "id": token.id.to_string(),
                "name": token.name,
                "role": token.role.as_str(),
                "standing": standing(token),
                "identity": identity,
                "queues": queues,
                "created_at": token.created_at.to_string(),
                "expires_at": token.expires_at.map(|at| at.to_string()),
                "revoked_at": token.revoked_at.map(|at| at.to_string()),
            })
        })
        .collect();
    format!("{}\n", json!({ "tokens": rows }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(role: RoleName, identity: Option<&str>, queues: &[&str]) -> Wish {
        Wish {
            name: "till 3".to_owned(),
            role,
            identity: identity.map(str::to_owned),
            queues: queues.iter().map(|&name| name.to_owned()).collect(),
            lives: None,
        }
    }

    #[test]
    fn a_token_is_read_back_and_kept_as_a_hash() {
        let (token, text) = wish(RoleName::Viewer, None, &[]).resolve().unwrap();
        let (id, secret) = token::parse(&text).unwrap();
        assert_eq!((id, *Digest::of_bytes(secret.as_bytes()).as_bytes()), (token.id, token.hash));
        let (_, other) = wish(RoleName::Viewer, None, &[]).resolve().unwrap();
        assert_ne!(token::parse(&other).unwrap().1, secret, "each has a secret of its own");
        for wrong in ["", "ichido_", &text[..text.len() - 1], &text.replace("ichido_", "ICHIDO_")] {
            assert_eq!(token::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_producer_is_bound_and_nobody_else_is() {
        let said = |wish: Wish| wish.resolve().map(|_| ()).map_err(|faults| faults.to_string());
        assert_eq!(said(wish(RoleName::Producer, Some("ann"), &["orders"])), Ok(()));
        let unbound = said(wish(RoleName::Producer, None, &[])).unwrap_err();
        assert!(unbound.contains("--identity") && unbound.contains("--queue"), "{unbound}");
        assert!(said(wish(RoleName::Admin, Some("ann"), &[])).unwrap_err().contains("--role"));
        assert!(said(wish(RoleName::Producer, Some("ann"), &["no blanks"])).unwrap_err().contains("--queue"));
    }
}
