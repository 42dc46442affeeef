//! `bookmarks person`: manages who may sign in.

use std::io::{BufRead as _, IsTerminal as _};

use bookmarks::{App, Credential, Settings, StoreUrl};

use super::{CommandError, LISTEN, link, origin, require_store};

#[derive(clap::Subcommand)]
pub(super) enum PersonCommand {
    /// Add a person and print their token once
    Add(TokenArgs),
    /// Replace a person's token and end their sessions
    Renew(TokenArgs),
    /// Permanently delete a person and all their bookmarks
    Remove {
        /// Name of the person
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// List people: id and name
    List,
}

/// Arguments of `bookmarks person add` and `bookmarks person renew`.
#[derive(clap::Args)]
pub(super) struct TokenArgs {
    /// Name of the person
    name: String,

    /// Public URL of the service, for the sign-in link
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
                eprintln!("bookmarks: store: {store_url}{}", if is_new { " (created)" } else { "" });
                let token = app.add_person(&name).await;
                let token = token.map_err(|error| format!("cannot add {name:?}: {error}"))?;
                hand_over(&name, &token, public_origin.as_deref());
            }
            Self::Renew(TokenArgs { name, .. }) => {
                let token = app.renew_person(&name).await;
                let token = token.map_err(|error| format!("cannot renew the token of {name:?}: {error}"))?;
                eprintln!("bookmarks: revoked the old token and all sessions of {name:?}");
                hand_over(&name, &token, public_origin.as_deref());
            }
            Self::Remove { name, yes } => {
                let cannot = |error| format!("cannot remove {name:?}: {error}");
                let count = app.bookmarks_of(&name).await.map_err(cannot)?;
                if !yes {
                    confirm(&name, count)?;
                }
                app.remove_person(&name).await.map_err(cannot)?;
                eprintln!("bookmarks: removed {name:?}; bookmarks deleted: {count}");
            }
            Self::List => {
                // The engine's own tools show the id as the identity.
                for person in app.people().await.map_err(|error| error.with_causes())? {
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
    eprintln!("bookmarks: this is the token of {name:?}; it is shown only once. Sign in with this link:");
    let usual = format!("http://{LISTEN}");
    eprintln!("  {}", link(public_origin.unwrap_or(&usual), token));
    if public_origin.is_none() {
        eprintln!("bookmarks: if the service is not at {usual}, pass its URL with --public-url");
    }
}

/// Asks for confirmation; without a terminal, returns an error that says what to do.
fn confirm(name: &str, count: u64) -> Result<(), CommandError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(format!(
            "this permanently deletes {name:?} and {count} bookmarks; pass --yes to confirm"
        )
        .into());
    }
    eprint!("this permanently deletes {name:?} and {count} bookmarks; type the name to confirm: ");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    if answer.trim() == name { Ok(()) } else { Err("the name does not match; nothing was deleted".into()) }
}
