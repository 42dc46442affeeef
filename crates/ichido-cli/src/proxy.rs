//! `ichido proxy`: runs a proxy role between a caller and a service.

use ichido_core::settings::ConfigErrors;
use ichido_http::server::ServerEnd;
pub(crate) use ichido_proxy::Args;
use ichido_proxy::{Proxy, resolve};
use ichido_server::serve::metrics::{Health, Metrics};
use ichido_server::serve::{Access, is_open};
use ichido_server::traces;

use crate::check::read_file;
use crate::exit::Exit;
use crate::out;
use crate::serve::bind;
use crate::signals::Signals;
use crate::store::open;

/// The variable of the setting `traces.hash_keys`: a proxy has no configuration file.
const HASH_KEYS: &str = "ICHIDO__TRACES__HASH_KEYS";

/// Runs a proxy until it is stopped.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let mut faults = ConfigErrors::default();
    let files = args.boundary.iter().map(|path| {
        read_file(path).map_err(|errors| errors.iter().for_each(|error| error.add_to(&mut faults)))
    });
    let files = files.flatten().collect();
    let settings = resolve(&args, files, faults)?;
    // Before the first connection, so a signal never arrives when connections could not be drained.
    let signals = Signals::listen()?;
    let (address, admin) = (settings.listen, settings.admin);
    let store = match settings.store() {
        Some(url) => Some(open(url).await?),
        None => None,
    };
    let proxy = match &store {
        None => Proxy::hop(settings),
        Some(store) => Proxy::adapter(settings, store.clone()),
    }?;
    let exporting = traces::start(None, std::env::var(HASH_KEYS).is_ok_and(|value| value == "true"))?;
    let (listener, address) = bind(address).await?;
    let metrics = Metrics::listen(admin, "--admin").await?;
    let admin = metrics.address();
    let access = store.clone().map(|store| Access::new(store, admin));
    // Beyond this machine a token is required, as for a server.
    if let Some(access) = &access {
        is_open(access, admin, "--admin").await?;
    }
    let health = Health { store: store.clone(), worker_lives: None };
    let serving = tokio::spawn(metrics.serve(health, access));
    let (role, upstream) = (args.role.party().as_str(), &args.upstream);
    out::print_line(format_args!(
        "ichido: {role} listening on http://{address} for {upstream}; health and metrics at http://{admin}"
    ))?;
    let ended = proxy.until(listener, &signals.stops()).await;
    serving.abort();
    exporting.end().await;
    if let Some(store) = store {
        store.check_files().map_err(|lost| Exit::StoreLost(lost.to_string()))?;
    }
    match ended {
        ServerEnd::Drained => Ok(()),
        ServerEnd::Interrupted { connections, .. } => Err(Exit::Interrupted(format!(
            "stopped before all requests in flight ended; closed connections: {connections}"
        ))),
    }
}
