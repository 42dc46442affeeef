//! Queues, `[queues.NAME]`, and their defaults, `[queue_defaults]`.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido::worker::{OutboundKey, QueueConfig};
use ichido_core::retry::{Guarantee, Retry};

use super::destinations;
use super::document::Section;
use super::intake::Intake;
use super::retry;
use super::setting::Presets;
use super::table::KIND;

/// A parsed queue, and the section that locates its settings.
pub(super) struct LocatedQueue<'a> {
    pub(super) queue: QueueConfig,
    pub(super) intake: Intake,
    pub(super) section: Section<'a>,
}

/// Returns the defaults that depend on the queue's destination: its schedule, and whether a requeue is allowed.
///
/// A named schedule has its own maximum of retries.
// Spec: D5, D17.
pub(super) fn presets(section: &Section<'_>) -> Presets {
    let name = section.explicit::<String>("destination");
    let destination = name.and_then(|name| section.named_elsewhere("destinations", &name));
    let kind = destination.as_ref().and_then(|destination| destination.get::<String>(KIND));
    let guarantee = destination.as_ref().map_or(Guarantee::None, destinations::declared_guarantee);
    let mut presets = vec![("requeue".to_owned(), guarantee.is_repeatable().to_string())];
    let is_http = kind.as_deref() == Some("http");
    let named = if section.has("retry") {
        section.explicit::<String>("retry")
    } else {
        is_http.then(|| retry::WEBHOOK.to_owned())
    };
    let Some(named) = named else { return presets };
    let retry = match destination {
        Some(http) if is_http && named == retry::WEBHOOK => Some(Retry::webhook(
            guarantee,
            http.get_or_default("total_timeout"),
            http.get_or_default::<Duration>("total_timeout")
                .saturating_add(http.get_or_default("settle_grace")),
        )),
        _ => retry::preset(&named),
    };
    if let Some(retry) = retry {
        presets.push(("retry".to_owned(), format!("{named:?}")));
        presets.push(("max_retries".to_owned(), (retry.max_attempts.get() - 1).to_string()));
    }
    presets
}

/// Reads one queue's section.
pub(super) fn read(section: Section<'_>) -> Option<LocatedQueue<'_>> {
    let retry = retry::read(&section);
    let intake = Intake::read(&section);
    let queue = QueueConfig {
        parallelism: at_least_one(section.get_or_default("parallelism")),
        batch_size: at_least_one(section.get_or_default("batch_size")),
        // Errors in the schedule were reported; the rest of the queue is checked too.
        retry: Retry {
            max_attempts: NonZeroU32::MIN.saturating_add(section.get_or_default("max_retries")),
            ..retry.unwrap_or(Retry::ORDER)
        },
        requeue: section.get("requeue"),
        lease: section.get_or_default("lease"),
        outbound_key: section.word("outbound_key", OutboundKey::parse).unwrap_or(OutboundKey::Derived),
        start_marks: section.get("start_marks"),
        keep_response: section.get_or_default("keep_response"),
        redact: (*intake.redact).clone(),
        ..QueueConfig::new(section.name, section.get::<String>("destination")?)
    };
    Some(LocatedQueue { queue, intake, section })
}

/// Converts a count, which was checked to be at least 1.
pub(super) fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
