//! `ichido token`: creates, lists and revokes access tokens.
//!
//! Guarantee: a token is shown once, when it is created. The store keeps only the hash of its secret, and no command
//! shows more.

use std::time::Duration;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;
use ichido_core::text::table::Column;
use ichido_server::accept;
use ichido_server::admin::{self, ListedToken, TokenRole};
use ichido_server::environment;
use serde_json::json;

use crate::exit::Exit;
use crate::out;
use crate::store::{open, open_existing};
use crate::target::StoreArgs;

/// Arguments of `ichido token`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    store: StoreArgs,

    /// Your name, for the audit trail [default: USER, LOGNAME or the user id]
    #[arg(long, global = true, value_name = "NAME", default_value_t = environment::user(), hide_default_value = true)]
    by: String,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token and show it once
    Create(Create),
    /// List all tokens without their secrets
    List,
    /// Revoke a token permanently
    Revoke {
        /// Id of the token, or its name
        #[arg(value_name = "ID")]
        named: String,
    },
}

/// Arguments of `ichido token create`.
#[derive(Debug, clap::Args)]
struct Create {
    /// Name of the token
    #[arg(value_name = "NAME")]
    name: String,
    /// Role of the token
    #[arg(long, value_parser = PossibleValuesParser::new(["viewer", "operator", "admin", PRODUCER]))]
    role: String,
    /// For a producer: identity of its messages
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// For a producer: queue it may send to; repeatable
    #[arg(long, value_name = "NAME")]
    queue: Vec<String>,
    /// Lifetime, such as 90d [default: until revoked]
    #[arg(long, value_name = "TIME")]
    expires_in: Option<String>,
}

/// The only role that is bound to an identity and to queues.
const PRODUCER: &str = "producer";

/// Printed after a new token, to standard error: the output remains the token alone.
const SHOWN_ONCE: &str = "\
Store this token now: it is shown only once.
Set it as ICHIDO_TOKEN, or send it as `Authorization: Bearer TOKEN`.
";

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let found = args.store.find()?;
    match args.command {
        Command::Create(create) => {
            let (role, expires_in) = create.resolve()?;
            let store = open(&found.url).await?;
            let made = admin::create_token(&store, create.name, role, expires_in, &args.by).await?;
            out::print_either(args.json, json!(made), &made.token)?;
            out::eprint(if args.json { "" } else { SHOWN_ONCE });
            Ok(())
        }
        Command::List => {
            let tokens = admin::list_tokens(&open_existing(&found).await?).await?;
            let object = json!({ "tokens": tokens });
            out::print_either(args.json, object, render_list(tokens).trim_end())
        }
        Command::Revoke { named } => {
            let id = admin::revoke_token(&open_existing(&found).await?, &named, &args.by).await?;
            let text = format_args!("revoked {id}; servers refuse it within seconds");
            out::print_either(args.json, json!({ "id": id, "revoked": true }), text)
        }
    }
}

impl Create {
    /// Returns the role and the lifetime, or all errors.
    fn resolve(&self) -> Result<(TokenRole, Option<Duration>), ConfigErrors> {
        let mut faults = ConfigErrors::default();
        if self.name.is_empty() {
            faults.add("NAME", "is empty; give the token a name that people recognise");
        }
        let expires_in =
            self.expires_in.as_deref().and_then(|text| faults.check("--expires-in", duration::parse(text)));
        let role = self.role(&mut faults);
        faults.or(Some((role, expires_in)))
    }

    fn role(&self, faults: &mut ConfigErrors) -> TokenRole {
        let is_bound = self.identity.is_some() || !self.queue.is_empty();
        if is_bound && self.role != PRODUCER {
            let what = "only a producer has an identity and queues; remove --identity and --queue";
            faults.add("--role", what);
        }
        match self.role.as_str() {
            "viewer" => return TokenRole::Viewer,
            "operator" => return TokenRole::Operator,
            "admin" => return TokenRole::Admin,
            _ => (),
        }
        if self.identity.is_none() {
            faults.add("--identity", "is required for a producer: the identity of its messages");
        }
        if self.queue.is_empty() {
            faults.add("--queue", "is required for a producer: at least one queue that it may send to");
        }
        let queues = self.queue.iter().filter_map(|name| {
            let queue = accept::queue_name(name).map_err(|what| format!("{name:?} {what}"));
            faults.check("--queue", queue)
        });
        TokenRole::Producer { queues: queues.collect(), identity: self.identity.clone().unwrap_or_default() }
    }
}

fn render_list(tokens: Vec<ListedToken>) -> String {
    let rows = tokens.into_iter().map(|token| {
        [
            token.id.to_string(),
            token.name,
            token.role.to_owned(),
            token.standing.to_owned(),
            token.identity.unwrap_or_default(),
            token.queues.join(" "),
            token.created_at,
            token.expires_at.unwrap_or_default(),
        ]
    });
    let columns = [
        // Whole, because `revoke` needs it.
        Column::text("ID"),
        Column::free("NAME"),
        Column::text("ROLE"),
        Column::text("STATE"),
        Column::free("IDENTITY"),
        Column::free("QUEUES"),
        Column::past("CREATED").spare(),
        Column::next("EXPIRES"),
    ];
    out::view().table(columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_producer_is_bound_to_identity_and_queues() {
        let resolved = |role: &str, identity: Option<&str>, queues: &[&str]| {
            let create = Create {
                name: "till 3".to_owned(),
                role: role.to_owned(),
                identity: identity.map(str::to_owned),
                queue: queues.iter().map(|&name| name.to_owned()).collect(),
                expires_in: None,
            };
            create.resolve().map(drop).map_err(|faults| faults.to_string())
        };
        assert_eq!(resolved(PRODUCER, Some("ann"), &["orders"]), Ok(()));
        let unbound = resolved(PRODUCER, None, &[]).unwrap_err();
        assert!(unbound.contains("--identity") && unbound.contains("--queue"), "{unbound}");
        assert!(resolved("admin", Some("ann"), &[]).unwrap_err().contains("--role"));
        assert!(resolved(PRODUCER, Some("ann"), &["no blanks"]).unwrap_err().contains("--queue"));
    }
}
