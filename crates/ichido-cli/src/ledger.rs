//! `ichido ledger`: actions of unknown outcome are listed, and decided by a person (SPEC F2).
//!
//! Guarantee: a decision changes one record, only while its outcome is unknown, and "nothing was done" only when the call
//! can no longer be travelling; it is an entry of the audit trail, with who decided. Keys are shown whole here, because a decision names one; no payload is shown.

use clap::{Subcommand, ValueEnum};
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Resolution, limits};
use ichido_store::Store;
use ichido_store::ledger::limits::PAGE_MAX;
use ichido_store::ledger::{KeyRecord, KeyResolved};
use serde_json::json;

use crate::duration;
use crate::exit::Exit;
use crate::faults::Faults;
use crate::out;
use crate::store::open_existing;
use crate::table::table;

/// What `ichido ledger` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Where outcomes are kept: sqlite:FILE or postgres://…
    #[arg(long, global = true, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the actions of which nobody knows the outcome, oldest first
    Unknown {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Say what came of one of them
    Decide {
        /// What you found out
        #[arg(value_enum)]
        finding: Finding,
        /// Its operation, as listed
        #[arg(long, value_name = "NAME")]
        operation: String,
        /// Its identity, as listed
        #[arg(long, value_name = "NAME")]
        identity: String,
        /// Its key, as listed
        #[arg(long, value_name = "KEY")]
        key: String,
        /// How long after its claim a call may still take effect; "nothing-done" counts only after it
        #[arg(long, value_name = "TIME", default_value = "10m")]
        settles_within: String,
        /// Who you are, for the audit
        #[arg(long, value_name = "NAME", env = "USER", default_value = "unknown")]
        by: String,
    },
}

/// What a person found out about an action.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Finding {
    /// It took effect: its requests are told that it was done
    Applied,
    /// It was refused: its requests are told that it was answered
    Refused,
    /// Nothing was done: the key is free, and the next request under it runs
    NothingDone,
}

impl Finding {
    const fn resolution(self) -> Resolution {
        match self {
            Self::Applied => Resolution::Applied,
            Self::Refused => Resolution::Refused,
            Self::NothingDone => Resolution::NothingDone,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Applied => "decided: it took effect; its requests are told that it was done",
            Self::Refused => "decided: it was refused; its requests are told so",
            Self::NothingDone => "decided: nothing was done; the key is free again",
        }
    }
}

/// Does as it is told.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Some(url) = args.store else {
        let mut faults = Faults::default();
        faults
            .add("--store", "say where outcomes are kept: sqlite:FILE or postgres://…, or set ICHIDO_STORE");
        return Err(Exit::Misconfigured { command: "ledger", faults });
    };
    match args.command {
        Command::Unknown { json } => list(&open_existing(&url).await?, json).await,
        Command::Decide { finding, operation, identity, key, settles_within, by } => {
            let (key, policy) = checked(&key, &settles_within)?;
            let name = RecordName { operation, identity, key };
            decide(&open_existing(&url).await?, name, finding, &policy, &by).await
        }
    }
}

fn checked(key: &str, settles_within: &str) -> Result<(IdempotencyKey, Policy), Exit> {
    let mut faults = Faults::default();
    let key = faults.check("--key", IdempotencyKey::parse(key));
    let settles_within = faults.check("--settles-within", duration::parse(settles_within));
    let policy = settles_within.and_then(|settles_within| {
        // What was decided is kept for the default time: nobody knows how long its operation would have kept it.
        let draft =
            PolicyDraft { settles_within: Some(settles_within), ..PolicyDraft::of(Class::ExternalEffect) };
        faults.check("--settles-within", Policy::build(draft))
    });
    let command = "ledger decide";
    faults.or(key.zip(policy)).map_err(|faults| Exit::Misconfigured { command, faults })
}

async fn list(store: &Store, json: bool) -> Result<(), Exit> {
    let mut after = None;
    let mut count = 0;
    loop {
        let page = store.key_unknown_list(after, PAGE_MAX).await;
        let page = page.map_err(|error| Exit::Failed(format!("the ledger cannot be read: {error}")))?;
        let Some(last) = page.last() else { break };
        after = Some((last.record.first_claimed_at, last.name.hash()));
        count += page.len();
        if json {
            for record in &page {
                out::line(as_json(record))?;
            }
        } else {
            out::say(&as_table(&page))?;
        }
    }
    if count == 0 && !json {
        out::line("nothing is unknown")?;
    }
    Ok(())
}

fn as_json(record: &KeyRecord) -> serde_json::Value {
    let KeyRecord { name, record, request_digest, hops, trace, .. } = record;
    json!({
        "operation": name.operation,
        "identity": name.identity,
        "key": name.key.as_str(),
        "key_hash": name.key.log_hash(),
        "first_claimed_at": record.first_claimed_at.to_string(),
        "claimed_at": record.claimed_at.to_string(),
        "request_digest": request_digest.to_string(),
        "hops": hops,
        "trace": trace,
    })
}

fn as_table(page: &[KeyRecord]) -> String {
    let rows = page.iter().map(|KeyRecord { name, record, .. }| {
        let since = record.first_claimed_at.to_string();
        [since, name.operation.clone(), name.identity.clone(), name.key.as_str().to_owned()]
    });
    table(["SINCE", "OPERATION", "IDENTITY", "KEY"], rows)
}

async fn decide(
    store: &Store,
    name: RecordName,
    finding: Finding,
    policy: &Policy,
    by: &str,
) -> Result<(), Exit> {
    match store.key_decide(&name, finding.resolution(), None, policy, by).await {
        Ok(KeyResolved::Stands) => out::line(finding.words()),
        Ok(KeyResolved::Refused(why)) => Err(Exit::Failed(why.to_string())),
        Ok(KeyResolved::Missing) => Err(Exit::Failed(
            "there is no record of this operation, identity and key; `ichido ledger unknown` lists what can be decided".to_owned(),
        )),
        Err(error) => Err(Exit::Failed(format!("the decision could not be stored: {error}"))),
    }
}

/// The default stands in the help, where it must be a text.
const _: () = assert!(limits::SETTLES_WITHIN_DEFAULT.as_secs() == 600);
