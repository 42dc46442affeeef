//! `ichido judge --forget` deletes stored judgements; it and `--resume` end the pauses that providers asked for.
//!
//! Guarantee: a person sees what would be deleted and confirms it.
// Spec: B7, D6.

use ichido_core::text::table;
use ichido_server::admin::judgements;
use serde_json::json;

use super::Args;
use crate::exit::Exit;
use crate::{out, store};

/// Ends the pauses of a model, or of all without a name, and with `--forget` deletes its judgements.
pub(super) async fn run(args: &Args, model: Option<&str>) -> Result<(), Exit> {
    let deletes = args.forget.is_some();
    let store = store::open_existing(&args.store.clone().into()).await?;
    let flag = if deletes { "--forget" } else { "--resume" };
    let found = judgements::find(&store, model, flag).await?;
    let count: u64 = found.iter().filter(|_| deletes).map(|found| found.judgements).sum();
    let paused = found.iter().filter(|found| found.is_paused).count();
    if !args.json && !found.is_empty() {
        let rows = found.iter().map(|found| {
            let paused = match (found.is_paused, found.paces.is_empty()) {
                (true, _) => "by the provider",
                (false, true) => "no",
                (false, false) => "no, but slowed",
            };
            [found.model.clone(), found.judgements.to_string(), paused.to_owned()]
        });
        out::print(&table(["MODEL", "JUDGEMENTS", "PAUSED"], rows))?;
    }
    if 0 < count && !args.yes {
        out::confirm(
            &count.to_string(),
            &format!("{} would be deleted; to get them again costs as much as before", counted(count)),
        )?;
    }
    for found in &found {
        judgements::resume(&store, found).await?;
        if deletes {
            judgements::delete(&store, found).await?;
        }
    }
    let json = json!({ "forgotten": count, "pauses_ended": paused, "models": found });
    let text = match (deletes, paused) {
        (true, 0) => format!("deleted {}", counted(count)),
        (true, _) => format!("deleted {}; Ichido no longer waits for the provider", counted(count)),
        (false, 0) => "nothing is paused".to_owned(),
        (false, _) => "Ichido no longer waits for the provider: one call asks again".to_owned(),
    };
    out::print_either(args.json, json, text)
}

fn counted(count: u64) -> String {
    if count == 1 { "1 judgement".to_owned() } else { format!("{count} judgements") }
}
