//! Tests in a process of their own, and the statements that it sends.
//!
//! Guarantee: a test that could not run in its own process fails.

#![expect(clippy::missing_panics_doc, reason = "for tests: whatever fails here ends the test, and says so")]
#![expect(clippy::unwrap_used, reason = "for tests")]

pub mod own_process;
pub mod statement_log;
