//! Models behind HTTP, over real sockets: valid requests, and each way in which a call can end.
// SPEC B1.

mod asked;
mod counted;
mod destination;
mod faults;
mod fixture;
pub(crate) mod recorder;
mod settings;
