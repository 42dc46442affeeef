//! Tests the client, its offline queue and its guide against real servers.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod decisions;
mod guide;
#[cfg(feature = "queue")]
mod offline;
mod once;
mod server;
