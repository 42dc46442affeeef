//! The statements of sqlx, for tests that count them. They belong to the process, so such a test needs its own.
//!
//! Guarantee: every statement of the process is shown once, after it has ended.

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

/// A statement. BEGIN is not logged.
pub struct Logged {
    /// The level at which its connection logs.
    pub level: Level,
    /// Its text, without the spaces around it.
    pub text: String,
    /// How many rows it returned.
    pub rows: u64,
}

/// Shows every statement to `each`, after it has ended.
pub fn for_each_statement(each: fn(&Logged)) {
    tracing::subscriber::set_global_default(StatementLog(each)).unwrap();
}

struct StatementLog(fn(&Logged));

impl Visit for Logged {
    fn record_str(&mut self, field: &Field, value: &str) {
        // The summary comes first. It is all of a short statement, and the rest is empty.
        if matches!(field.name(), "summary" | "db.statement") && !value.is_empty() {
            value.trim().clone_into(&mut self.text);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "rows_returned" {
            self.rows = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for StatementLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut logged = Logged { level: *event.metadata().level(), text: String::new(), rows: 0 };
        event.record(&mut logged);
        (self.0)(&logged);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
