//! Tests the offline queue with real files, failing servers and killed processes.

mod accepting;
mod crash;
mod deciding;
mod files;
mod sending;
mod temp_queue;
