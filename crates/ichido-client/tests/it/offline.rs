//! The offline queue: real files, real servers that misbehave, real processes that are killed.

mod accepting;
mod crash;
mod deciding;
mod files;
mod sending;
mod temp_queue;
