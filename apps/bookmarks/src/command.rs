//! The command line.

use std::error::Error;
use std::io::{BufRead as _, IsTerminal as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bookmarks::{App, Credential, Settings};
use ichido::llm::{AnthropicSettings, Model, OpenAiSettings, ServiceSettings};
use tokio::net::TcpListener;

type Failed = Box<dyn Error>;

const LISTEN: &str = "127.0.0.1:4190";
/// Who is there when nobody was added.
const FIRST: &str = "me";

/// Save links from anywhere, and have them summarised
#[derive(clap::Parser)]
#[command(name = "bookmarks", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Command {
    /// Where everything is kept: sqlite:FILE or postgres://…
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
    /// Serve, which is what happens when nothing is said
    Serve(Serve),
    /// Who may come in
    #[command(subcommand)]
    Person(PersonCommand),
}

#[derive(clap::Subcommand)]
enum PersonCommand {
    /// Add somebody, and show the token, once
    Add(Token),
    /// Give somebody a new token, shown once; the old one and all sessions are over
    Renew(Token),
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
struct Token {
    /// The name
    name: String,

    /// How people reach the service, for the link by which to sign in
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

#[derive(Clone, clap::Args)]
struct Serve {
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

impl Command {
    pub(crate) async fn run(self) -> Result<(), Failed> {
        match self.what {
            None => serve(self.store, self.serve).await,
            Some(What::Serve(serve_args)) => serve(self.store, serve_args).await,
            Some(What::Person(what)) => person(self.store, what).await,
        }
    }
}

async fn person(store: String, what: PersonCommand) -> Result<(), Failed> {
    let public_origin = match &what {
        PersonCommand::Add(token) | PersonCommand::Renew(token) => token.public_url.as_deref().map(origin),
        PersonCommand::Remove { .. } | PersonCommand::List => None,
    };
    let here = public_origin.transpose()?.unwrap_or_else(|| format!("http://{LISTEN}"));
    let app = App::open(Settings::new(store, LISTEN.parse()?)).await?;
    match what {
        PersonCommand::Add(Token { name, .. }) => {
            let token = app.add_person(&name).await;
            hand_over(&name, &token.map_err(|error| format!("{name:?} cannot be added: {error}"))?, &here);
        }
        PersonCommand::Renew(Token { name, .. }) => {
            let token = app.renew_person(&name).await;
            let token = token.map_err(|error| format!("the token of {name:?} cannot be renewed: {error}"))?;
            eprintln!("bookmarks: the old token of {name:?} and all sessions are over");
            hand_over(&name, &token, &here);
        }
        PersonCommand::Remove { name, yes } => {
            let cannot = |error| format!("{name:?} cannot be removed: {error}");
            let count = app.bookmarks_of(&name).await.map_err(cannot)?;
            if !yes {
                confirm(&name, count)?;
            }
            app.remove_person(&name).await.map_err(cannot)?;
            eprintln!("bookmarks: {name:?} was removed, with {count} bookmarks");
        }
        PersonCommand::List => {
            for person in app.people().await? {
                println!("{}", person.name);
            }
        }
    }
    app.close().await;
    Ok(())
}

/// The token alone for whoever reads it by a program, and beside it the link for whoever reads it with their eyes.
fn hand_over(name: &str, token: &Credential, here: &str) {
    println!("{}", token.to_text());
    eprintln!("bookmarks: this is the token of {name:?}. It is not shown again. By this link it signs in:");
    eprintln!("  {}", link(here, token));
}

fn link(here: &str, token: &Credential) -> String {
    format!("{here}/sign-in#token={}", token.to_text())
}

/// Asks who sits before it; nobody does where standard input is no terminal, and then this says what to do.
fn confirm(name: &str, count: u64) -> Result<(), Failed> {
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

async fn serve(store: String, args: Serve) -> Result<(), Failed> {
    let stop = stop()?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        format!("cannot listen on {}: {error}; another address or port is chosen by --listen", args.listen)
    })?;
    let address = listener.local_addr()?;
    let mut settings = Settings::new(store, address);
    settings.public_origin = args.public_url.as_deref().map(origin).transpose()?;
    settings.model = args.llm.as_deref().map(|llm| model(llm, args.llm_url.as_deref())).transpose()?;
    if args.allow_private_addresses {
        settings.may_reach = |_: IpAddr| true;
    }
    let app = App::open(settings.clone()).await?;
    let first = if app.people().await?.is_empty() { Some(app.add_person(FIRST).await?) } else { None };
    announce(&settings, address, first.as_ref());
    app.serve(listener, stop).await?;
    app.close().await;
    Ok(())
}

/// Where it is and how to come in; the last line says that it works.
fn announce(settings: &Settings, address: SocketAddr, first: Option<&Credential>) {
    let here = settings.public_origin.clone().unwrap_or_else(|| format!("http://{address}"));
    match settings.store.strip_prefix("sqlite:") {
        Some(file) => {
            let whole = std::path::absolute(file);
            println!("bookmarks: kept in SQLite, {}", whole.as_deref().unwrap_or(Path::new(file)).display());
        }
        // The address may hold a password.
        None => println!("bookmarks: kept in PostgreSQL"),
    }
    match &settings.model {
        Some(model) => println!("bookmarks: summarised by {}", model.name()),
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
    println!("bookmarks: serving on {here}");
}

/// What a browser calls the origin of a URL.
fn origin(url: &str) -> Result<String, Failed> {
    let parsed = url::Url::parse(url).ok().filter(|parsed| matches!(parsed.scheme(), "http" | "https"));
    let parsed = parsed.filter(|parsed| parsed.path() == "/" && parsed.query().is_none());
    let origin = parsed.map(|parsed| parsed.origin().ascii_serialization());
    origin.ok_or_else(|| "--public-url must be like https://bookmarks.example, without a path".into())
}

/// The model that the command line names, as `ichido judge` takes it.
fn model(llm: &str, url: Option<&str>) -> Result<Arc<dyn Model>, Failed> {
    let forms = "write openai:MODEL or anthropic:MODEL";
    let (provider, name) =
        llm.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(|| format!("--llm: {forms}"))?;
    let service = |base_url: &str, key: &'static str| {
        let mut service = ServiceSettings::new(name, url.unwrap_or(base_url));
        service.api_key = std::env::var(key).ok().filter(|key| !key.is_empty());
        // A server of one's own may ask for none.
        if service.api_key.is_none() && url.is_none() {
            return Err(format!("--llm: its key is missing: set {key} in the environment"));
        }
        Ok(service)
    };
    let wrong = |problems: ichido::destination::http::Problems| format!("--llm: {problems}");
    Ok(match provider {
        "openai" => {
            let settings = OpenAiSettings::new(service(OpenAiSettings::BASE_URL, "OPENAI_API_KEY")?);
            Arc::new(settings.resolve().map_err(wrong)?)
        }
        "anthropic" => {
            let settings = AnthropicSettings::new(service(AnthropicSettings::BASE_URL, "ANTHROPIC_API_KEY")?);
            Arc::new(settings.resolve().map_err(wrong)?)
        }
        other => return Err(format!("--llm: {other:?} is no provider that is known; {forms}").into()),
    })
}

/// Ends with the first signal that asks to stop.
#[cfg(unix)]
fn stop() -> Result<impl Future<Output = ()>, Failed> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    })
}

#[cfg(not(unix))]
fn stop() -> Result<impl Future<Output = ()>, Failed> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
