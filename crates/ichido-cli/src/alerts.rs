//! `ichido alerts`: what fires, and what did (SPEC A15).
//!
//! Guarantee: a command is a request to the API, and means the same at a server and straight on the store. It changes nothing: an alert
//! is over when what it is about is.

use form_urlencoded::Serializer;
use ichido_core::text::table;
use serde::Deserialize;
use serde_json::Value;

use crate::exit::Exit;
use crate::out;
use crate::reach::{self, Reach};

/// The most incidents of one list.
const LIMIT_MAX: u32 = 100_000;
/// The most incidents of one page, as the API has it.
const PAGE_MAX: u32 = 200;

const EXAMPLES: &str = "\
Examples:
  ichido alerts
  ichido alerts --all --limit 10
  ichido alerts --json --server http://127.0.0.1:4180";

/// What `ichido alerts` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Those that are over as well, the last to be opened first
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(LIMIT_MAX)))]
    limit: u32,
    #[command(flatten)]
    reach: reach::Whom,
}

#[derive(Deserialize)]
struct Page {
    alerts: Vec<Value>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Alert {
    rule: String,
    state: String,
    opened_at: String,
    resolved_at: Option<String>,
    text: String,
}

/// Lists them, page after page.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { all, limit, reach } = args;
    let reach = Reach::open("alerts", reach).await?;
    let (mut left, mut next) = (limit, None::<String>);
    let mut rows = Vec::new();
    loop {
        let mut target = Serializer::new("/v1/alerts?".to_owned());
        target.append_pair("limit", &left.min(PAGE_MAX).to_string());
        if !all {
            target.append_pair("state", "firing");
        }
        if let Some(cursor) = &next {
            target.append_pair("cursor", cursor);
        }
        let page: Page = reach::read(&reach.get(&target.finish()).await?)?;
        for alert in page.alerts.into_iter().take(left as usize) {
            left -= 1;
            if reach.json {
                out::line(alert)?;
            } else {
                rows.push(row(reach::shape(alert)?));
            }
        }
        next = page.next;
        if left == 0 || next.is_none() {
            break;
        }
    }
    if reach.json {
        return Ok(());
    }
    if rows.is_empty() {
        return out::line(if all { "there were no alerts" } else { "nothing fires" });
    }
    out::say(&table(["OPENED", "RESOLVED", "STATE", "ALERT", "WHAT"], rows.into_iter()))
}

fn row(alert: Alert) -> [String; 5] {
    [alert.opened_at, alert.resolved_at.unwrap_or_default(), alert.state, alert.rule, alert.text]
}
