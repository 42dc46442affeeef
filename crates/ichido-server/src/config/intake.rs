//! What a queue takes in: the settings of `[queues.NAME]` that are about messages on their way in.

use std::sync::Arc;

use ichido_core::drain::Bounds;
use ichido_core::json::{LeaveOut, Pointer};

use super::document::Section;
use crate::schema::Schema;

/// What a queue takes in.
#[derive(Clone, Debug, Default)]
pub struct Intake {
    /// What a message must look like.
    pub(crate) schema: Option<Arc<Schema>>,
    /// The members that make no other request of it (SPEC C9).
    pub digest_without: Arc<LeaveOut>,
    /// How much of it; the server asks, and nobody else.
    pub bounds: Bounds,
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
        let waiting_max = section.get::<u32>("waiting_max").map(u64::from);
        Self {
            schema: schema.map(Arc::new),
            digest_without: Arc::new(digest_without.unwrap_or_default()),
            bounds: Bounds { drain_within: section.get("drain_within"), waiting_max },
        }
    }
}
