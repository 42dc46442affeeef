//! `ichido judge --forget`: deletes stored judgements, and ends the pauses that providers asked for.
//!
//! Guarantee: a person sees what would be deleted and confirms it.
// Spec: B7, D6.

use ichido_core::text::table;
use ichido_server::admin::judgements;
use serde_json::json;

use super::Args;
use crate::exit::Exit;
use crate::{out, store};

/// Deletes the judgements of a model, or of all without a name.
pub(super) async fn run(args: &Args, model: &str) -> Result<(), Exit> {
    let store = store::open_existing(&args.store.clone().into()).await?;
    let found = judgements::find(&store, Some(model).filter(|model| !model.is_empty())).await?;
    let count: u64 = found.iter().map(|found| found.judgements).sum();
    let paused = found.iter().filter(|found| !found.paused.is_empty()).count();
    if !args.json && !found.is_empty() {
        let rows = found.iter().map(|found| {
            let paused = if found.paused.is_empty() { "no" } else { "by the provider" };
            [found.model.clone(), found.judgements.to_string(), paused.to_owned()]
        });
        out::print(&table(["MODEL", "JUDGEMENTS", "PAUSED"], rows))?;
    }
    if 0 < count && !args.yes {
        out::confirm(
            count,
            &format!("{count} judgements would be deleted; to get them again costs as much as before"),
        )?;
    }
    for found in &found {
        judgements::delete(&store, found).await?;
    }
    let json = json!({ "forgotten": count, "pauses_ended": paused, "models": found });
    let then = if paused == 0 { "" } else { "; Ichido no longer waits for the provider" };
    out::print_either(args.json, json, format_args!("deleted {count} judgements{then}"))
}
