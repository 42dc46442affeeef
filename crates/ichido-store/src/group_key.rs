//! Which failure group a dead letter belongs to.

use ichido_core::failure_group::{FailureFingerprint, template};
use uuid::Uuid;

use crate::message::QueueName;
use crate::subject::subject;

/// What identifies a letter's group, and describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupKey {
    pub(crate) id: Uuid,
    pub(crate) queue: QueueName,
    pub(crate) code: Option<String>,
    pub(crate) template: String,
}

impl GroupKey {
    /// Returns the group of an error.
    pub(crate) fn new(queue: &QueueName, code: Option<&str>, error: Option<&str>) -> Self {
        let template = template(error.unwrap_or_default());
        let fingerprint = FailureFingerprint::new(code, &template);
        let name = [queue.as_str().as_bytes(), b"\0", fingerprint.as_bytes()].concat();
        let id = subject("failure_group", &name);
        Self { id, queue: queue.clone(), code: code.map(str::to_owned), template }
    }
}
