//! `ichido healthcheck`: asks a server whether it is ready, for a container's health check.
//!
//! Guarantee: it exits with 0 if the server reports that it is ready and with 1 otherwise, within a few seconds. It
//! needs no token, follows no redirect, and asks once: the container runtime repeats the check.
// Spec: E6.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ichido_client::{ClientSettings, Outcome};
use ichido_core::retry::Retry;
use ichido_core::text::visible;
use ichido_server::target;
use serde_json::json;

use crate::api_client::describe_failure;
use crate::exit::Exit;
use crate::out;

/// How long the server may take. The server allows its store less time than this.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

const AFTER_HELP: &str = "\
Exit code: 0 if the server is ready, and 1 otherwise, also if its URL is unknown; Docker allows no other codes.

Examples:
  ichido healthcheck
  ichido healthcheck --server http://127.0.0.1:4180";

/// Arguments of `ichido healthcheck`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Server URL [default: the server of the store here, else from the configuration, else port 4180]
    #[arg(long, value_name = "URL", env = "ICHIDO_SERVER")]
    server: Option<String>,

    /// Configuration file of the server [default: ichido.toml, if present]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Asks the server, and exits with the result.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let ready = check_ready(args.server, args.config).await;
    if args.json {
        let detail = ready.as_ref().err();
        out::print_line(json!({ "ready": ready.is_ok(), "detail": detail }))?;
        return ready.map_err(|_| Exit::Findings);
    }
    ready.map_err(Exit::Failed)?;
    out::print_line("ready")
}

async fn check_ready(server: Option<String>, config: Option<PathBuf>) -> Result<(), String> {
    if let Some(url) = server {
        return ask(url).await;
    }
    let url = target::server_url(config.as_deref())?;
    ask(url.clone()).await.map_err(|why| format!("{why} (tried {url}; --server names another)"))
}

async fn ask(base: String) -> Result<(), String> {
    let settings = ClientSettings {
        retry: Retry { max_attempts: NonZeroU32::MIN, ..Retry::CLIENT },
        connect_timeout: ANSWER_WITHIN,
        attempt_timeout: ANSWER_WITHIN,
        total_timeout: ANSWER_WITHIN,
        ..ClientSettings::new(base)
    };
    let client = settings.resolve().map_err(|problems| format!("--server: {problems}"))?;
    match client.read("/readyz").await.map_err(|error| error.to_string())? {
        Outcome::Done { .. } => Ok(()),
        Outcome::Refused { answer, .. } => {
            Err(format!("the server responded {}; check that it is an Ichido server", answer.status))
        }
        Outcome::GaveUp { why, last, .. } => Err(match last {
            ichido_client::LastResult::Response(answer) => {
                let output = answer.problem().detail.unwrap_or_default();
                format!("the server responded {}: {}", answer.status, visible(&output))
            }
            last @ ichido_client::LastResult::Error { .. } => describe_failure(why, &last),
        }),
    }
}
