//! Queues, `[queues.NAME]`, and their defaults, `[queue_defaults]`.

use std::num::NonZeroU32;

use ichido::worker::{OutboundKey, QueueConfig};
use ichido_core::retry::Retry;

use super::document::Section;
use super::intake::Intake;
use super::retry;
use super::setting::Presets;

/// A parsed queue, and the section that locates its settings.
pub(super) struct LocatedQueue<'a> {
    pub(super) queue: QueueConfig,
    pub(super) intake: Intake,
    pub(super) section: Section<'a>,
}

/// Returns the maximum retries of a named schedule.
pub(super) fn presets(section: &Section<'_>) -> Presets {
    let named = section.explicit::<String>("retry").and_then(|retry| retry::preset(&retry));
    named
        .map(|retry| ("max_retries".to_owned(), (retry.max_attempts.get() - 1).to_string()))
        .into_iter()
        .collect()
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
            ..retry.unwrap_or(Retry::OUTBOX)
        },
        requeue: section.get_or_default("requeue"),
        lease: section.get_or_default("lease"),
        outbound_key: section.word("outbound_key", OutboundKey::parse).unwrap_or(OutboundKey::Derived),
        start_marks: section.get("start_marks"),
        keep_response: section.get_or_default("keep_response"),
        ..QueueConfig::new(section.name, section.get::<String>("destination")?)
    };
    Some(LocatedQueue { queue, intake, section })
}

/// Converts a count, which was checked to be at least 1.
pub(super) fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
