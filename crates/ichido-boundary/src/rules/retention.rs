//! Outcomes are kept for long enough (SPEC C7, C12, A2).

use std::time::Duration;

use ichido_core::ledger::{Class, Policy, PolicyDraft, PolicyError, client_horizon, limits};

use super::{Found, in_promises};
use crate::member::escape;
use crate::{Boundary, Enabled, Name, Operation, OperationClass, Ttl, Way, timing};

pub(super) fn ttl_is_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = in_promises(way, |promises| {
        promises.storage.ttl.is_none().then_some(("storage/ttl", "`ttl` is missing"))
    });
    for (file, pointer, ttl, _) in lengths(way) {
        if ttl.length().is_zero() || limits::TTL_MAX < ttl.length() {
            found.push(Found::at(
                file,
                pointer,
                "`days`, `hours` and `minutes` make 0, or more than ten years",
            ));
        }
    }
    found
}

pub(super) fn ttl_covers_a_day<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let is_short = |error: &PolicyError| matches!(error, PolicyError::TtlTooShort { .. });
    broken(way, is_short, |ttl, _| format!("{} without a reason", in_words(ttl)))
}

pub(super) fn ttl_covers_the_tries<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let is_short = |error: &PolicyError| matches!(error, PolicyError::ShorterThanRetries { .. });
    broken(way, is_short, |ttl, horizon| {
        format!("{}, and somebody may still be trying after {}", in_words(ttl), in_words(horizon))
    })
}

/// Where the ledger itself would refuse a length, for a reason that `is_meant`.
fn broken<'a>(
    way: &Way<'a>,
    is_meant: fn(&PolicyError) -> bool,
    what: fn(Duration, Duration) -> String,
) -> Vec<Found<'a>> {
    let horizon = horizon(way);
    lengths(way)
        .into_iter()
        .filter_map(|(file, pointer, ttl, class)| {
            let draft = PolicyDraft {
                ttl: Some(ttl.length()),
                short_ttl_reason: ttl.reason.clone(),
                retry_horizon: Some(horizon),
                ..PolicyDraft::of(class)
            };
            let errors = Policy::build(draft).err()?;
            let is_broken = !ttl.length().is_zero() && errors.iter().any(is_meant);
            is_broken.then(|| Found::at(file, pointer, what(ttl.length(), horizon)))
        })
        .collect()
}

/// How long somebody may still be trying: the browser by its file, or any client by its default schedule.
fn horizon(way: &Way<'_>) -> Duration {
    let by_file =
        way.file(Name::BrowserToBff).and_then(|file| file.http.timeouts.in_all().max(timing::in_all(file)));
    by_file.unwrap_or_default().max(client_horizon())
}

/// Every length of time that outcomes are kept, where it stands, and for what kind of work.
fn lengths<'a>(way: &Way<'a>) -> Vec<(&'a Boundary, String, &'a Ttl, Class)> {
    let owners = way.owners().filter_map(|(file, promises, base): (_, &'a Enabled, _)| {
        // Whatever the operations are, what they do not say themselves holds for all of them.
        Some((file, format!("{base}/storage/ttl"), promises.storage.ttl.as_ref()?, Class::ExternalEffect))
    });
    let operations = way.files().flat_map(|file| {
        let operations = file.operations.iter().flat_map(crate::Named::iter);
        operations.filter_map(move |(name, operation): (_, &'a Operation)| {
            let class = operation.class.map_or(Class::ExternalEffect, OperationClass::class);
            let pointer = format!("/operations/{}/ttl", escape(name));
            Some((file, pointer, operation.ttl.as_ref()?, class))
        })
    });
    owners.chain(operations).collect()
}

/// A length of time as a person says it, rounded down.
fn in_words(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..60 => format!("{seconds} seconds"),
        seconds @ 60..7_200 => format!("{} minutes", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} hours", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
