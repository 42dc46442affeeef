//! The statements of sqlx, for tests that count them. They belong to the process, so such a test needs its own.

use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

static STATEMENTS: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

/// Collects every statement with the level of its connection. BEGIN is not logged.
pub(crate) struct StatementLog;

impl StatementLog {
    /// Collects from now on.
    pub(crate) fn start() {
        tracing::subscriber::set_global_default(Self).unwrap();
    }

    /// Returns the statements since the last call.
    pub(crate) fn take() -> Vec<(Level, String)> {
        std::mem::take(&mut *STATEMENTS.lock().unwrap())
    }
}

/// The text of a statement: a short one is its own summary.
#[derive(Default)]
struct Text {
    summary: String,
    statement: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.summary),
            "db.statement" => value.clone_into(&mut self.statement),
            _ => (),
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for StatementLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let text = if text.statement.is_empty() { text.summary } else { text.statement };
        STATEMENTS.lock().unwrap().push((*event.metadata().level(), text));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
