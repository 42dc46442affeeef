//! Validates the flags.

use std::net::SocketAddr;
use std::time::Duration;

use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;
use ichido_mock_broker::{Behaviour, MAX_WAIT, Rates};

use super::args::Args;

/// The settings of a mock broker.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) behaviour: Behaviour,
    pub(crate) seed: u64,
}

/// Resolves the flags, or returns all their errors.
pub(crate) fn resolve(args: &Args) -> Result<Settings, ConfigErrors> {
    let mut faults = ConfigErrors::default();
    let listen: Option<SocketAddr> = faults.check(
        "--listen",
        args.listen
            .parse()
            .map_err(|_| format!("{:?} is not an address and port, such as 127.0.0.1:8090", args.listen)),
    );
    let latency = wait("--latency", &args.latency, &mut faults);
    let slow = wait("--slow", &args.slow, &mut faults);
    let retry_after = wait("--retry-after", &args.retry_after, &mut faults);
    if retry_after.is_some_and(|wait| wait.subsec_nanos() != 0) {
        faults.add("--retry-after", "must be a whole number of seconds, as Retry-After requires");
    }
    let rates = rates(&args.fault, &mut faults);
    let built = (|| {
        let behaviour = Behaviour {
            deduplicates: args.deduplicates,
            refuses_old_fences: args.refuses_old_fences,
            latency: latency?,
            slow: slow?,
            retry_after: retry_after?,
            rates: rates?,
            fault_text: args.fault_text.clone(),
        };
        Some(Settings { listen: listen?, behaviour, seed: args.seed.unwrap_or_else(|| fastrand::u64(..)) })
    })();
    faults.or(built)
}

fn wait(flag: &str, text: &str, faults: &mut ConfigErrors) -> Option<Duration> {
    let wait = faults.check(flag, duration::parse(text))?;
    if MAX_WAIT < wait {
        faults.add(flag, "must not be longer than an hour");
    }
    Some(wait)
}

fn rates(given: &[String], faults: &mut ConfigErrors) -> Option<Rates> {
    let parts = given.iter().map(|text| match text.split_once('=') {
        Some((name, rate)) => (name, rate.parse().ok()),
        None => (text.as_str(), None),
    });
    match Rates::new(parts) {
        Ok(rates) => Some(rates),
        Err(errors) => {
            for error in errors {
                faults.add("--fault", error.to_string());
            }
            None
        }
    }
}
