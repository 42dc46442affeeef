//! What a queue takes in: the settings of `[queues.NAME]` that are about messages on their way in.

use std::sync::Arc;

use ichido_core::drain::Bounds;
use ichido_core::json::{LeaveOut, Pointer};
use ichido_core::settings::Faults;

use super::document::Section;
use super::outside::Outside;
use crate::schema::Schema;

/// The most messages that a bound may allow to wait: whatever is more is a typing error.
const WAITING_MAX: u32 = 1_000_000_000;

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
    pub(super) fn read(section: &mut Section<'_>, outside: &Outside<'_>, faults: &mut Faults) -> Self {
        let schema = section.text("schema", faults).and_then(|path| {
            let read = outside.read(path).and_then(|text| {
                Schema::parse(&text)
                    .map_err(|error| format!("{} {error}", outside.folder.join(path).display()))
            });
            faults.check(&section.place("schema"), read)
        });
        let digest_without = section.texts("digest_without", faults).and_then(|texts| {
            let pointers: Result<_, _> = texts.into_iter().map(Pointer::parse).collect();
            let pointers = faults.check(&section.place("digest_without"), pointers)?;
            faults.check(&section.place("digest_without"), LeaveOut::new(pointers))
        });
        let drain_within = section.time("drain_within", faults);
        if drain_within.is_some_and(|within| within.is_zero()) {
            faults.add(
                section.place("drain_within"),
                "no time at all would let nothing in; give it some, such as \"10m\"",
            );
        }
        let waiting_max = section.count("waiting_max", 1..=WAITING_MAX, faults).map(u64::from);
        Self {
            schema: schema.map(Arc::new),
            digest_without: Arc::new(digest_without.unwrap_or_default()),
            bounds: Bounds { drain_within, waiting_max },
        }
    }
}
