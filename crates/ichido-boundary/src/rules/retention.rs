//! Rules for retention: outcomes are kept long enough.
// SPEC C7, C12, A2.

use std::time::Duration;

use ichido_core::ledger::{Class, Policy, PolicyDraft, PolicyError, client_horizon, limits};

use super::{Violation, in_guarantees};
use crate::member::escape;
use crate::{Boundary, Enabled, HopChain, Name, Operation, OperationClass, Ttl, timing};

pub(super) fn ttl_is_declared<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = in_guarantees(chain, |guarantees| {
        guarantees.storage.ttl.is_none().then_some(("storage/ttl", "`ttl` is missing"))
    });
    for (file, pointer, ttl, _) in lengths(chain) {
        if ttl.length().is_zero() || limits::MAX_TTL < ttl.length() {
            found.push(Violation::new(
                file,
                pointer,
                "the sum of `days`, `hours` and `minutes` is 0 or more than ten years",
            ));
        }
    }
    found
}

pub(super) fn ttl_covers_a_day<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let is_short = |error: &PolicyError| matches!(error, PolicyError::TtlTooShort { .. });
    broken(chain, is_short, |ttl, _| format!("kept for only {}, without a reason", in_words(ttl)))
}

pub(super) fn ttl_covers_retries<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let is_short = |error: &PolicyError| matches!(error, PolicyError::ShorterThanRetries { .. });
    broken(chain, is_short, |ttl, horizon| {
        format!("kept for {}, but a client may still retry after {}", in_words(ttl), in_words(horizon))
    })
}

/// Finds times that the ledger itself would refuse, for a reason that `is_meant`.
fn broken<'a>(
    chain: &HopChain<'a>,
    is_meant: fn(&PolicyError) -> bool,
    what: fn(Duration, Duration) -> String,
) -> Vec<Violation<'a>> {
    let horizon = horizon(chain);
    lengths(chain)
        .into_iter()
        .filter_map(|(file, pointer, ttl, class)| {
            let draft = PolicyDraft {
                ttl: Some(ttl.length()),
                short_ttl_reason: ttl.reason.clone(),
                retry_horizon: Some(horizon),
                ..PolicyDraft::new(class)
            };
            let errors = Policy::build(draft).err()?;
            let is_broken = !ttl.length().is_zero() && errors.iter().any(is_meant);
            is_broken.then(|| Violation::new(file, pointer, what(ttl.length(), horizon)))
        })
        .collect()
}

/// Returns how long a caller may still retry.
///
/// That is the browser by its file, or any client by its default schedule.
fn horizon(chain: &HopChain<'_>) -> Duration {
    let by_file = chain
        .file(Name::BrowserToBff)
        .and_then(|file| file.http.timeouts.total_timeout().max(timing::total_time(file)));
    by_file.unwrap_or_default().max(client_horizon())
}

/// Returns every time that outcomes are kept, with its pointer and kind of work.
fn lengths<'a>(chain: &HopChain<'a>) -> Vec<(&'a Boundary, String, &'a Ttl, Class)> {
    let owners = chain.owners().filter_map(|(file, guarantees, base): (_, &'a Enabled, _)| {
        // Whatever the operations are, this time applies to all that have none of their own.
        Some((file, format!("{base}/storage/ttl"), guarantees.storage.ttl.as_ref()?, Class::ExternalEffect))
    });
    let operations = chain.files().flat_map(|file| {
        let operations = file.operations.iter().flat_map(crate::NamedValues::iter);
        operations.filter_map(move |(name, operation): (_, &'a Operation)| {
            let class = operation.class.map_or(Class::ExternalEffect, OperationClass::class);
            let pointer = format!("/operations/{}/ttl", escape(name));
            Some((file, pointer, operation.ttl.as_ref()?, class))
        })
    });
    owners.chain(operations).collect()
}

/// Formats a duration for people, rounded down.
fn in_words(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..60 => format!("{seconds} seconds"),
        seconds @ 60..7_200 => format!("{} minutes", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} hours", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
