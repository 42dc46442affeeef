//! Rules for time: everything a hop does fits into the hop above.
//!
//! That is its attempts, and the wait for a request in flight.
// SPEC C8.

use std::time::Duration;

use super::Violation;
use crate::{Boundary, Enabled, HopChain, Name, timing};

const TRY_POINTER: &str = "/http/timeouts/upstream_timeout_ms";

pub(super) fn timeouts_are_declared<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    chain
        .files()
        .filter_map(|file| {
            let timeouts = &file.http.timeouts;
            let what = match (timeouts.attempt_timeout(), timeouts.upstream_timeout_ms) {
                (None, _) => "`upstream_timeout_ms` is missing",
                (Some(Duration::ZERO), _) => "the timeout is 0",
                (Some(_), None) if file.http.retry.plan().is_some() => {
                    "`upstream_timeout_ms` is missing: the first attempt may use up the time of all others"
                }
                (Some(_), _) => return None,
            };
            Some(Violation::new(file, TRY_POINTER, what))
        })
        .collect()
}

pub(super) fn attempts_fit_total<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let found = |file: &'a Boundary| {
        let (attempts, bound) = (timing::total_time(file)?, file.http.timeouts.total_timeout()?);
        let what = format!(
            "all attempts take up to {} ms, but the total is limited to {} ms",
            attempts.as_millis(),
            bound.as_millis()
        );
        (bound < attempts).then(|| Violation::new(file, "/http/timeouts/client_timeout_ms", what))
    };
    chain.files().filter_map(found).collect()
}

pub(super) fn attempts_fit_above<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    // Of two files about one boundary the first counts; another rule finds that there are two.
    let files: Vec<&Boundary> = Name::ALL.into_iter().filter_map(|name| chain.file(name)).collect();
    let pairs = files.windows(2).map(|pair| (pair[0], pair[1]));
    // Another rule adds the adapter's own calls to the wait.
    pairs
        .filter(|(_, below)| below.name() != Name::Adapter)
        .filter_map(|(above, below)| {
            let (attempt, attempts) = (above.http.timeouts.attempt_timeout()?, timing::total_time(below)?);
            let what = format!(
                "all attempts of {} take up to {} ms, but one attempt of {} has {} ms",
                below.name(),
                attempts.as_millis(),
                above.name(),
                attempt.as_millis()
            );
            (attempt < attempts).then(|| Violation::new(below, TRY_POINTER, what))
        })
        .collect()
}

pub(super) fn wait_fits_above<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let owner: Option<(&'a Boundary, &'a Enabled, _)> = chain.owners().last();
    let wait = owner.and_then(|(_, guarantees, _)| guarantees.in_flight_wait()).unwrap_or_default();
    let calls = chain.file(Name::Adapter).and_then(timing::total_time).unwrap_or_default();
    let gateway = chain.file(Name::GatewayToAdapter);
    let Some((gateway, attempt)) =
        gateway.and_then(|file| Some((file, file.http.timeouts.attempt_timeout()?)))
    else {
        return Vec::new();
    };
    // A duplicate may wait without an outcome and then run, if the first request proved undone.
    let needed = wait.saturating_add(calls);
    if needed < attempt {
        return Vec::new();
    }
    let what = format!(
        "an attempt has {} ms, but the wait for a request in flight ({} ms) plus the call after it ({} ms) needs more",
        attempt.as_millis(),
        wait.as_millis(),
        calls.as_millis()
    );
    vec![Violation::new(gateway, TRY_POINTER, what)]
}
