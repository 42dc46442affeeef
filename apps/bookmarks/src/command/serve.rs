//! `bookmarks serve`, the default command.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bookmarks::{App, Credential, Settings, StoreUrl};
use ichido_http::signals::Signals;
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
