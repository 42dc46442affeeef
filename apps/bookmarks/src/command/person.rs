//! `bookmarks person`: manages who may sign in.

use std::io::{BufRead as _, IsTerminal as _};

use bookmarks::{App, Credential, Settings, StoreUrl};

use super::{CommandError, LISTEN, link, origin, require_store};

#[derive(clap::Subcommand)]
pub(super) enum PersonCommand {
    /// Add somebody, and show the token, once
    Add(TokenArgs),
    /// Give somebody a new token, shown once; the old one and all sessions are over
    Renew(TokenArgs),
    /// Take somebody away, with all their bookmarks, for good
    Remove {
        /// The name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// List everybody
    List,
}

/// Whom a token is for.
#[derive(clap::Args)]
pub(super) struct TokenArgs {
    /// The name
    name: String,

    /// How people reach the service, for the link by which to sign in
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

impl PersonCommand {
    pub(super) async fn run(self, store: String) -> Result<(), CommandError> {
        let public_origin = match &self {
            Self::Add(token) | Self::Renew(token) => token.public_url.as_deref().map(origin),
            Self::Remove { .. } | Self::List => None,
        };
        let public_origin = public_origin.transpose()?;
        let store_url = StoreUrl::new(&store);
        let is_new = store_url.missing_file().is_some();
        if !matches!(self, Self::Add(_)) {
            require_store(&store)?;
        }
        let app = App::open(Settings::new(store, LISTEN.parse()?)).await?;
        match self {
            Self::Add(TokenArgs { name, .. }) => {
                eprintln!(
                    "bookmarks: kept in {store_url}{}",
                    if is_new { ", which was made anew" } else { "" }
                );
                let token = app.add_person(&name).await;
                let token = token.map_err(|error| format!("{name:?} cannot be added: {error}"))?;
                hand_over(&name, &token, public_origin.as_deref());
            }
            Self::Renew(TokenArgs { name, .. }) => {
                let token = app.renew_person(&name).await;
                let token =
                    token.map_err(|error| format!("the token of {name:?} cannot be renewed: {error}"))?;
                eprintln!("bookmarks: the old token of {name:?} and all sessions are over");
                hand_over(&name, &token, public_origin.as_deref());
            }
            Self::Remove { name, yes } => {
                let cannot = |error| format!("{name:?} cannot be removed: {error}");
                let count = app.bookmarks_of(&name).await.map_err(cannot)?;
                if !yes {
                    confirm(&name, count)?;
                }
                app.remove_person(&name).await.map_err(cannot)?;
                eprintln!("bookmarks: {name:?} was removed, with {count} bookmarks");
            }
            Self::List => {
                // The engine's own tools show the id as the identity.
                for person in app.people().await.map_err(|error| error.in_full())? {
                    println!("{}  {}", person.id, person.name);
                }
            }
        }
        app.close().await;
        Ok(())
    }
}

/// Prints the token alone on standard output, for programs, and a link on standard error, for people.
fn hand_over(name: &str, token: &Credential, public_origin: Option<&str>) {
    println!("{}", token.to_text());
    eprintln!("bookmarks: this is the token of {name:?}. It is not shown again. By this link it signs in:");
    let usual = format!("http://{LISTEN}");
    eprintln!("  {}", link(public_origin.unwrap_or(&usual), token));
    if public_origin.is_none() {
        eprintln!("bookmarks: a service that is not at {usual} is named by --public-url");
    }
}

/// Asks for confirmation; without a terminal, returns an error that says what to do.
fn confirm(name: &str, count: u64) -> Result<(), CommandError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(
            format!("{name:?} and {count} bookmarks would be removed for good; say so by --yes").into()
        );
    }
    eprint!("{name:?} and {count} bookmarks will be removed for good; type the name to go on: ");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    if answer.trim() == name { Ok(()) } else { Err("nothing was done".into()) }
}
