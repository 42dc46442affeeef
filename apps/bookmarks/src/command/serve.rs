//! `bookmarks serve`, the default command.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bookmarks::{AlertWebhook, App, Credential, Settings, StoreUrl, limits};
use ichido::retry::{MAX_ATTEMPTS, Retry};
use ichido::settings::duration;
use ichido::worker::AlertFormat;
use ichido_http::signals::Signals;
use ichido_llm::articles::OUTPUT_TOKENS;
use tokio::net::TcpListener;

use super::model::NamedModel;
use super::{CommandError, LISTEN, link, origin};

/// The person that is created if nobody was added.
const FIRST: &str = "me";

#[derive(Clone, clap::Args)]
pub(super) struct Serve {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = LISTEN)]
    listen: SocketAddr,

    /// Public URL of the TLS proxy in front, such as `https://bookmarks.example`
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// Also fetch pages from private addresses, for every user
    #[arg(long)]
    allow_private_addresses: bool,

    /// Model for summaries: openai:MODEL or anthropic:MODEL; set `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` [default: extract sentences]
    #[arg(long, value_name = "PROVIDER:MODEL", env = "BOOKMARKS_LLM")]
    llm: Option<String>,

    /// Base URL of the model's API [default: the provider's own]
    #[arg(long, value_name = "URL", requires = "llm")]
    llm_url: Option<String>,

    /// Maximum tokens of a summary, with the model's reasoning
    #[arg(
        long,
        value_name = "COUNT",
        env = "BOOKMARKS_SUMMARY_TOKENS",
        default_value_t = limits::SUMMARY_TOKENS,
        value_parser = clap::value_parser!(u32).range(OUTPUT_TOKENS)
    )]
    summary_tokens: u32,

    /// URL to send alerts to [default: only record them]
    #[arg(long, value_name = "URL", env = "BOOKMARKS_ALERT_WEBHOOK", hide_env_values = true)]
    alert_webhook: Option<String>,

    /// Format of alerts: webhook (a JSON event) or slack
    #[arg(
        long,
        value_name = "FORMAT",
        env = "BOOKMARKS_ALERT_FORMAT",
        default_value = "webhook",
        value_parser = alert_format
    )]
    alert_format: AlertFormat,

    /// Attempts of a job before it fails permanently
    #[arg(
        long,
        value_name = "COUNT",
        env = "BOOKMARKS_MAX_ATTEMPTS",
        default_value_t = Retry::JOB.max_attempts,
        value_parser = attempts
    )]
    max_attempts: NonZeroU32,

    /// How long a response is replayed to the same key
    #[arg(
        long,
        value_name = "DURATION",
        env = "BOOKMARKS_KEEP_RESPONSES",
        default_value = "72h",
        value_parser = |text: &str| at_least(text, limits::KEEP_RESPONSES)
    )]
    keep_responses: Duration,

    /// How long finished jobs are kept; dead letters are kept until handled
    #[arg(
        long,
        value_name = "DURATION",
        env = "BOOKMARKS_KEEP_FINISHED",
        default_value = "90d",
        value_parser = |text: &str| at_least(text, limits::MIN_KEEP_FINISHED)
    )]
    keep_finished: Duration,
}

fn alert_format(text: &str) -> Result<AlertFormat, String> {
    AlertFormat::parse(text).ok_or_else(|| format!("use one of {}", AlertFormat::WORDS.join(", ")))
}

fn attempts(text: &str) -> Result<NonZeroU32, String> {
    let count = text.parse::<NonZeroU32>().ok().filter(|count| count.get() <= MAX_ATTEMPTS);
    count.ok_or_else(|| format!("use a number from 1 to {MAX_ATTEMPTS}"))
}

fn at_least(text: &str, min: Duration) -> Result<Duration, String> {
    let kept_for = duration::parse(text).map_err(|error| error.to_string())?;
    if kept_for < min { Err(format!("use at least {}", duration::format(min))) } else { Ok(kept_for) }
}

impl Serve {
    pub(super) async fn run(self, store: String) -> Result<(), CommandError> {
        // Before the first connection, so a signal always finds a server that shuts down cleanly.
        let stops = Signals::listen()?.stops();
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            format!("cannot listen on {}: {error}; choose another address or port with --listen", self.listen)
        })?;
        let address = listener.local_addr()?;
        let mut settings = Settings::new(store, address);
        settings.public_origin = self.public_url.as_deref().map(origin).transpose()?;
        let named =
            self.llm.as_deref().map(|llm| NamedModel::new(llm, self.llm_url.as_deref())).transpose()?;
        settings.model = named.as_ref().map(|named| Arc::clone(&named.model));
        settings.summary_tokens = self.summary_tokens;
        settings.alert_webhook = self.webhook()?;
        settings.retry.max_attempts = self.max_attempts;
        settings.keep_responses = self.keep_responses;
        settings.keep_finished = self.keep_finished;
        if self.allow_private_addresses {
            settings.may_reach = |_: IpAddr| true;
        }
        let app = App::open(settings.clone()).await?;
        let first = if app.people().await.map_err(|error| error.with_causes())?.is_empty() {
            Some(app.add_person(FIRST).await?)
        } else {
            None
        };
        announce(&settings, address, named.as_ref(), first.as_ref());
        app.serve(listener, &stops).await?;
        app.close().await;
        Ok(())
    }

    fn webhook(&self) -> Result<Option<AlertWebhook>, CommandError> {
        let Some(url) = &self.alert_webhook else { return Ok(None) };
        let webhook = AlertWebhook::new(url, self.alert_format).map_err(|errors| {
            let lines = errors.0.iter().map(|error| format!("--alert-webhook: {}", error.what));
            lines.collect::<Vec<_>>().join("\n")
        })?;
        Ok(Some(webhook))
    }
}

/// Prints the address and how to sign in; the last line says that the service is ready.
fn announce(
    settings: &Settings,
    address: SocketAddr,
    named: Option<&NamedModel>,
    first: Option<&Credential>,
) {
    let here = settings.public_origin.clone().unwrap_or_else(|| format!("http://{address}"));
    println!("bookmarks: store: {}", StoreUrl::new(&settings.store));
    match named {
        Some(named) => println!("bookmarks: summariser: {named}"),
        None => println!("bookmarks: summariser: sentences from the page; pass --llm to use a model"),
    }
    // The URL is often a secret.
    match settings.alert_webhook {
        Some(_) => println!("bookmarks: alerts: sent to the webhook"),
        None => println!("bookmarks: alerts: recorded only; pass --alert-webhook to send them"),
    }
    if !address.ip().is_loopback() && settings.public_origin.is_none() {
        println!(
            "bookmarks: warning: other machines can reach {address} without TLS, so tokens can be read in transit; put \
             a TLS proxy in front and pass its URL with --public-url https://…"
        );
    }
    if let Some(token) = first {
        println!(
            "bookmarks: added the first person, {FIRST:?}. Sign in with this link; it is shown only once:"
        );
        println!("  {}", link(&here, token));
    }
    if settings.public_origin.is_some() {
        println!("bookmarks: listening on {address}");
    }
    println!("bookmarks: serving on {here}");
}
