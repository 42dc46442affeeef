//! What a queue accepts: the settings of `[queues.NAME]` for arriving messages.

use std::sync::Arc;

use ichido_core::drain::QueueLimits;
use ichido_core::json::{LeaveOut, Pointer};

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
        let pointer = |name: &str| {
            section.get::<String>(name).and_then(|text| section.checked(name, Pointer::parse(&text)))
        };
        let labels = LabelPointers::new(pointer("trace_id"), pointer("item"));
        let max_waiting = section.get::<u32>("max_waiting").map(u64::from);
        Self {
            schema: schema.map(Arc::new),
            digest_without: Arc::new(digest_without.unwrap_or_default()),
            labels: Arc::new(labels),
            bounds: QueueLimits { drain_within: section.get("drain_within"), max_waiting },
        }
    }
}
