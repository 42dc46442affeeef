//! The command line.

mod model;
mod person;
mod retry_failed;
mod serve;

use std::error::Error;

use bookmarks::{Credential, StoreUrl};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use person::PersonCommand;
use retry_failed::RetryFailed;
use serve::Serve;

type CommandError = Box<dyn Error>;

const LISTEN: &str = "127.0.0.1:4190";

/// Save links and have them summarised
#[derive(clap::Parser)]
#[command(name = "bookmarks", version)]
pub(crate) struct Command {
    /// Store URL: sqlite:FILE or postgres://…
    #[arg(
        long,
        value_name = "URL",
        global = true,
        default_value = "sqlite:bookmarks.db",
        env = "BOOKMARKS_STORE",
        hide_env_values = true
    )]
    store: String,

    #[command(flatten)]
    serve: Serve,

    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand)]
enum What {
    /// Start the service (default)
    Serve(Serve),
    /// Manage the people who can sign in
    #[command(subcommand)]
    Person(PersonCommand),
    /// Requeue failed jobs after their cause was fixed
    RetryFailed(RetryFailed),
}

impl Command {
    /// Reads the command line. An option of `serve` before another subcommand is a mistake, and would have no effect.
    pub(crate) fn read() -> Self {
        let mut matches = Self::command().get_matches();
        if let (Some(subcommand), Some(option)) = (matches.subcommand_name(), misplaced(&matches)) {
            let why =
                format!("{option} must follow the subcommand {subcommand}, if it is one of its options");
            Self::command().error(ErrorKind::ArgumentConflict, why).exit();
        }
        Self::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
    }

    pub(crate) async fn run(self) -> Result<(), CommandError> {
        match self.what {
            None => self.serve.run(self.store).await,
            Some(What::Serve(serve)) => serve.run(self.store).await,
            Some(What::Person(person)) => person.run(self.store).await,
            Some(What::RetryFailed(retry)) => retry.run(self.store).await,
        }
    }
}

/// Returns an option that was given before the subcommand, and is not for all of them.
fn misplaced(matches: &ArgMatches) -> Option<String> {
    let command = Command::command();
    let mut given = command.get_arguments().filter(|argument| !argument.is_global_set());
    let given = given.find(|argument| {
        matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    })?;
    given.get_long().map(|name| format!("--{name}"))
}

/// Refuses a file that does not exist: it is a typo, and a new file would report no people and no failed jobs.
fn require_store(store: &str) -> Result<(), CommandError> {
    let Some(file) = StoreUrl::new(store).missing_file() else { return Ok(()) };
    let shown = file.display();
    Err(format!(
        "cannot open the store: {shown} does not exist; check --store or BOOKMARKS_STORE: a relative path starts in \
         the current folder"
    )
    .into())
}

fn link(here: &str, token: &Credential) -> String {
    format!("{here}/sign-in#token={}", token.to_text())
}

/// Returns the origin of a URL, as a browser writes it.
fn origin(url: &str) -> Result<String, CommandError> {
    let parsed = url::Url::parse(url).ok().filter(|parsed| matches!(parsed.scheme(), "http" | "https"));
    let parsed = parsed.filter(|parsed| parsed.path() == "/" && parsed.query().is_none());
    let origin = parsed.map(|parsed| parsed.origin().ascii_serialization());
    origin.ok_or_else(|| "--public-url must look like https://bookmarks.example, without a path".into())
}
