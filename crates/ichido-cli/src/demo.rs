//! `ichido demo`: the whole engine with traffic and faults, for first-time users.
//!
//! Guarantee: it needs nothing and leaves nothing behind. It uses a store of its own, which it removes, a loopback
//! port, and receivers in this process. Everything it reports was observed through the public API. If a part of the
//! scenario was not observed, `--once` exits with 1 and names it.
//!
//! Start at [`run`]. `scenario` and `traffic` decide what is sent and when, without clocks or sockets; `narrator`
//! carries it out.
// Issue 8.

mod client;
mod expectations;
mod narrator;
mod order;
mod page;
mod scenario;
mod setup;
mod traffic;
mod workspace;

use std::net::SocketAddr;

use ichido_http::server::Stops;
use ichido_server::serve::{Access, Serving};
use ichido_server::worker;
use tokio::net::TcpListener;

use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use crate::store::{close, open_with};
use narrator::Narrator;
use scenario::scenario;
use setup::Receivers;
use traffic::Traffic;
use workspace::{BoundListener, Workspace};

/// The seed of all random choices, so every user sees the same demo.
const SEED: u64 = 1;

const AFTER_HELP: &str = "\
Exit code: 0 when it was stopped or, with --once, when everything was shown; 1 for a failure or a missing step; 2 for a usage error; \
3 if --once was stopped early or a second signal ended it.

Examples:
  ichido demo
  ichido demo --once";

/// Arguments of `ichido demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Exit after the scenario with a summary, without further traffic
    #[arg(long)]
    once: bool,

    /// Loopback listen address; port 0 is any free port [default: 127.0.0.1:4180, or a free port]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = ichido_http::server::bounds::address)]
    listen: Option<SocketAddr>,

    /// Keep the store in a new file: sqlite:FILE [default: a temporary file]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// How the scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScenarioEnd {
    Complete,
    Stopped,
}

/// Runs the demo until it ends or is stopped.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let mut signals = Signals::listen()?;
    let workspace = Workspace::create(args.store)?;
    let BoundListener { listener, address, is_fallback_port } = workspace::listen(args.listen).await?;
    let receivers = Receivers::start(SEED).await?;
    let config = receivers.config()?;
    let targets = worker::connect(&config).await?;
    let store = open_with(&workspace.url, config.store.max_connections).await?;
    let access = Access::new(store.clone(), address);
    let serving = Serving::start(&config, &store, targets, access, config.serve.limits).await?;
    let advance_clock = move |by| store.advance_clock(by);
    let mut narrator = Narrator::new(address, receivers.broker.address, Box::new(advance_clock))?;
    announce(&workspace, &receivers, address, is_fallback_port)?;
    let served = serve_and_narrate(serving, listener, &mut narrator, &mut signals, args.once).await;
    // Before the folder is removed: closing a store still writes to it.
    close().await;
    let left = workspace.clean_up(narrator.clock_ahead)?;
    served?;
    out::print_line(format_args!("ichido: the demo ended; {left}"))
}

/// Serves while the scenario plays, and stops both gracefully.
async fn serve_and_narrate(
    serving: Serving,
    listener: TcpListener,
    narrator: &mut Narrator,
    signals: &mut Signals,
    once: bool,
) -> Result<(), Exit> {
    let stops = Stops::default();
    let serve = serving.until(listener, &stops);
    let mut ended = Ok(());
    let telling = async {
        ended = narrate(narrator, signals, once).await;
        stops.stop();
        signals.next().await;
        stops.stop();
        std::future::pending().await
    };
    let served = tokio::select! {
        served = serve => served,
        never = telling => never,
    };
    ended.and(served.map_err(Exit::from))
}

/// Plays the scenario until its end or a signal, and prints a summary.
async fn narrate(narrator: &mut Narrator, signals: &mut Signals, once: bool) -> Result<(), Exit> {
    let end = tokio::select! {
        ended = play(narrator, once) => ended.map(|()| ScenarioEnd::Complete)?,
        () = signals.next() => ScenarioEnd::Stopped,
    };
    let (is_once, effects) = narrator.effects().await?;
    out::print(&format!("\n{}\n{effects}\n", narrator.observed.table()))?;
    let missing = narrator.observed.missing();
    match end {
        _ if !is_once => Err(Exit::Failed(format!("an effect happened twice, which is a bug: {effects}"))),
        ScenarioEnd::Complete if missing.is_empty() => Ok(()),
        ScenarioEnd::Complete => {
            Err(Exit::Failed(format!("the demo did not show everything; missing: {}", missing.join("; "))))
        }
        ScenarioEnd::Stopped if once => {
            Err(Exit::Interrupted("stopped before the scenario ended".to_owned()))
        }
        ScenarioEnd::Stopped => Ok(()),
    }
}

async fn play(narrator: &mut Narrator, once: bool) -> Result<(), Exit> {
    let (chapters, orders) = scenario(SEED);
    for (index, chapter) in chapters.into_iter().enumerate() {
        narrator.play_chapter(index + 1, chapter).await?;
    }
    if once {
        return Ok(());
    }
    narrator.start_traffic().await?;
    narrator.run_traffic(Traffic::after(SEED, orders)).await
}

fn announce(
    workspace: &Workspace,
    receivers: &Receivers,
    address: SocketAddr,
    is_fallback_port: bool,
) -> Result<(), Exit> {
    let (broker, office) = (receivers.broker.address, receivers.office.address);
    let usual = ichido_server::config::LISTEN_DEFAULT;
    let fallback_note =
        if is_fallback_port { format!(" (a free port: {usual} is in use)") } else { String::new() };
    let store = workspace.describe();
    out::print_line(format_args!(
        "ichido demo: the whole engine in one process, with injected faults. Stop it with Ctrl-C.\n\
         \x20  server  http://{address}{fallback_note}\n\
         \x20  store   {store}\n\
         \x20  broker  http://{broker}, accepts orders and deduplicates by key\n\
         \x20  office  http://{office}, accepts payments and faxes, ignores keys and loses its responses"
    ))
}
