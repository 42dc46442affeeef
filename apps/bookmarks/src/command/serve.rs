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
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = LISTEN)]
    listen: SocketAddr,

    /// How people reach it, where something in front of it speaks TLS, such as `https://bookmarks.example`
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// Fetch pages from private addresses too: for a service that only people use who may see them
    #[arg(long)]
    allow_private_addresses: bool,

    /// Who summarises: openai:MODEL or anthropic:MODEL, with the key in `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` [default: sentences out of the page]
    #[arg(long, value_name = "PROVIDER:MODEL", env = "BOOKMARKS_LLM")]
    llm: Option<String>,

    /// Where the model's API begins [default: the provider's own]
    #[arg(long, value_name = "URL", requires = "llm")]
    llm_url: Option<String>,
}

impl Serve {
    pub(super) async fn run(self, store: String) -> Result<(), CommandError> {
        // Before the first connection, so a signal always finds a server that shuts down cleanly.
        let stops = Signals::listen()?.stops();
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            format!(
                "cannot listen on {}: {error}; another address or port is chosen by --listen",
                self.listen
            )
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
        let first = if app.people().await.map_err(|error| error.in_full())?.is_empty() {
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
    println!("bookmarks: kept in {}", StoreUrl::new(&settings.store));
    match named {
        Some(named) => println!("bookmarks: summarised by {named}"),
        None => println!("bookmarks: summarised by sentences out of the page; --llm names a model"),
    }
    if !address.ip().is_loopback() && settings.public_origin.is_none() {
        println!(
            "bookmarks: {address} can be reached from other machines, and what is sent there, tokens too, can be read on the way; let something \
             in front of it speak TLS, and name that by --public-url https://…"
        );
    }
    if let Some(token) = first {
        println!(
            "bookmarks: nobody was here yet, so {FIRST:?} was added. Sign in by this link; it is not shown again:"
        );
        println!("  {}", link(&here, token));
    }
    if settings.public_origin.is_some() {
        println!("bookmarks: listening on {address}");
    }
    println!("bookmarks: serving on {here}");
}
