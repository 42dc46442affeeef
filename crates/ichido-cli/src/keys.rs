//! `ichido keys`: finds what was done under a key, lists actions of unknown outcome, and records a person's decision about them.
//!
//! Guarantee: a command is a request to the API, and means the same at a server and on the store. A decision changes
//! one record, only while its outcome is unknown, and accepts "nothing was done" only once the call can no longer be
//! in flight. The audit trail records who decided. Keys are shown in full, because a decision names one; payloads are
//! never shown.
// Spec: A6, C5, D10, F2.

mod find;

use clap::Subcommand;
use ichido_core::key::{IdempotencyKey, KeySyntax};
use ichido_core::ledger::limits;
use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;
use ichido_core::text::table::Column;
use ichido_server::serve::views::KeyRecord;
use serde_json::{Value, json};

use crate::api_client::{ApiArgs, ApiClient, List};
use crate::dead::OperatorDecision;
use crate::exit::Exit;

/// The API's limit on the records of one page.
const MAX_PAGE: u32 = 100;

pub(crate) const EXAMPLES: &str = "\
Examples:
  ichido keys find --key 01JABCXYZ-ULID-5678
  ichido keys find --hash 173d0ddbff034193 --server http://127.0.0.1:4180
  ichido keys unknown
  ichido keys decide done --operation orders.create --identity ann --key order-4711

Logs contain the hash of a key: printf %s \"$KEY\" | sha256sum | cut -c1-16";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find requests and messages by key, or by its hash
    Find(find::Args),
    /// List key records with an unknown outcome, oldest first
    Unknown,
    /// Decide a key record with an unknown outcome
    Decide {
        /// What happened
        #[arg(value_enum)]
        decision: OperatorDecision,
        /// Operation, as listed
        #[arg(long, value_name = "NAME")]
        operation: String,
        /// Identity, as listed
        #[arg(long, value_name = "NAME")]
        identity: String,
        /// Idempotency key, as listed
        #[arg(long, value_name = "KEY")]
        key: String,
        /// How long to refuse not-done if the response was lost
        #[arg(long, value_name = "TIME", default_value = "10m")]
        settle_grace: String,
    },
}

const fn describe(decision: OperatorDecision) -> &'static str {
    match decision {
        OperatorDecision::Done => "decided: it took effect; later requests report it as done",
        OperatorDecision::NotDone => "decided: it had no effect; the key is released",
        OperatorDecision::GiveUp => "decided: its effect stays unknown; later requests are refused",
    }
}

/// Runs the command.
pub(crate) async fn run(args: ApiArgs<Command>) -> Result<(), Exit> {
    match args.command {
        Command::Find(find) => find::run(find, args.connect).await,
        Command::Unknown => list(&ApiClient::open(args.connect).await?).await,
        Command::Decide { decision, operation, identity, key, settle_grace } => {
            check(&key, &settle_grace)?;
            let body = json!({
                "operation": operation,
                "identity": identity,
                "key": key,
                "decision": decision.as_str(),
                "settle_grace": settle_grace,
            });
            let api = ApiClient::open(args.connect).await?;
            let answer = api.post("/v1/keys/decide", &body).await?;
            api.print(&answer, |_: Value| describe(decision).to_owned())
        }
    }
}

/// Reports all errors in the flags at once, before anything is opened.
fn check(key: &str, settle_grace: &str) -> Result<(), ConfigErrors> {
    let mut faults = ConfigErrors::default();
    faults.check("--key", IdempotencyKey::parse_as(key, KeySyntax::AnyString));
    faults.check("--settle-grace", duration::parse(settle_grace));
    faults.or(Some(()))
}

const HEAD: [Column; 4] =
    [Column::past("SINCE"), Column::text("OPERATION"), Column::free("IDENTITY"), Column::free("KEY")];

async fn list(api: &ApiClient) -> Result<(), Exit> {
    let list = List {
        max_page: Some(MAX_PAGE),
        none: "no unknown outcomes",
        ..List::new("/v1/keys/unknown", "records", HEAD)
    };
    let row = |record: KeyRecord| {
        [record.created_at, record.operation.unwrap_or_default(), record.identity, record.idempotency_key]
    };
    api.list(list, row).await
}

/// The help repeats the default, where it must be text.
const _: () = assert!(limits::SETTLE_GRACE_DEFAULT.as_secs() == 600);
