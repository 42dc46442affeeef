//! `ichido demo`: the whole engine with traffic and faults, for somebody who sees it the first time (issue 8).
//!
//! Guarantee: it needs nothing and leaves nothing behind: a store of its own, which is removed, a port of loopback, and receivers in this
//! process. What it says was seen was seen, through the API that everybody uses; where something of the story was not, `--once` ends with 1
//! and names it.
//!
//! Start at [`run`]. What is sent when is decided in `story` and `traffic`, which know neither clocks nor sockets; `teller` does it.

mod order;
mod page;
mod place;
mod server;
mod setup;
mod sight;
mod story;
mod teller;
mod traffic;

use std::net::SocketAddr;

use ichido_http::server::Stops;
use ichido_server::serve::{Access, Serving};
use ichido_server::worker;
use tokio::net::TcpListener;

use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use crate::store::{close, open_with};
use place::{Heard, Place};
use setup::Receivers;
use story::story;
use teller::Teller;
use traffic::Traffic;

/// What all dice begin with, so that everybody sees the same.
const SEED: u64 = 1;

const AFTER_HELP: &str = "\
Exit code: 0 when it was stopped or, with --once, when everything was seen; 1 when something was not, or it failed; 2 when what was asked makes \
no sense; 3 when --once was stopped before its end, or a second signal cut it off.

Examples:
  ichido demo
  ichido demo --once";

/// What `ichido demo` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// End after the story, and say what was seen; else slow traffic goes on until Ctrl-C
    #[arg(long)]
    once: bool,

    /// Where to listen, on loopback; port 0 takes a free one [default: 127.0.0.1:4180, or a free port where that is taken]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = ichido_http::server::bounds::address)]
    listen: Option<SocketAddr>,

    /// Keep the store in a new file: sqlite:FILE [default: a file that is removed at the end]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// How the telling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    ToTheEnd,
    Stopped,
}

/// Shows it all, until it is told to stop.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let mut signals = Signals::listen()?;
    let place = Place::make(args.store)?;
    let Heard { listener, address, is_elsewhere } = place::listen(args.listen).await?;
    let receivers = Receivers::start(SEED).await?;
    let config = receivers.config()?;
    let targets = worker::connect(&config).await?;
    let store = open_with(&place.url, config.store.connections_max).await?;
    let access = Access::new(store.clone(), address);
    let serving = Serving::start(&config, &store, targets, access, config.serve.limits).await?;
    let turn_clock = move |by| store.skew_by(by);
    let mut teller = Teller::new(address, receivers.broker.address, Box::new(turn_clock))?;
    announce(&place, &receivers, address, is_elsewhere)?;
    let served = conduct(serving, listener, &mut teller, &mut signals, args.once).await;
    // Before the folder goes: what is closed writes a last time.
    close().await;
    let left = place.leave(teller.turned)?;
    served?;
    out::line(format_args!("ichido: the demo has ended; {left}"))
}

/// Serves while the story is told, and ends both in good order.
async fn conduct(
    serving: Serving,
    listener: TcpListener,
    teller: &mut Teller,
    signals: &mut Signals,
    once: bool,
) -> Result<(), Exit> {
    let stops = Stops::default();
    let serve = serving.until(listener, &stops);
    let mut ended = Ok(());
    let telling = async {
        ended = telling(teller, signals, once).await;
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

/// Tells until the end or a signal, and sums up.
async fn telling(teller: &mut Teller, signals: &mut Signals, once: bool) -> Result<(), Exit> {
    let told = tokio::select! {
        told = all(teller, once) => told.map(|()| Told::ToTheEnd)?,
        () = signals.next() => Told::Stopped,
    };
    let (is_once, effects) = teller.effects().await?;
    out::say(&format!("\n{}\n{effects}\n", teller.seen.table()))?;
    let missing = teller.seen.missing();
    match told {
        _ if !is_once => Err(Exit::Failed(format!("this must never be: {effects}"))),
        Told::ToTheEnd if missing.is_empty() => Ok(()),
        Told::ToTheEnd => {
            Err(Exit::Failed(format!("the demo did not show everything; missing: {}", missing.join("; "))))
        }
        Told::Stopped if once => Err(Exit::Cut("stopped before the story was over".to_owned())),
        Told::Stopped => Ok(()),
    }
}

async fn all(teller: &mut Teller, once: bool) -> Result<(), Exit> {
    let (chapters, orders) = story(SEED);
    for (index, chapter) in chapters.into_iter().enumerate() {
        teller.tell(index + 1, chapter).await?;
    }
    if once {
        return Ok(());
    }
    teller.turn_to_traffic().await?;
    teller.go_on(Traffic::after(SEED, orders)).await
}

fn announce(
    place: &Place,
    receivers: &Receivers,
    address: SocketAddr,
    is_elsewhere: bool,
) -> Result<(), Exit> {
    let (broker, office) = (receivers.broker.address, receivers.office.address);
    let usual = ichido_server::config::LISTEN_DEFAULT;
    let elsewhere = if is_elsewhere { format!(" (a free port: {usual} is taken)") } else { String::new() };
    let store = place.told();
    out::line(format_args!(
        "ichido demo: the whole engine in this process, with faults on purpose. Ctrl-C ends it at any time.\n\
         \x20  server  http://{address}{elsewhere}\n\
         \x20  store   {store}\n\
         \x20  broker  http://{broker}, takes orders and honours keys\n\
         \x20  office  http://{office}, pays and faxes, honours no keys, and loses its answers"
    ))
}
