//! Batches as one JSON text for `json_each`.

use serde_json::Value;
use uuid::Uuid;

/// Formats a batch.
pub(crate) fn text(rows: impl IntoIterator<Item = impl Into<Value>>) -> String {
    Value::Array(rows.into_iter().map(Into::into).collect()).to_string()
}

/// Formats an id for `unhex`.
pub(crate) fn id(id: Uuid) -> String {
    id.simple().to_string()
}
