//! `ichido alerts`: lists the alerts that fire now, and past ones.
//!
//! Guarantee: a command is a request to the API, and means the same at a server and on the store. It changes nothing:
//! an alert is resolved when its cause is.
// Spec: A15.

use ichido_core::text::table::Column;
use ichido_server::serve::views::Alert;

use crate::api_client::{ApiClient, ConnectArgs, List};
use crate::exit::Exit;

/// The maximum number of incidents in a list.
const MAX_LIMIT: u32 = 100_000;
/// The API's limit on the incidents of one page.
const MAX_PAGE: u32 = 200;

const EXAMPLES: &str = "\
Examples:
  ichido alerts
  ichido alerts --all --limit 10
  ichido alerts --json --server http://127.0.0.1:4180";

/// Arguments of `ichido alerts`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Include resolved alerts, newest first
    #[arg(long)]
    all: bool,
    /// Maximum number of alerts
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LIMIT)))]
    limit: u32,
    #[command(flatten)]
    connect: ConnectArgs,
}

const HEAD: [Column; 5] = [
    Column::past("OPENED"),
    Column::past("RESOLVED"),
    Column::state("STATE"),
    Column::text("ALERT"),
    Column::free("AT OPENING"),
];

/// Lists alerts.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let Args { all, limit, connect } = args;
    let list = List {
        query: if all { Vec::new() } else { vec![("state", "firing".to_owned())] },
        max_page: Some(MAX_PAGE),
        limit,
        none: if all { "no alerts" } else { "no alerts are firing" },
        ..List::new("/v1/alerts", "alerts", HEAD)
    };
    let row = |alert: Alert| {
        [alert.opened_at, alert.resolved_at.unwrap_or_default(), alert.state, alert.rule, alert.text]
    };
    ApiClient::open(connect).await?.list(list, row).await
}
