//! Models behind HTTP, asked over real sockets: the request as the provider wants it, and each way in which a call can end (SPEC B1).

mod asked;
mod counted;
mod destination;
mod faults;
mod fixture;
pub(crate) mod recorder;
mod settings;
