//! What a queue accepts: the settings of `[queues.NAME]` for arriving messages.

use std::sync::Arc;

use ichido_core::drain::QueueLimits;
use ichido_core::json::{LeaveOut, Pointer, Redaction};

use super::document::Section;
use crate::labels::LabelPointers;
use crate::schema::Schema;

/// What a queue accepts.
#[derive(Clone, Debug, Default)]
pub struct Intake {
    /// The schema that messages must match.
    pub(crate) schema: Option<Arc<Schema>>,
    /// The members that the request digest leaves out.
    // Spec: C9.
    pub digest_without: Arc<LeaveOut>,
    /// Where bodies have their labels.
    pub(crate) labels: Arc<LabelPointers>,
    /// The values that people do not see.
    pub redact: Arc<Redaction>,
    /// How many messages may wait. Only the server enforces this.
    pub bounds: QueueLimits,
}

impl Intake {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let schema = section.resolved("schema").and_then(|text| {
            let path = section.source.outside.folder.join(section.get_or_default::<String>("schema"));
            let parsed = Schema::parse(&text).map_err(|error| format!("{} {error}", path.display()));
            section.checked("schema", parsed)
        });
        let digest_without = section.get::<Vec<String>>("digest_without").and_then(|texts| {
            let pointers: Result<_, _> = texts.iter().map(|text| Pointer::parse(text)).collect();
            let pointers = section.checked("digest_without", pointers)?;
            section.checked("digest_without", LeaveOut::new(pointers))
        });
        let redact = section
            .get::<Vec<String>>("redact")
            .and_then(|texts| section.checked("redact", Redaction::parse(&texts)))
            .unwrap_or_default();
        let pointer = |name: &str| {
            let text = section.get::<String>(name)?;
            let pointer = section.checked(name, Pointer::parse(&text))?;
            if redact.overlaps(&pointer) && section.has(name) {
                section.report(
                    name,
                    format!("{text} is redacted, but a label is shown; point to another value"),
                );
            }
            Some(pointer)
        };
        let labels = LabelPointers::new(pointer("trace_id"), pointer("item")).without(&redact);
        let max_waiting = section.get::<u32>("max_waiting").map(u64::from);
        Self {
            schema: schema.map(Arc::new),
            digest_without: Arc::new(digest_without.unwrap_or_default()),
            labels: Arc::new(labels),
            redact: Arc::new(redact),
            bounds: QueueLimits { drain_within: section.get("drain_within"), max_waiting },
        }
    }
}
