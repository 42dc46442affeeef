//! `ichido ledger`: lists actions of unknown outcome, and records a person's decision about them.
//!
//! Guarantee: a command is a request to the API, and means the same at a server and on the store. A decision changes
//! one record, only while its outcome is unknown, and accepts "nothing was done" only after the call can no longer be
//! in flight. The audit trail records who decided. Keys are shown in full, because a decision names one; payloads are
//! never shown.
// Spec: F2.

use clap::{Subcommand, ValueEnum};
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::limits;
use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;
use ichido_server::serve::views::LedgerRecord;
use serde_json::{Value, json};

use crate::api_client::{ApiArgs, ApiClient, List};
use crate::exit::Exit;

/// The API's limit on the records of one page.
const PAGE_MAX: u32 = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List key records with an unknown outcome, oldest first
    Unknown,
    /// Decide a key record with an unknown outcome
    Decide {
        /// What happened
        #[arg(value_enum)]
        finding: KeyDecision,
        /// Operation, as listed
        #[arg(long, value_name = "NAME")]
        operation: String,
        /// Identity, as listed
        #[arg(long, value_name = "NAME")]
        identity: String,
        /// Idempotency key, as listed
        #[arg(long, value_name = "KEY")]
        key: String,
        /// How long after its claim a call may still take effect; "nothing-done" counts only later
        #[arg(long, value_name = "TIME", default_value = "10m")]
        settles_within: String,
    },
}

ichido_core::words! {
    /// What an operator found out about an action.
    #[derive(Clone, Copy, Debug, ValueEnum)]
    pub(crate) enum KeyDecision {
        /// It took effect: later requests report it as done
        Applied = "applied",
        /// It was refused: later requests report it as refused
        Refused = "refused",
        /// It had no effect: the next request with the key runs
        NothingDone = "nothing_done",
    }
}

impl KeyDecision {
    const fn describe(self) -> &'static str {
        match self {
            Self::Applied => "decided: it took effect; later requests report it as done",
            Self::Refused => "decided: it was refused; later requests report it as refused",
            Self::NothingDone => "decided: it had no effect; the key is released",
        }
    }
}

/// Runs the command.
pub(crate) async fn run(args: ApiArgs<Command>) -> Result<(), Exit> {
    match args.command {
        Command::Unknown => list(&ApiClient::open(args.connect).await?).await,
        Command::Decide { finding, operation, identity, key, settles_within } => {
            check(&key, &settles_within)?;
            let body = json!({
                "operation": operation,
                "identity": identity,
                "key": key,
                "finding": finding.as_str(),
                "settles_within": settles_within,
            });
            let api = ApiClient::open(args.connect).await?;
            let answer = api.post("/v1/ledger/decide", &body).await?;
            api.print(&answer, |_: Value| finding.describe().to_owned())
        }
    }
}

/// Reports all errors in the flags at once, before anything is opened.
fn check(key: &str, settles_within: &str) -> Result<(), ConfigErrors> {
    let mut faults = ConfigErrors::default();
    faults.check("--key", IdempotencyKey::parse(key));
    faults.check("--settles-within", duration::parse(settles_within));
    faults.or(Some(()))
}

async fn list(api: &ApiClient) -> Result<(), Exit> {
    let list = List {
        page_max: Some(PAGE_MAX),
        none: "no unknown outcomes",
        ..List::new("/v1/ledger/unknown", "records", ["SINCE", "OPERATION", "IDENTITY", "KEY"])
    };
    let row = |record: LedgerRecord| {
        [record.first_claimed_at, record.operation, record.identity, record.idempotency_key]
    };
    api.list(list, row).await.map(drop)
}

/// The help repeats the default, where it must be text.
const _: () = assert!(limits::SETTLES_WITHIN_DEFAULT.as_secs() == 600);
