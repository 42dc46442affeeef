//! Lists entries.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use ichido_client::queue::{Entry, EntryFilter, EntryId, MAX_PAGE, OfflineQueue, State};
use ichido_core::text::table::Column;
use serde_json::{Value, json};

use super::queue_failure;
use crate::api_client::format;
use crate::exit::Exit;
use crate::out;

/// The maximum number of entries in a list.
const MAX_LIMIT: u32 = 100_000;

/// Selects entries; all given filters must match.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Offline queue file
    pub(super) file: PathBuf,
    /// In this state
    #[arg(long, value_parser = PossibleValuesParser::new(State::ALL.map(State::as_str)))]
    state: Option<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LIMIT)))]
    limit: u32,
    /// List only entries after this id
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
}

pub(super) async fn run(queue: &OfflineQueue, args: &Args, is_json: bool) -> Result<(), Exit> {
    let state = args.state.as_deref().and_then(State::parse);
    let mut filter = EntryFilter { after: args.after.map(EntryId::new), state, destination: None };
    let mut left = args.limit;
    let mut rows = Vec::new();
    while 0 < left {
        let page = queue
            .list(&filter, left.min(MAX_PAGE))
            .await
            .map_err(|error| queue_failure(&args.file, &error))?;
        let Some(last) = page.last() else {
            break;
        };
        filter.after = Some(last.id);
        left -= u32::try_from(page.len()).unwrap_or(left).min(left);
        for entry in page {
            if is_json { out::print_line(to_json(&entry))? } else { rows.push(row(&entry)) }
        }
    }
    if !is_json {
        if rows.is_empty() {
            out::print_line("no matching entries")?;
        } else {
            out::print_table(HEAD, rows)?;
        }
    }
    if let (0, Some(last)) = (left, filter.after) {
        // On standard error, so JSON output contains only objects.
        out::eprint(&format!("there may be more; continue with --after {last}\n"));
    }
    Ok(())
}

const HEAD: [Column; 9] = [
    Column::text("ID"),
    Column::state("STATE"),
    Column::past("CREATED"),
    Column::free("SERVER").spare(),
    Column::free("PATH"),
    Column::free("KEY"),
    Column::text("SENDS").spare(),
    Column::text("EFFECT"),
    Column::free("REASON"),
];

fn row(entry: &Entry) -> [String; 9] {
    let reason = entry.reason.as_ref();
    let reason_text =
        format::error(reason.map(|reason| reason.code.as_str()), reason.map(|reason| reason.text.as_str()));
    let reason_text = match entry.due_in {
        Some(due) => format!("in {} s: {reason_text}", due.as_secs() + 1),
        None => reason_text,
    };
    [
        entry.id.to_string(),
        entry.state.to_string(),
        entry.created.to_string(),
        entry.destination.clone(),
        entry.path.clone(),
        entry.key.as_str().to_owned(),
        entry.sends.to_string(),
        format::effect(entry.effect.as_str()),
        reason_text,
    ]
}

fn to_json(entry: &Entry) -> Value {
    json!({
        "entry": entry.id.get(),
        "state": entry.state.as_str(),
        "destination": entry.destination,
        "method": entry.method,
        "path": entry.path,
        "idempotency_key": entry.key.as_str(),
        "body_bytes": entry.body_bytes,
        "created_at": entry.created.to_string(),
        "attempts": entry.attempts,
        "sends": entry.sends,
        "first_sent_at": entry.first_sent.map(|at| at.to_string()),
        "due_in_ms": entry.due_in.map(|due| u64::try_from(due.as_millis()).unwrap_or(u64::MAX)),
        "effect": entry.effect.as_str(),
        "code": entry.reason.as_ref().map(|reason| reason.code.as_str()),
        "reason": entry.reason.as_ref().map(|reason| reason.text.as_str()),
    })
}
