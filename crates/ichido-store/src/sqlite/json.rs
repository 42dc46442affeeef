//! Batches as SQLite takes them: rows as one JSON text for `json_each`, bytes beside it as one blob.

use serde_json::Value;
use uuid::Uuid;

/// One row of a batch: its columns by position.
pub(super) type Row = Vec<Value>;

/// The text of a batch.
pub(super) fn text(rows: impl IntoIterator<Item = impl Into<Value>>) -> String {
    Value::Array(rows.into_iter().map(Into::into).collect()).to_string()
}

/// An id as `unhex` reads it.
pub(super) fn id(id: Uuid) -> String {
    id.simple().to_string()
}

/// The payloads of a batch, one after another.
pub(super) struct Payloads(Vec<u8>);

impl Payloads {
    pub(super) fn new() -> Self {
        // Never empty: a part of an empty blob is NULL to SQLite, and an empty payload is not.
        Self(vec![0])
    }

    /// Adds one; answers its place, counted from 1, and its length, as `substr` takes them.
    pub(super) fn add(&mut self, bytes: &[u8]) -> (Value, Value) {
        let place = self.0.len() + 1;
        self.0.extend_from_slice(bytes);
        (place.into(), bytes.len().into())
    }

    /// Adds one that may be missing, which is NULL then.
    pub(super) fn add_or_none(&mut self, bytes: Option<&[u8]>) -> (Value, Value) {
        bytes.map_or((Value::Null, Value::Null), |bytes| self.add(bytes))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
