//! What a queue takes in: the settings of `[queues.NAME]` that are about messages on their way in.

use std::sync::Arc;

use super::document::Section;
use super::outside::Outside;
use crate::faults::Faults;
use crate::schema::Schema;

/// What a queue takes in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intake {
    /// What a message must look like.
    pub(crate) schema: Option<Arc<Schema>>,
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
        Self { schema: schema.map(Arc::new) }
    }
}
